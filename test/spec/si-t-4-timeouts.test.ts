import { classify, plan, ToolExecutionError } from 'spillway';
import { describe, expect, it } from 'vitest';
import { toTurnTrace } from '../../src/sinks/turn-trace.ts';
import { marbles } from '../marbles.ts';
import { World, answers, hangs, noJitter, states, typed } from '../call/kit.ts';

/** Section 14: with the interactive total of 2 s a timeout of 30 s is never retried. */
const policy = { timeoutMs: 30_000, retry: { ...noJitter, maxTotalTimeMs: 120_000 } } as const;

describe('SI-T 4 timeouts', () => {
  it(
    'SI-T 4.1 the per-tool timeout terminates the tool',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [hangs, answers(10)], policy);
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      const seen = world.watch(layer.call({ toolName: 'flight_search' }));
      let at25s = '';
      world.at(25_000, () => (at25s = `${seen.events.at(-1)?.type}, ${tried.aborts.length} aborted`));
      world.flush();
      expect(at25s).toBe('attempt_started, 0 aborted');
      expect(tried.aborts).toStrictEqual([30_000]);
      expect(typed(trace, 'attempt_failed')).toMatchObject([
        {
          atMs: 30_000,
          durationMs: 30_000,
          classification: 'transient',
          timeoutMs: 30_000,
          error: { kind: 'timeout', message: 'Tool timeout after 30s', uncertain: true },
        },
      ]);
      expect(typed(trace, 'decision')).toMatchObject([{ strategy: 'retry', delayMs: 100 }]);
      expect(tried.starts).toStrictEqual([0, 30_100]);
      expect(seen.events.at(-1)).toMatchObject({ type: 'settled', result: { status: 'success', attempts: 2 } });
    }),
  );

  it.each([
    ['Completed flight search, but hotel search timed out', ['hotel_search']],
    ['Completed flight search, but hotel search and activity search timed out', ['hotel_search', 'activity_search']],
  ] as const)('SI-T 4.2 the per-turn timeout collects partial results: %s', (summary, slow) =>
    marbles((m) => {
      const world = new World(m);
      const patient = { timeoutMs: 400_000 } as const;
      const layer = world.layer([
        world.scripted('flight_search', [answers(50_000, { id: 'AY73' })], patient),
        ...slow.map((name) => world.scripted(name, [hangs], patient)),
      ]);
      const planned = plan.from(
        ['flight_search', ...slow].map((name) => ({ id: name, tool: name })),
        { timeoutMs: 300_000 },
      );
      const result = world.turn(layer, planned);
      expect(states(result)).toStrictEqual({
        flight_search: 'succeeded',
        ...Object.fromEntries(slow.map((name) => [name, 'timed_out'])),
      });
      expect(result).toMatchObject({
        settledAtMs: 300_000,
        status: 'partial',
        values: { flight_search: { id: 'AY73' } },
        summary,
      });
    })(),
  );

  it(
    'SI-T 4.3 a timeout is a transient error',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [hangs, answers(10)], policy);
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'success',
        attempts: 2,
        retriedBy: [{ reasonCode: 'timeout', latencyMs: 30_000 }],
      });
      expect(typed(trace, 'attempt_failed')).toMatchObject([{ classification: 'transient' }]);
      expect(classify(new ToolExecutionError('timeout', 'Tool timeout after 30s'))).toMatchObject({
        classification: 'transient',
        rule: 'kind',
      });
    }),
  );

  it(
    'SI-T 4.4 timeouts are recorded in the turn trace',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [hangs, answers(10)], policy)]);
      const trace = world.watch(layer.trace$).events;
      world.turn(layer, plan.from([{ id: 'flights', tool: 'flight_search' }]));
      const entries = trace.map((event) => toTurnTrace(event)).filter((entry) => entry?.event_type === 'ToolTimeout');
      expect(entries).toMatchObject([
        { event_type: 'ToolTimeout', tool_id: 'flight_search', timeout_ms: 30_000, timestamp: '1970-01-01T00:00:30Z' },
      ]);
    }),
  );
});
