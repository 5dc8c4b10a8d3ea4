// Was: events made in one piece skipped the look for secrets in what callers add and in a host's ids, and told wrong
// times. Now: each is looked at, and its times are true.
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type Runtime, type TraceEvent } from '../../src/index.ts';
import { createRedactor } from '../../src/policy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { pinoSink, type LogTarget } from '../../src/sinks/pino.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/index.ts';

const SECRET = 'password=hunter2hunter2';
const one = tool({ name: 't', execute: () => 1 });

const withIds = (id: (n: number) => string): { runtime: Runtime; base: VirtualRuntime } => {
  const base = virtualRuntime();
  let n = 0;
  return {
    base,
    runtime: { now: base.now, wallNow: base.wallNow, random: base.random, after: base.after, id: () => id(n++) },
  };
};

describe('an event that is made in one go is looked at all the same', () => {
  it('R-11.4 what a caller adds to its own event', async () => {
    const spillway = createSpillway({ tools: [one] });
    const seen: string[] = [];
    spillway.trace$.subscribe((event) => seen.push(JSON.stringify(event)));
    await new Promise<void>((complete) => {
      spillway.call({ toolName: 't' }).subscribe({
        next: (event) =>
          Object.assign(
            event,
            { note: SECRET },
            event.type === 'settled' ? { result: { ...event.result, status: SECRET } } : {},
          ),
        complete,
      });
    });
    expect(seen).toHaveLength(1 + 4);
    expect(seen.join('\n')).not.toContain('hunter2');
  });

  it('R-11.4 a turn’s id of a host’s own runtime', async () => {
    const { runtime, base } = withIds((n) => (n === 0 ? 'hunter2!turn' : `id-${n}`));
    const spillway = createSpillway({ runtime, redact: { secrets: ['hunter2!'] }, tools: [one] });
    const seen: string[] = [];
    spillway.trace$.subscribe((event) => seen.push(JSON.stringify(event)));
    spillway.turn(plan().call('a', one, {})).subscribe();
    await base.run();
    expect(seen.length).toBeGreaterThan(4);
    expect(seen.join('\n')).not.toContain('hunter2');
  });

  it('R-11.4 an id of a host’s own runtime that looks like a secret', async () => {
    const { runtime, base } = withIds(() => 'token=abcdef0123456789abcdef');
    const spillway = createSpillway({ runtime, tools: [one] });
    const seen: string[] = [];
    spillway.trace$.subscribe((event) => seen.push(JSON.stringify(event)));
    void spillway.execute({ toolName: 't' });
    await base.run();
    expect(seen).toHaveLength(1 + 4);
    expect(seen.join('\n')).not.toContain('abcdef');
  });

  it('R-11.4 a word that is called type, inside an error', () => {
    const error = { code: 'x', message: 'm', retriable: false, terminal: true, type: SECRET };
    const event = {
      seq: 1,
      atMs: 1,
      source: 'call',
      callId: 'c',
      toolName: 't',
      type: 'settled',
      result: { requestId: 'c', toolName: 't', status: 'error', fromCache: true, durationMs: 1, attempts: 0, error },
    };
    expect(JSON.stringify(createRedactor()(event as unknown as TraceEvent))).not.toContain('hunter2');
  });

  it('R-11.4 flags stay what they are', async () => {
    const spillway = createSpillway({
      redact: { keys: ['cache'] },
      capture: { t: { output: ['a'] } },
      tools: [tool({ name: 't', execute: () => ({ a: 1 }) })],
    });
    const seen: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => seen.push(event));
    await spillway.execute({ toolName: 't' });
    expect(seen.at(-1)).toMatchObject({ source: 'call', type: 'settled', result: { fromCache: false } });
  });

  it.each([
    ['a hook', 'counts', 50],
    ['a subscriber', 'does not', 0],
  ])('R-8.3 durationMs is true to the trace, where what %s takes %s', async (who, _counts, expected) => {
    const runtime = virtualRuntime();
    const hooks = who === 'a hook' ? { hooks: { afterToolCall: () => runtime.stall(50) } } : {};
    const spillway = createSpillway({ runtime, ...hooks, tools: [one] });
    const seen: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => {
      seen.push(event);
      if (who === 'a subscriber' && event.type === 'attempt_succeeded') runtime.stall(50);
    });
    const settled = spillway.execute({ toolName: 't' });
    await runtime.run();
    const { durationMs } = await settled;
    expect(durationMs).toBe(expected);
    expect((seen.at(-1)?.atMs ?? 0) - (seen[0]?.atMs ?? 0)).toBe(durationMs);
  });

  it('R-7.6 an around that runs twice gets a context for each', async () => {
    const contexts: unknown[] = [];
    const spillway = createSpillway({
      around: (_callId, _attempt, run) => {
        run();
        return run();
      },
      tools: [tool({ name: 't', execute: (_input, context) => contexts.push(context) })],
    });
    await spillway.execute({ toolName: 't' });
    expect(contexts).toHaveLength(2);
    expect(contexts[0]).not.toBe(contexts[1]);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['is null', null],
  ])('R-7.4 a logger whose isLevelEnabled %s loses no line', (_what, isLevelEnabled) => {
    const lines: object[] = [];
    const log = (fields: object): void => void lines.push(fields);
    pinoSink({ info: log, warn: log, error: log, isLevelEnabled } as unknown as LogTarget).next({
      seq: 1,
      atMs: 1,
      source: 'call',
      callId: 'c',
      toolName: 't',
      type: 'call_started',
    });
    expect(lines).toHaveLength(1);
  });

  it('R-8.1 an id does not give away the next', () => {
    const ids = Array.from({ length: 300 }, () => liveRuntime.id());
    expect(ids).toStrictEqual(ids.toSorted());
    expect(new Set(ids.map((id) => id.slice(-8))).size).toBeGreaterThan(295);
  });

  it('TR-1 a list with a getter that throws is no request, and is not read', async () => {
    const request = Object.defineProperty([], 'toolName', {
      enumerable: true,
      get: () => {
        throw new Error('read');
      },
    });
    const { error } = await createSpillway({ tools: [one] }).execute(request as never);
    expect(error?.code).toBe('invalid_parameters');
    expect(error?.message).toContain('expected object');
  });
});
