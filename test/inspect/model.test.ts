import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ToolEvent, TraceEvent } from 'spillway';
import { addEvent, emptyTrace, pendingTimers, type TraceLimits, type TraceModel } from 'spillway/inspect';
import { recordedWorld } from './recorded-worlds.ts';

const heard = (events: readonly TraceEvent[], limits: TraceLimits = {}): TraceModel =>
  events.reduce(addEvent, emptyTrace(limits));

const worlds = async (count: number): Promise<TraceEvent[][]> => {
  const traces: TraceEvent[][] = [];
  for (let seed = 1; traces.length < count; seed++) traces.push(await recordedWorld(seed));
  return traces;
};

/** Everything in a model that can grow with what comes. */
const sizeOf = (model: TraceModel): number => {
  const turns = [...model.turns.values()];
  const calls = [...model.calls.values()];
  const count = (lists: ReadonlyArray<readonly unknown[]>): number =>
    lists.reduce((sum, { length }) => sum + length, 0);
  return (
    model.events.length +
    model.tools.size +
    model.breakers.size +
    count([...model.breakers.values()].map(({ changes }) => changes)) +
    count(turns.map(({ nodes }) => nodes)) +
    count(turns.flatMap(({ nodes }) => nodes.map(({ marks }) => marks))) +
    count(turns.map(({ escalated }) => escalated)) +
    count(calls.map(({ attempts }) => attempts)) +
    count(calls.map(({ key }) => key)) +
    count(calls.map(({ notes }) => notes))
  );
};

const LIMITS = { turns: 3, nodes: 10, calls: 20, attempts: 5, marks: 8, breakers: 4, changes: 5, events: 50 } as const;
/** What the limits allow, worked out by hand: remarks and steps are at most 50 a call. */
const SIZE_MAX = 50 + 16 + 2_000 + 4 + 4 * 5 + 3 * 10 + 3 * 10 * 8 + 3 * 100 + 20 * 5 + 20 * 50 + 20 * 50;

describe('SEE-1 the model of a trace', () => {
  it('SEE-1 tells of every call and turn what the trace tells: attempts, ends, states', async () => {
    for (const trace of await worlds(30)) {
      const model = heard(trace);
      for (const event of trace) {
        if (event.source === 'call' && event.type === 'settled') {
          const call = model.calls.get(event.callId);
          expect([call?.status, call?.attemptCount, call?.endMs]).toEqual([
            event.result.status,
            event.result.attempts,
            event.atMs,
          ]);
        }
        if (event.source === 'turn' && event.type === 'settled') {
          const turn = model.turns.get(event.turnId);
          expect(turn?.status).toBe(event.result.status);
          expect(turn?.nodes.map(({ nodeId, state }) => [nodeId, state])).toEqual(
            event.result.nodes.map(({ id, state }) => [id, state]),
          );
        }
      }
      const failures = trace.filter(({ type }) => type === 'attempt_failed').length;
      const told = [...model.calls.values()].flatMap(({ attempts }) =>
        attempts.filter(({ error, outcome }) => error !== undefined && outcome !== 'rejected'),
      );
      expect(told.length).toBe(failures);
    }
  });

  it('SEE-1 never throws and stays within its limits, whatever comes and in which order', async () => {
    const traces = await worlds(40);
    const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31);
    fc.assert(
      fc.property(
        fc.constantFrom(...traces),
        fc.array(fc.nat(2_000), { maxLength: 400 }),
        fc.nat(200),
        (trace, order, from) => {
          // Any part of the trace in any order, some events twice and some never.
          const shuffled = order.map((at) => trace[(from + at) % trace.length]).filter((event) => event !== undefined);
          const model = heard(shuffled, LIMITS);
          expect(sizeOf(model)).toBeLessThanOrEqual(SIZE_MAX);
          expect(model.calls.size).toBeLessThanOrEqual(LIMITS.calls);
          expect(model.turns.size).toBeLessThanOrEqual(LIMITS.turns);
          expect(pendingTimers(model).every(({ dueMs }) => Number.isFinite(dueMs))).toBe(true);
        },
      ),
      { seed, numRuns: 300 },
    );
  });

  it('SEE-1 never throws for events of which only the frame is one, as a foreign file may have them', async () => {
    const traces = await worlds(10);
    const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31);
    fc.assert(
      fc.property(
        fc.constantFrom(...traces.flat()),
        fc.dictionary(
          fc.constantFrom(
            'error',
            'result',
            'nodes',
            'turnId',
            'nodeId',
            'callId',
            'toolName',
            'tools',
            'breaker',
            'attempt',
            'decision',
            'report',
            'message',
            'needs',
            'state',
            'choices',
            'rule',
            'scope',
            'durationMs',
            'step',
            'by',
            'hook',
            'outcome',
            'finding',
            'would',
            'per',
            'left',
            'reason',
            'usage',
          ),
          // One that is no text either where a text is made of it.
          fc.oneof(fc.anything(), fc.constantFrom({ toString: 0 }, [{ toString: 0 }], { message: { toString: 0 } })),
        ),
        (event, spoilt) => {
          const foreign = JSON.parse(JSON.stringify({ ...event, ...spoilt }) ?? '{}') as TraceEvent;
          expect(() => heard([foreign, event, foreign], LIMITS)).not.toThrow();
        },
      ),
      { seed, numRuns: 3_000 },
    );
  });

  it('SEE-1 a name from elsewhere is one harmless line of bounded length', () => {
    const hostile = `<img src=x onerror=alert(1)>\u001b[2J\u202e\n${'x'.repeat(10_000)}`;
    const started: ToolEvent = {
      seq: 1,
      atMs: 5,
      source: 'call',
      callId: 'c',
      toolName: hostile,
      type: 'call_started',
    };
    const name = heard([started]).calls.get('c')?.toolName ?? '';
    expect(name.startsWith('<img src=x onerror=alert(1)> xxx')).toBe(true);
    expect([name.length <= 257, /[\u001b\u202e\n]/.test(name)]).toEqual([true, false]);
  });

  it('SEE-1 ten thousand calls cost ten times a thousand, and no more', () => {
    const trace = (calls: number): TraceEvent[] =>
      Array.from({ length: calls }, (_, index): TraceEvent[] => {
        const header = { source: 'call', callId: `c${index}`, toolName: 'search' } as const;
        return [
          { ...header, seq: 1, atMs: index, type: 'call_started' },
          { ...header, seq: 2, atMs: index, type: 'attempt_started', attempt: 1, dueAtMs: index + 50 },
          { ...header, seq: 3, atMs: index + 1, type: 'attempt_succeeded', attempt: 1, durationMs: 1 },
        ];
      }).flat();
    const [small, large] = [trace(1_000), trace(10_000)];
    // Touches of the lists that the model keeps, and not time: a machine may be busy.
    const touches = (events: readonly TraceEvent[]): number => {
      let count = 0;
      const model = emptyTrace({ calls: 500, events: 100 });
      const counted = new Proxy(model.calls, {
        get: (target, key) => {
          count++;
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === 'function' ? (value as (...args: never[]) => unknown).bind(target) : value;
        },
      });
      const watched: TraceModel = { ...model, calls: counted };
      for (const event of events) addEvent(watched, event);
      return count;
    };
    expect(touches(large)).toBeLessThanOrEqual(touches(small) * 12);
  });
});

