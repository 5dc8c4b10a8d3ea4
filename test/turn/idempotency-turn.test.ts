import { NEVER, type Observable } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  createSpillway,
  plan,
  tool,
  type AnyTool,
  type HookAttempt,
  type Plan,
  type SpillwayOptions,
  type ToolPolicy,
  type TraceEvent,
  type TurnEvent,
  type TurnOptions,
  type TurnResult,
} from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { asked, records } from '../spec/tr-02-stores.ts';
import { nodeOf, states, turnResultOf } from '../call/kit.ts';

afterEach(() => vi.unstubAllEnvs());

/** A tool that takes a while, and what was seen of it. */
const slow = (
  runtime: () => VirtualRuntime,
  ms: number,
  policy: ToolPolicy = {},
  name = 't',
): { readonly tool: AnyTool; runs: number; aborts: number } => {
  const seen = {
    runs: 0,
    aborts: 0,
    tool: tool({
      name,
      policy: { timeoutMs: 600_000, ...policy },
      execute: (_input: unknown, { signal }) => {
        const run = ++seen.runs;
        signal.addEventListener('abort', () => seen.aborts++);
        return new Promise((resolve) => {
          runtime()
            .after(ms)
            .subscribe(() => resolve(`run ${run}`));
        });
      },
    }) as AnyTool,
  };
  return seen;
};

const world = (tools: (runtime: () => VirtualRuntime) => readonly AnyTool[], options: SpillwayOptions = {}) => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, sweepMs: Infinity });
  const layer = createSpillway({ tools: tools(() => runtime), store, runtime, ...options });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  const begin = (
    planned: Plan,
    turnOptions: TurnOptions = { session: 's' },
  ): { result(): TurnResult; unsubscribe(): void; readonly events: TurnEvent[] } => {
    const events: TurnEvent[] = [];
    const subscription = (layer.turn(planned, turnOptions) as Observable<TurnEvent>).subscribe((event) =>
      events.push(event),
    );
    return { events, result: () => turnResultOf(events), unsubscribe: () => subscription.unsubscribe() };
  };
  return { runtime, store, layer, trace, begin };
};

const node = (id: string, idempotencyKey?: string, more: object = {}) => ({
  id,
  tool: 't',
  input: { asked: 1 },
  ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  ...more,
});

