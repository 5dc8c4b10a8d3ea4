import { Effect } from 'effect';
import pRetry from 'p-retry';
import { defer, lastValueFrom, retry, timeout } from 'rxjs';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, retryBackoff } from '../src/index.ts';
import { guard } from '../src/operators/guard.ts';
import { ATTEMPTS, COOLDOWN_MS, OpossumBreaker, TIMEOUT_MS, cockatielStack } from './peers.ts';
import { sideBySide, type Question, type Ways } from './measure.ts';

const CALLS = 5_000;
const ROUNDS = 25;

/** Work that is given a signal, and does not wait. */
const work = async (n: number, signal?: AbortSignal): Promise<number> => (signal?.aborted === true ? Number.NaN : n);

/** Calls one after the other; what they give is added up, so that none can be left out. */
export const added = (calls: number, call: (n: number) => Promise<unknown>) => async (): Promise<void> => {
  let total = 0;
  for (let n = 0; n < calls; n++) total += Number(await call(n));
  if (total !== (calls * (calls - 1)) / 2) throw new Error(`the work was not done: ${total}`);
};

/** What a retry, a breaker and a timeout cost where nothing fails. */
export async function benchmarkGuard(): Promise<Question> {
  const breaker = createBreaker({ cooldownMs: COOLDOWN_MS });
  const [limited, broken, retried] = [
    attemptTimeout(TIMEOUT_MS),
    circuitBreaker(breaker),
    retryBackoff({ maxAttempts: ATTEMPTS }),
  ];
  const guarded = guard({ timeoutMs: TIMEOUT_MS, breaker, retry: { maxAttempts: ATTEMPTS } });
  const cockatiel = cockatielStack('exponential');
  const opossum = new OpossumBreaker((n: number) => work(n), { timeout: TIMEOUT_MS, resetTimeout: COOLDOWN_MS });
  const ways: Ways = {
    'bare await': added(CALLS, (n) => work(n)),
    'guard.from': added(CALLS, (n) => lastValueFrom(guarded.from(({ signal }) => work(n, signal)))),
    'guard.from, no signal asked for': added(CALLS, (n) => lastValueFrom(guarded.from(() => work(n)))),
    'abortable, guard': added(CALLS, (n) => lastValueFrom(abortable((signal) => work(n, signal)).pipe(guarded))),
    'abortable and the three operators': added(CALLS, (n) =>
      lastValueFrom(abortable((signal) => work(n, signal)).pipe(limited, broken, retried)),
    ),
    'RxJS: timeout, retry': added(CALLS, (n) =>
      lastValueFrom(defer(() => work(n)).pipe(timeout(TIMEOUT_MS), retry(ATTEMPTS - 1))),
    ),
    'p-retry: retry': added(CALLS, (n) => pRetry(() => work(n), { retries: ATTEMPTS - 1 })),
    'opossum: breaker, timeout': added(CALLS, (n) => opossum.fire(n)),
    'cockatiel: retry, breaker, timeout': added(CALLS, (n) => cockatiel.execute(({ signal }) => work(n, signal))),
    'Effect: timeout, retry': added(CALLS, (n) =>
      Effect.runPromise(
        Effect.tryPromise({ try: (signal) => work(n, signal), catch: (thrown) => thrown }).pipe(
          Effect.timeout(TIMEOUT_MS),
          Effect.retry({ times: ATTEMPTS - 1 }),
        ),
      ),
    ),
  };
  const { figures, ratio } = await sideBySide(ways, CALLS, ROUNDS);
  opossum.shutdown();
  const [three, stack, effect] = [
    'abortable and the three operators',
    'cockatiel: retry, breaker, timeout',
    'Effect: timeout, retry',
  ] as const;
  return {
    question: 'What do retry, breaker and timeout cost where nothing fails?',
    figures,
    ratios: { 'guard.from / cockatiel': ratio('guard.from', stack) },
    targets: [
      { name: 'three operators composed / cockatiel’s stack', value: ratio(three, stack), limit: 0.42, unit: 'x' },
      {
        name: 'three operators composed / Effect’s timeout and retry',
        value: ratio(three, effect),
        limit: 0.5,
        unit: 'x',
      },
    ],
  };
}
