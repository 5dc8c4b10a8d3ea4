import { EMPTY, NEVER, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  createSpillway,
  tool,
  type HookAttempt,
  type HookReport,
  type Hooks,
  type SpillwayOptions,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { virtualRuntime } from 'spillway/testing';

interface Seen {
  readonly before: HookAttempt[];
  readonly after: HookReport[];
}

const watching = (hooks: Hooks = {}): { readonly hooks: Hooks; readonly seen: Seen } => {
  const seen: Seen = { before: [], after: [] };
  const watched: Hooks = {
    ...hooks,
    beforeToolCall: (attempt) => {
      seen.before.push(attempt);
      return hooks.beforeToolCall?.(attempt);
    },
    afterToolCall: (report) => {
      seen.after.push(report);
      return hooks.afterToolCall?.(report);
    },
  };
  return { hooks: watched, seen };
};

const world = (hooks: Hooks, execute: (input: { n: number }) => unknown, options: SpillwayOptions = {}) => {
  const runtime = virtualRuntime();
  const events: TraceEvent[] = [];
  const add = tool({
    name: 'add',
    input: z.object({ n: z.number() }),
    policy: { retry: { maxAttempts: 3, initialDelayMs: 0, jitterPercent: 0 } },
    execute,
  });
  const layer = createSpillway({ tools: [add], runtime, hooks, ...options });
  layer.trace$.subscribe((event) => events.push(event));
  const run = async (request: object = {}, ms = 60_000): Promise<ToolResultEnvelope> => {
    const result = layer.execute({ toolName: 'add', input: { n: 1 }, ...request });
    await runtime.advance(ms);
    return result;
  };
  return { run, events, layer, runtime };
};

const failsTwice = (): (() => unknown) => {
  let runs = 0;
  return () => {
    runs++;
    if (runs <= 2) throw new Error('ECONNRESET');
    return 'ok';
  };
};

describe('TR-12 hooks fire exactly once per attempt', () => {
  it('TR-12 before and after each of three attempts', async () => {
    const { hooks, seen } = watching();
    const { run } = world(hooks, failsTwice());
    expect((await run()).status).toBe('success');
    expect(seen.before.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(seen.after.map(({ attempt, error, output }) => [attempt, error === undefined, output])).toEqual([
      [1, false, undefined],
      [2, false, undefined],
      [3, true, 'ok'],
    ]);
  });

  it('TR-12 once, as attempt 0, for a replay', async () => {
    const { hooks, seen } = watching();
    const { run } = world(hooks, ({ n }) => n);
    await run({ idempotencyKey: 'k' });
    expect((await run({ idempotencyKey: 'k' })).fromCache).toBe(true);
    expect(seen.before.map(({ attempt }) => attempt)).toEqual([1, 0]);
    expect(seen.after.map(({ attempt, result }) => [attempt, result?.fromCache])).toEqual([
      [1, undefined],
      [0, true],
    ]);
  });

  it('TR-12 once, as attempt 0, for a call that is rejected', async () => {
    const { hooks, seen } = watching();
    const { run, layer } = world(hooks, ({ n }) => n);
    await run({ input: { n: 'one' } });
    layer.breakers.get('add').forceOpen();
    expect((await run()).status).toBe('circuit_open');
    expect(seen.before.map(({ attempt }) => attempt)).toEqual([0, 0]);
    expect(seen.after.map(({ result }) => result?.error?.code)).toEqual(['invalid_parameters', 'circuit_open']);
  });

  it('TR-12 an attempt that is aborted is heard of too', async () => {
    const { hooks, seen } = watching();
    const { layer, runtime } = world(hooks, () => NEVER);
    const leaving = layer.call({ toolName: 'add', input: { n: 1 } }).subscribe();
    await runtime.advance(10);
    leaving.unsubscribe();
    expect(seen.before).toHaveLength(1);
    expect(seen.after.map(({ attempt, durationMs, error }) => [attempt, durationMs, error === undefined])).toEqual([
      [1, 10, false],
    ]);
  });
});

describe('R-11.1 what hooks may do', () => {
  it('R-11.1 prepareCall changes the input, which is validated again', async () => {
    const { run, events } = world(
      { prepareCall: ({ input }) => ({ input: { n: (input as { n: number }).n + 41 } }) },
      ({ n }) => n,
    );
    expect((await run()).output?.content).toBe(42);
    expect(events.find(({ type }) => type === 'hook')).toMatchObject({ hook: 'prepareCall', outcome: 'changed' });
    const { run: bad } = world({ prepareCall: () => ({ input: { n: 'much' } }) }, ({ n }) => n);
    expect((await bad()).error?.code).toBe('invalid_parameters');
  });

  it('R-11.1 prepareCall gives a key, after the caller’s own', async () => {
    let runs = 0;
    const { run } = world({ prepareCall: () => ({ idempotencyKey: 'hook' }) }, () => ++runs);
    await run();
    expect(await run()).toMatchObject({ fromCache: true, output: { content: 1 } });
    expect(await run({ idempotencyKey: 'own' })).toMatchObject({ fromCache: false, output: { content: 2 } });
  });

  it('R-11.1 beforeToolCall blocks with a reason, and nothing is counted against the tool', async () => {
    let runs = 0;
    const { hooks, seen } = watching({ beforeToolCall: () => ({ block: 'not on Sundays' }) });
    const { run, layer } = world(hooks, () => ++runs);
    const result = await run();
    expect(result).toMatchObject({ status: 'error', attempts: 0, error: { code: 'blocked', terminal: true } });
    expect(result.error?.message).toContain('not on Sundays');
    expect(runs).toBe(0);
    expect(layer.breakers.get('add').state).toMatchObject({ consecutiveFailures: 0, measured: 0 });
    expect([seen.before.length, seen.after.length]).toEqual([1, 1]);
  });

  it('R-11.1 a replay can be blocked as well', async () => {
    let allowed = true;
    const { run } = world({ beforeToolCall: () => (allowed ? undefined : { block: 'no longer yours' }) }, () => 1);
    await run({ idempotencyKey: 'k' });
    allowed = false;
    expect((await run({ idempotencyKey: 'k' })).error?.code).toBe('blocked');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('hook bug');
      },
    ],
    ['rejects', () => Promise.reject(new Error('hook bug'))],
    ['hangs', () => NEVER],
    ['gives a block that is no text', () => ({ block: 1 as unknown as string })],
  ] as const)('R-11.1 a hook that %s blocks the call, is not counted, and leaves a trace', async (_, hook) => {
    for (const name of ['prepareCall', 'beforeToolCall'] as const) {
      let runs = 0;
      const { run, layer, events } = world({ [name]: hook }, () => ++runs);
      expect(await run()).toMatchObject({ status: 'error', error: { code: 'blocked' } });
      expect(runs).toBe(0);
      expect(layer.breakers.get('add').state.measured).toBe(0);
      expect(events.some((event) => event.type === 'hook' && event.hook === name)).toBe(true);
    }
  });

  it('R-11.1 a hook has 15 s, and answers as a promise or a stream', async () => {
    const { run, events, runtime } = world({ beforeToolCall: () => NEVER }, () => 1);
    const result = run({}, 14_999);
    await runtime.advance(0);
    expect(events.some(({ type }) => type === 'settled')).toBe(false);
    await runtime.advance(1);
    expect((await result).error?.code).toBe('blocked');
    for (const answer of [Promise.resolve(undefined), of(undefined), EMPTY]) {
      const { run: later } = world({ beforeToolCall: () => answer, prepareCall: () => answer }, () => 1);
      expect((await later()).status).toBe('success');
    }
  });

  it('R-11.1 what afterToolCall throws changes nothing but the trace', async () => {
    const { run, events } = world(
      {
        afterToolCall: () => {
          throw new Error('hook bug');
        },
      },
      () => 'ok',
    );
    expect((await run()).status).toBe('success');
    expect(events.find(({ type }) => type === 'hook')).toMatchObject({ hook: 'afterToolCall', outcome: 'failed' });
  });

  it('R-11.1 a key that is no key blocks the call', async () => {
    const { run } = world({ prepareCall: () => ({ idempotencyKey: 'x'.repeat(513) }) }, () => 1);
    expect((await run()).error?.code).toBe('blocked');
  });
});
