import { ToolExecutionError, type ToolPolicy, type ToolResultEnvelope } from 'spillway';
import { toolResultEnvelopeSchema } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent, transient } from '../support.ts';
import { World, answers, envelope, fails, hangs, noBackoff, once, typed, type Step } from './kit.ts';

type Expected = Pick<ToolResultEnvelope, 'status' | 'attempts'> & {
  readonly terminal?: boolean;
  readonly code?: string;
  readonly retries?: number;
};
interface Row {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly policy?: ToolPolicy;
  readonly expected: Expected;
}

const uncertain = new ToolExecutionError('transport_error', 'lost in mid-call', { uncertain: true });
const ROWS: readonly Row[] = [
  { name: 'an answer', steps: [answers(5)], expected: { status: 'success', attempts: 1 } },
  {
    name: 'an answer on the third attempt',
    steps: [fails(5, transient), fails(5, transient), answers(5)],
    expected: { status: 'success', attempts: 3, retries: 2 },
  },
  {
    name: 'a permanent failure',
    steps: [fails(5, permanent)],
    expected: { status: 'error', attempts: 1, terminal: true, code: 'execution_error' },
  },
  {
    name: 'a permanent failure after a retry',
    steps: [fails(5, transient), fails(5, permanent)],
    expected: { status: 'error', attempts: 2, terminal: true, retries: 1 },
  },
  {
    name: 'attempts used up',
    steps: [fails(5, transient)],
    policy: { retry: { ...noBackoff, maxAttempts: 3 } },
    expected: { status: 'retry_exhausted', attempts: 3, terminal: false, retries: 2 },
  },
  {
    name: 'time used up after retries',
    steps: [fails(600, transient)],
    policy: { retry: noBackoff },
    expected: { status: 'retry_exhausted', attempts: 4, retries: 3 },
  },
  {
    name: 'the breaker opened by its own failures',
    steps: [fails(5, transient)],
    policy: { retry: noBackoff, breaker: { failureThreshold: 2 } },
    expected: { status: 'retry_exhausted', attempts: 2, code: 'transport_error', retries: 1 },
  },
  {
    name: 'a time-out of the one attempt',
    steps: [hangs],
    policy: { timeoutMs: 50, retry: once },
    expected: { status: 'timeout', attempts: 1, terminal: false, code: 'timeout' },
  },
  {
    name: 'a time-out for which no time is left',
    steps: [hangs],
    expected: { status: 'timeout', attempts: 1, code: 'timeout' },
  },
  {
    name: 'time-outs after retries',
    steps: [hangs],
    policy: { timeoutMs: 50, retry: { ...noBackoff, maxAttempts: 2 } },
    expected: { status: 'retry_exhausted', attempts: 2, code: 'timeout', retries: 1 },
  },
  {
    name: 'a transient failure of the one attempt',
    steps: [fails(5, transient)],
    policy: { retry: once },
    expected: { status: 'retriable_error', attempts: 1, terminal: false },
  },
  {
    name: 'an uncertain mutation',
    steps: [fails(5, uncertain)],
    policy: { effects: 'mutating' },
    expected: { status: 'retriable_error', attempts: 1, terminal: false },
  },
  {
    name: 'a Retry-After beyond the time left',
    steps: [fails(5, new ToolExecutionError('execution_error', 'later', { status: 429, retryAfterMs: 60_000 }))],
    expected: { status: 'retriable_error', attempts: 1 },
  },
  {
    name: 'a server that wants no retry',
    steps: [fails(5, new ToolExecutionError('execution_error', 'no', { status: 503, retryAfterMs: -1 }))],
    expected: { status: 'retriable_error', attempts: 1 },
  },
  {
    name: 'a store that is away',
    steps: [fails(5, new ToolExecutionError('store_unavailable', 'gone'))],
    policy: { retry: once },
    expected: { status: 'retriable_error', attempts: 1, code: 'store_unavailable' },
  },
];

