import { ToolExecutionError, plan } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';
import {
  World,
  answers,
  fails,
  hangs,
  noBackoff,
  noJitter,
  nodeOf,
  once,
  resultOf,
  states,
  typed,
} from '../call/kit.ts';

/** Section 14: 7.3 and 7.4 have no backoff, and 120,000 in all. */
const retry = { ...noBackoff, maxTotalTimeMs: 120_000 } as const;

describe('SI-T 7 edge cases', () => {
  it(
    'SI-T 7.1 rapid sequential failures: 1 to 4 are retried, the fifth opens, 6 to 10 are rejected',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], {
        retry: { ...noBackoff, maxAttempts: 10 },
      });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'retry_exhausted',
        attempts: 5,
        error: { breakerState: 'open' },
      });
      expect(typed(trace, 'decision').map(({ strategy, code }) => `${strategy} ${code}`)).toStrictEqual([
        ...Array.from({ length: 4 }, () => 'retry transient'),
        'escalate circuit_open',
      ]);
      for (let failure = 6; failure <= 10; failure++) {
        const seen = world.watch(layer.call({ toolName: 'flight_search' }));
        expect(resultOf(seen.events)).toMatchObject({ status: 'circuit_open', attempts: 0 });
      }
      expect(tried.starts).toHaveLength(5);
      expect(layer.breakers.get('flight_search').state.type).toBe('open');
    }),
  );

  it(
    'SI-T 7.2 mixed transient and permanent errors: the counter ends at 1',
    marbles((m) => {
      const world = new World(m);
      const errors = [
        new ToolExecutionError('timeout', 'Tool timeout after 30s'),
        new Error('Invalid airport code: XYZ'),
        new Error('Rate limit exceeded (429)'),
      ];
      const layer = world.layer([
        world.scripted(
          'flight_search',
          errors.map((error) => fails(0, error)),
          { retry: once },
        ),
      ]);
      const count = (): number => layer.breakers.get('flight_search').state.consecutiveFailures;
      const counts: number[] = [];
      for (const _ of errors) {
        world.call(layer, 'flight_search');
        counts.push(count());
      }
      expect(counts).toStrictEqual([1, 0, 1]);
    }),
  );

  it(
    'SI-T 7.2 the transient ones are retried, the permanent one escalates',
    marbles((m) => {
      const world = new World(m);
      const errors = [
        new ToolExecutionError('timeout', 'Tool timeout after 30s'),
        new Error('Invalid airport code: XYZ'),
        new Error('Rate limit exceeded (429)'),
      ];
      const layer = world.layer([
        world.scripted('flight_search', [...errors.map((error) => fails(0, error)), answers(0)], { retry: noJitter }),
      ]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({ status: 'error', attempts: 2 });
      expect(world.call(layer, 'flight_search')).toMatchObject({ status: 'success', attempts: 2 });
      expect(typed(trace, 'decision').map(({ strategy }) => strategy)).toStrictEqual(['retry', 'escalate', 'retry']);
    }),
  );

  it(
    'SI-T 7.3 a timeout during a retry: the second attempt is terminated at 55 s, and the turn’s 60 s still stand',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(25_000, transient), hangs], { timeoutMs: 30_000, retry });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(layer, plan.from([{ id: 'flights', tool: 'flight_search' }], { timeoutMs: 60_000 }));
      expect(tried.starts).toStrictEqual([0, 25_000, 55_000]);
      expect(tried.aborts[0]).toBe(55_000);
      expect(typed(trace, 'attempt_failed').slice(0, 2)).toMatchObject([
        { atMs: 25_000 },
        { atMs: 55_000, classification: 'transient', error: { kind: 'timeout' } },
      ]);
      expect(typed(trace, 'decision').slice(0, 2)).toMatchObject([{ strategy: 'retry' }, { strategy: 'retry' }]);
      expect(result).toMatchObject({ settledAtMs: 60_000, nodes: [{ state: 'timed_out' }] });
    }),
  );

  it(
    'SI-T 7.4 the turn’s timeout during a retry: interrupted at 60 s, partial results, no retry',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(25_000, transient), hangs], { timeoutMs: 40_000, retry });
      const layer = world.layer([tried, world.scripted('hotel_search', [answers(5_000, 'Park')])]);
      const trace = world.watch(layer.trace$).events;
      const planned = plan.from(
        [
          { id: 'flights', tool: 'flight_search' },
          { id: 'hotels', tool: 'hotel_search' },
        ],
        { timeoutMs: 60_000, onDeadline: 'abort' },
      );
      const result = world.turn(layer, planned);
      expect(tried.starts).toStrictEqual([0, 25_000]);
      expect(tried.aborts).toStrictEqual([60_000]);
      expect(states(result)).toStrictEqual({ flights: 'timed_out', hotels: 'succeeded' });
      expect(nodeOf(result, 'flights').reason).toContain('running');
      expect(result).toMatchObject({
        settledAtMs: 60_000,
        status: 'partial',
        values: { hotels: 'Park' },
        summary: 'Completed hotel search, but flight search timed out',
      });
      expect(typed(trace, 'decision').map(({ strategy, code }) => `${strategy} ${code}`)).toStrictEqual([
        'retry transient',
        'partial turn_deadline',
      ]);
      expect(trace.at(-1)).toMatchObject({ source: 'turn', type: 'settled' });
      expect(world.runtime.timers).toBe(0);
    }),
  );
});
