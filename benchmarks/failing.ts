import { Effect } from 'effect';
import pRetry from 'p-retry';
import { lastValueFrom } from 'rxjs';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, retryBackoff } from '../src/index.ts';
import { guard } from '../src/operators/guard.ts';
import { ATTEMPTS, TIMEOUT_MS, cockatielStack } from './peers.ts';
import { sideBySide, type Question } from './measure.ts';

const CALLS = 200;
const ROUNDS = 7;

/** Fails three times, then succeeds: once for each call. */
const flaky = (): (() => Promise<number>) => {
  let attempts = 0;
  return async () => {
    if (++attempts < ATTEMPTS) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
    return attempts;
  };
};

const checked = async (call: (work: () => Promise<number>) => Promise<number>): Promise<void> => {
  if ((await call(flaky())) !== ATTEMPTS) throw new Error('not all attempts were made');
};

/**
 * Three failed attempts and a success, without a backoff: one call after the other, and many at once, where timers cost
 * nothing.
 */
export async function benchmarkFailing(): Promise<Question> {
  // Three of four attempts fail: the rate rule is off, as it is in cockatiel's breaker.
  const breaker = createBreaker({ failureRate: Infinity, failureThreshold: Infinity });
  const policy = { strategy: 'constant', initialDelayMs: 0, jitterPercent: 0, maxAttempts: ATTEMPTS } as const;
  const [limited, broken, retried] = [attemptTimeout(TIMEOUT_MS), circuitBreaker(breaker), retryBackoff(policy)];
  const guarded = guard({ timeoutMs: TIMEOUT_MS, breaker, retry: policy });
  // A breaker of its own for each call: the failures of many at once would follow each other, and open one that they
  // share.
  const calls: Readonly<Record<string, (work: () => Promise<number>) => Promise<number>>> = {
    'guard.from': (work) => lastValueFrom(guarded.from(() => work())),
    'abortable and the three operators': (work) =>
      lastValueFrom(abortable(() => work()).pipe(limited, broken, retried)),
    'p-retry: retry': (work) =>
      pRetry(work, { retries: ATTEMPTS - 1, minTimeout: 0, maxTimeout: 0, shouldRetry: () => true }),
    'Effect: timeout, retry': (work) =>
      Effect.runPromise(
        Effect.tryPromise({ try: () => work(), catch: (thrown) => thrown }).pipe(
          Effect.timeout(TIMEOUT_MS),
          Effect.retry({ times: ATTEMPTS - 1 }),
        ),
      ),
    'cockatiel: retry, breaker, timeout': async (work) => cockatielStack('none').execute(() => work()),
  };
  const inTurn = await sideBySide(
    Object.fromEntries(
      Object.entries(calls).map(([name, call]) => [
        name,
        async () => {
          for (let n = 0; n < CALLS; n++) await checked(call);
        },
      ]),
    ),
    CALLS,
    ROUNDS,
  );
  const atOnce = await sideBySide(
    Object.fromEntries(
      Object.entries(calls).map(([name, call]) => [
        `${name}, ${CALLS} at once`,
        async () => void (await Promise.all(Array.from({ length: CALLS }, () => checked(call)))),
      ]),
    ),
    CALLS,
    ROUNDS,
  );
  const stack = 'cockatiel: retry, breaker, timeout';
  return {
    question: 'What do three failed attempts and a success cost, without a backoff?',
    figures: [...inTurn.figures, ...atOnce.figures],
    ratios: {
      'guard / cockatiel’s stack, at once': atOnce.ratio(`guard.from, ${CALLS} at once`, `${stack}, ${CALLS} at once`),
      'three operators composed / cockatiel’s stack, at once': atOnce.ratio(
        `abortable and the three operators, ${CALLS} at once`,
        `${stack}, ${CALLS} at once`,
      ),
    },
    targets: [
      {
        name: 'guard / cockatiel’s stack, failing path',
        value: inTurn.ratio('guard.from', stack),
        limit: 0.2,
        unit: 'x',
      },
      {
        name: 'three operators composed / cockatiel’s stack, failing path',
        value: inTurn.ratio('abortable and the three operators', stack),
        limit: 0.2,
        unit: 'x',
      },
    ],
  };
}