describe('R-2.8 status', () => {
  it.each(ROWS)('R-2.8 $name is $expected.status', ({ steps, policy = { retry: noBackoff }, expected }) =>
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', steps, policy);
      const result = world.call(world.layer([tried]), 'flight_search');
      const { status, attempts, terminal, code, retries = 0 } = expected;
      expect(result).toMatchObject({ status, attempts, toolName: 'flight_search', fromCache: false });
      expect(result.retriedBy ?? []).toHaveLength(retries);
      expect(tried.starts).toHaveLength(attempts);
      if (status === 'success') expect(result).not.toHaveProperty('error');
      else expect(result).not.toHaveProperty('output');
      if (terminal !== undefined) expect(result.error).toMatchObject({ terminal, retriable: !terminal });
      if (code !== undefined) expect(result.error?.code).toBe(code);
      expect(toolResultEnvelopeSchema.parse(result)).toStrictEqual(result);
      expect(world.runtime.timers).toBe(0);
    })(),
  );

  it(
    'R-2.8 circuit_open when the breaker rejected its first attempt',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [answers(5)]);
      const layer = world.layer([tried]);
      layer.breakers.get('flight_search').forceOpen();
      const result = world.call(layer, 'flight_search');
      expect(result).toMatchObject({
        status: 'circuit_open',
        attempts: 0,
        durationMs: 0,
        error: { code: 'circuit_open', terminal: false, breakerState: 'forced_open' },
      });
      expect(tried.starts).toStrictEqual([]);
    }),
  );

  it(
    'R-2.8 a retry that meets a breaker opened meanwhile was not made: the failure before it stands',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], { retry: { jitterPercent: 0 } });
      const layer = world.layer([tried]);
      world.at(50, () => layer.breakers.get('flight_search').forceOpen());
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'retriable_error',
        attempts: 1,
        durationMs: 100,
        error: { code: 'transport_error' },
      });
      expect(tried.starts).toStrictEqual([0]);
    }),
  );

  it(
    'R-2.8 retriable_error when the shared budget forbids the first retry',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient)], { retry: noBackoff });
      const layer = world.layer([tried], { retryBudget: { ratio: 0, minPerSecond: 0 } });
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'retriable_error',
        attempts: 1,
        error: { code: 'transport_error', terminal: false },
      });
    }),
  );

  it(
    'R-2.8 retry_exhausted when the budget ends a row of retries',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient)], { retry: noBackoff });
      const layer = world.layer([tried], { retryBudget: { ratio: 0, minPerSecond: 2, windowMs: 1_000 } });
      expect(world.call(layer, 'flight_search')).toMatchObject({ status: 'retry_exhausted', attempts: 3 });
    }),
  );

  it(
    'R-2.8 error, terminal, for unknown tools, invalid input and cancellation',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const layer = world.layer([world.scripted('slow', [hangs])]);
      expect(world.call(layer, 'nobody')).toMatchObject({
        status: 'error',
        attempts: 0,
        error: { code: 'unknown_tool', terminal: true },
      });
      expect(world.call(layer, { ...envelope('slow'), toolName: '' })).toMatchObject({
        status: 'error',
        attempts: 0,
        error: { code: 'invalid_parameters', terminal: true },
      });
      world.at(20, () => controller.abort());
      expect(world.call(layer, 'slow', controller.signal)).toMatchObject({
        status: 'error',
        attempts: 1,
        error: { code: 'canceled', terminal: true },
      });
    }),
  );

  it(
    'R-2.8 retriedBy and durationMs are true to what happened',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient), fails(7, transient), answers(11)], {
        retry: { jitterPercent: 0 },
      });
      expect(world.call(world.layer([tried]), 'flight_search')).toMatchObject({
        durationMs: 5 + 100 + 7 + 200 + 11,
        attempts: 3,
        retriedBy: [
          { attempt: 1, delayMs: 100, reasonCode: 'transport_error', latencyMs: 5 },
          { attempt: 2, delayMs: 200, reasonCode: 'transport_error', latencyMs: 7 },
        ],
      });
      expect(tried.starts).toStrictEqual([0, 105, 312]);
    }),
  );

  it.each([
    [1_000, [0, 500]],
    [1_001, [0, 500, 1_000]],
  ] as const)('R-2.3 no attempt starts at maxTotalTimeMs (%i) or after', (maxTotalTimeMs, starts) =>
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(500, transient)], {
        retry: { ...noBackoff, maxTotalTimeMs },
      });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      world.call(layer, 'flight_search');
      expect(tried.starts).toStrictEqual(starts);
      expect(typed(trace, 'decision').at(-1)).toMatchObject({ code: 'time_exhausted' });
    })(),
  );

  it(
    'R-2.1 delays stop growing at the cap',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], {
        retry: { jitterPercent: 0, maxDelayMs: 150, maxAttempts: 4 },
      });
      world.call(world.layer([tried]), 'flight_search');
      expect(tried.starts).toStrictEqual([0, 100, 250, 400]);
    }),
  );

  it(
    'R-2.8 a call that ended during the wait made no retry',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const tried = world.scripted('flight_search', [fails(5, transient)], { retry: { jitterPercent: 0 } });
      world.at(50, () => controller.abort());
      const result = world.call(world.layer([tried]), 'flight_search', controller.signal);
      expect(result).toMatchObject({ status: 'error', attempts: 1, durationMs: 50, error: { code: 'canceled' } });
      expect(result.retriedBy ?? []).toHaveLength(0);
      expect(world.runtime.timers).toBe(0);
    }),
  );
});