describe('R-4.4 turns and keys', () => {
  it('R-4.4 a turn’s deadline detaches: the late result is stored, and the next turn gets it from there', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 1_000)).tool]);
    const first = begin(plan.from([node('a', 'k')], { timeoutMs: 400 }));
    await runtime.advance(400);
    expect(states(first.result())).toEqual({ a: 'timed_out' });
    // While it still runs, the next turn waits for it; after that it is replayed.
    const second = begin(plan.from([node('a', 'k')], { timeoutMs: 5_000 }));
    await runtime.advance(600);
    const third = begin(plan.from([node('a', 'k')]));
    await runtime.advance(10);
    for (const { result } of [second, third])
      expect(result()).toMatchObject({ status: 'completed', executedTools: 0, values: { a: 'run 1' } });
    expect([second.result(), third.result()].map((result) => nodeOf(result, 'a').result?.cache?.matchedOn)).toEqual([
      'inflight',
      'completed',
    ]);
    expect(seen).toMatchObject({ runs: 1, aborts: 0 });
  });

  it('R-4.4 without a key the next turn runs it again', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 1_000)).tool]);
    begin(plan.from([node('a')], { timeoutMs: 400 }));
    await runtime.advance(2_000);
    const second = begin(plan.from([node('a')]));
    await runtime.advance(1_000);
    expect(second.result().values).toEqual({ a: 'run 2' });
    expect(seen?.runs).toBe(2);
  });

  it('R-4.4 a node that only waits for its key does not begin to run once the turn is over', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin, layer } = world((now) => [(seen = slow(now, 1_000)).tool]);
    // Another call has the key, and gives it up by being cleared away after the turn's deadline.
    const leader = layer.call(asked({ key: 'k', params: { asked: 1 }, namespace: 'tools' })).subscribe();
    await runtime.advance(10);
    const turn = begin(plan.from([node('a', 'k')], { timeoutMs: 100 }), { session: 's' });
    await runtime.advance(200);
    expect(states(turn.result())).toEqual({ a: 'timed_out' });
    leader.unsubscribe();
    expect(seen).toMatchObject({ runs: 1, aborts: 1 });
    await runtime.advance(100_000);
    expect(seen?.runs).toBe(1);
  });

  it('R-4.4 nor does one whose hook answers after it', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 10)).tool], {
      hooks: {
        prepareCall: () =>
          new Promise((resolve) => {
            runtime.after(300).subscribe(() => resolve(undefined));
          }),
      },
    });
    const turn = begin(plan.from([node('a', 'k'), node('b')], { timeoutMs: 100 }));
    await runtime.advance(10_000);
    expect(states(turn.result())).toEqual({ a: 'timed_out', b: 'timed_out' });
    expect(seen?.runs).toBe(0);
  });

  it('R-4.4 abort: what ran may have taken effect, and its key says so', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 1_000)).tool]);
    const first = begin(plan.from([node('a', 'k')], { timeoutMs: 400, onDeadline: 'abort' }));
    await runtime.advance(400);
    expect(states(first.result())).toEqual({ a: 'timed_out' });
    const second = begin(plan.from([node('a', 'k')]));
    await runtime.advance(10);
    expect(nodeOf(second.result(), 'a').result).toMatchObject({
      fromCache: true,
      error: { code: 'deadline_exceeded', uncertain: true },
    });
    expect(seen).toMatchObject({ runs: 1, aborts: 1 });
  });

  it('R-5.5 a turn whose only results are replays is completed, and not failed', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 10)).tool]);
    for (let turn = 0; turn < 3; turn++) {
      const { result } = { result: begin(plan.from([node('a', 'k'), node('b', 'l', { needs: ['a'], input: 2 })])) };
      await runtime.advance(50);
      expect(result.result()).toMatchObject({
        status: 'completed',
        executedTools: turn === 0 ? 2 : 0,
        values: { a: 'run 1', b: 'run 2' },
      });
    }
    expect(seen?.runs).toBe(2);
  });

  it('R-5.5 replays beside a failure: partial or escalated, not failed, though no tool ran', async () => {
    const { runtime, begin } = world((now) => [slow(now, 10).tool]);
    begin(plan.from([node('a', 'k')]));
    await runtime.advance(50);
    for (const [optional, status] of [
      [true, 'partial'],
      [false, 'escalated'],
    ] as const) {
      const turn = begin(plan.from([node('a', 'k'), { id: 'b', tool: 'nowhere', optional }]));
      await runtime.advance(50);
      expect(turn.result()).toMatchObject({ status, executedTools: 0, values: { a: 'run 1' } });
    }
  });

  it('R-9.4 two nodes of one key in one turn run once, also one at a time; other input is a conflict', async () => {
    for (const concurrency of [1, 8]) {
      let seen: ReturnType<typeof slow> | undefined;
      const { runtime, begin } = world((now) => [(seen = slow(now, 10)).tool]);
      const turn = begin(
        plan.from([node('a', 'k'), node('b', 'k'), node('c', 'k', { input: 'other' })], { concurrency }),
      );
      await runtime.advance(5_000);
      expect(turn.result()).toMatchObject({
        status: 'escalated',
        executedTools: 1,
        values: { a: 'run 1', b: 'run 1' },
        toolFailureKinds: ['conflict'],
      });
      expect(seen?.runs).toBe(1);
    }
  });

  it('R-9.3 turns of other sessions and tenants share nothing', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, begin } = world((now) => [(seen = slow(now, 10)).tool]);
    const turns = [
      { session: 's' },
      { session: 'x' },
      { session: 's', tenant: 'a' },
      { session: 's', tenant: 'b' },
      {},
    ].map((options) => begin(plan.from([node('a', 'k')]), options));
    await runtime.advance(100);
    expect(turns.map(({ result }) => result().values['a'])).toEqual(['run 1', 'run 2', 'run 3', 'run 4', 'run 5']);
    expect(seen?.runs).toBe(5);
  });

  it('R-9.6 a turn that is left while another waits for one of its calls: that one goes on, the rest stops', async () => {
    let shared: ReturnType<typeof slow> | undefined;
    let own: ReturnType<typeof slow> | undefined;
    const { runtime, begin, trace } = world((now) => [
      (shared = slow(now, 1_000)).tool,
      (own = slow(now, 1_000, {}, 'u')).tool,
    ]);
    const first = begin(plan.from([node('a', 'k'), { id: 'b', tool: 'u' }]));
    await runtime.advance(100);
    const second = begin(plan.from([node('z', 'k')]));
    await runtime.advance(100);
    first.unsubscribe();
    await runtime.advance(1_000);
    expect(second.result()).toMatchObject({ status: 'completed', values: { z: 'run 1' } });
    expect([shared?.runs, shared?.aborts, own?.aborts]).toEqual([1, 0, 1]);
    expect(trace.filter(({ type }) => type === 'abandoned')).toHaveLength(3);
  });
});