describe('SEE-2 pending timers', () => {
  it('SEE-2 are told as the trace has them: timeout, backoff, cooldown, deadline, lease', () => {
    const call = { source: 'call', callId: 'c', toolName: 'search', turnId: 't', nodeId: 'n' } as const;
    const error = { kind: 'transport_error', message: 'reset' };
    const judged = { classification: 'transient', rule: 'code', breakerState: 'open' } as const;
    const events: TraceEvent[] = [
      {
        seq: 1,
        atMs: 10,
        source: 'turn',
        turnId: 't',
        type: 'turn_started',
        timeoutMs: 1_000,
        nodes: [{ id: 'n', toolName: 'search', needs: [] }],
      },
      { ...call, seq: 2, atMs: 20, type: 'call_started' },
      { ...call, seq: 3, atMs: 20, type: 'attempt_started', attempt: 1, dueAtMs: 70 },
      { ...call, seq: 4, atMs: 50, type: 'attempt_failed', attempt: 1, durationMs: 30, error, ...judged },
      {
        seq: 5,
        atMs: 50,
        source: 'layer',
        type: 'breaker_changed',
        toolName: 'search',
        scope: '',
        from: 'closed',
        to: 'open',
        untilMs: 350,
        message: '',
      },
      {
        ...call,
        seq: 6,
        atMs: 50,
        type: 'decision',
        attempt: 1,
        strategy: 'retry',
        code: 'transient',
        reason: '',
        delayMs: 100,
        error,
        classification: 'transient',
      },
      { seq: 7, atMs: 60, source: 'call', callId: 'd', toolName: 'pay', type: 'call_started' },
      {
        seq: 8,
        atMs: 60,
        source: 'call',
        callId: 'd',
        toolName: 'pay',
        type: 'dedupe',
        step: 'waiting',
        keyFingerprint: 'f',
        leaseUntilMs: 500,
      },
    ];
    const due = (count: number): unknown[] =>
      pendingTimers(heard(events.slice(0, count))).map(({ kind, dueMs }) => [kind, dueMs]);
    expect(due(1)).toEqual([['deadline', 1_010]]);
    expect(due(3)).toEqual([
      ['deadline', 1_010],
      ['timeout', 70],
    ]);
    expect(due(8)).toEqual([
      ['deadline', 1_010],
      ['backoff', 150],
      ['lease', 500],
      ['cooldown', 350],
    ]);
  });
});