describe('R-6.2 alternatives, hooks and switches under a claim', () => {
  it('R-6.2 alternatives are inside the claim: one key, and the replay names who answered', async () => {
    const keys: unknown[] = [];
    const first = tool({
      name: 't',
      policy: { retry: { maxAttempts: 1 }, alternatives: ['spare'] },
      execute: (_input: unknown, { callKey, fence }): never => {
        keys.push([callKey, fence]);
        throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
      },
    });
    const spare = tool({
      name: 'spare',
      execute: (_input: unknown, { callKey, fence }) => {
        keys.push([callKey, fence]);
        return 'spare';
      },
    });
    const { runtime, begin, store } = world(() => [first, spare]);
    for (const fromCache of [false, true]) {
      const turn = begin(plan.from([node('a', 'k')]));
      await runtime.advance(10);
      expect(nodeOf(turn.result(), 'a').result).toMatchObject({
        status: 'success',
        fromCache,
        toolName: 'spare',
        output: { content: 'spare', metadata: { alternativeFor: 't' } },
      });
    }
    expect(keys).toHaveLength(2);
    expect(keys[0]).toEqual(keys[1]);
    expect([await records(store), await records(store, 'spare')].map(({ length }) => length)).toEqual([1, 0]);
  });

  it('R-6.1 what is refused about a key goes to no alternative: that would get round a no', async () => {
    let spares = 0;
    const { runtime, layer } = world((now) => [
      slow(now, 1_000, { alternatives: ['spare'] }).tool,
      tool({ name: 'spare', execute: () => ++spares }),
    ]);
    const leader = layer.execute(asked({ params: { n: 1 } }));
    await runtime.advance(10);
    const refused = [
      layer.execute(asked({ params: { n: 2 } })),
      layer.execute(asked({ params: { n: 1 }, mode: 'bestEffort' })),
    ];
    await runtime.advance(2_000);
    expect((await Promise.all(refused)).map(({ error }) => error?.code)).toEqual(['conflict', 'duplicate_in_flight']);
    expect([(await leader).status, spares]).toEqual(['success', 0]);
  });

  it('R-11.1 R-9.1 a key of a hook dedupes as the caller’s own would, and is asked for once a call', async () => {
    let asks = 0;
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, layer } = world((now) => [(seen = slow(now, 10)).tool], {
      hooks: { prepareCall: () => ({ idempotencyKey: `order ${++asks > 0 ? 7 : 0}` }) },
    });
    const both = [
      layer.execute({ toolName: 't', session: 's' }),
      layer.execute({ toolName: 't', session: 's' }),
      layer.execute({ toolName: 't', session: 's', idempotencyKey: 'order 7' }),
    ];
    await runtime.advance(1_000);
    expect((await Promise.all(both)).map(({ fromCache, output }) => [fromCache, output?.content])).toEqual([
      [false, 'run 1'],
      [true, 'run 1'],
      [true, 'run 1'],
    ]);
    expect([asks, seen?.runs]).toEqual([3, 1]);
  });

  it('R-11.1 hooks hear of a leader’s attempts and of each short-circuit once, as attempt 0', async () => {
    const before: HookAttempt[] = [];
    const { runtime, layer } = world((now) => [slow(now, 1_000).tool], {
      hooks: { beforeToolCall: (attempt) => void before.push(attempt) },
    });
    const calls = [asked(), asked(), asked({ mode: 'bestEffort' }), asked({ params: { other: 1 } })].map((request) =>
      layer.execute(request),
    );
    await runtime.advance(5_000);
    await Promise.all(calls);
    expect(before.map(({ attempt }) => attempt).toSorted((a, b) => a - b)).toEqual([0, 0, 0, 1]);
  });

  it('R-11.2 a switch that is thrown while calls wait: they end by the order they began in, new ones go straight through', async () => {
    let seen: ReturnType<typeof slow> | undefined;
    const { runtime, layer } = world((now) => [(seen = slow(now, 1_000)).tool]);
    const calls = [layer.execute(asked()), layer.execute(asked())];
    await runtime.advance(10);
    vi.stubEnv('TOOL_RELIABILITY_ENABLED', 'false');
    const bare = layer.execute(asked());
    await runtime.advance(2_000);
    expect((await Promise.all([...calls, bare])).map(({ fromCache, output }) => [fromCache, output?.content])).toEqual([
      [false, 'run 1'],
      [true, 'run 1'],
      [false, 'run 2'],
    ]);
    vi.unstubAllEnvs();
    expect(await layer.execute(asked())).toMatchObject({ fromCache: true, output: { content: 'run 1' } });
    expect(seen?.runs).toBe(2);
  });

  it('R-11.2 shadow keeps keys of its own: nothing it saw is replayed when it is turned on, and the other way round', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime, sweepMs: Infinity });
    let runs = 0;
    const made = (mode: 'on' | 'shadow') =>
      createSpillway({ tools: [tool({ name: 't', execute: () => ++runs })], store, runtime, mode });
    const [shadow, on] = [made('shadow'), made('on')];
    const run = async (layer: ReturnType<typeof made>): Promise<unknown> => {
      const { fromCache, output } = await layer.execute(asked());
      return [fromCache, output?.content];
    };
    expect([await run(shadow), await run(shadow), await run(on), await run(on), await run(shadow)]).toEqual([
      [false, 1],
      [false, 2],
      [false, 3],
      [true, 3],
      [false, 4],
    ]);
  });

  it('R-11.2 in shadow mode a store that hangs, or is down, delays nothing', async () => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    for (const setIfNotExists of [
      () => new Promise<never>(() => undefined),
      () => Promise.reject(new Error('down')),
      (): never => {
        throw new Error('down');
      },
    ]) {
      const layer = createSpillway({
        tools: [tool({ name: 't', execute: () => 'ran' })],
        store: { ...memory, setIfNotExists },
        runtime,
        mode: 'shadow',
      });
      expect(await layer.execute(asked())).toMatchObject({
        status: 'success',
        durationMs: 0,
        output: { content: 'ran' },
      });
      await runtime.advance(10_000);
      expect(runtime.pending).toBe(0);
    }
    expect(NEVER).toBeDefined();
  });
});
