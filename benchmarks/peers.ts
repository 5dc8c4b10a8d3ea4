import {
  ConsecutiveBreaker,
  ConstantBackoff,
  ExponentialBackoff,
  TimeoutStrategy,
  circuitBreaker as cockatielBreaker,
  handleAll,
  retry as cockatielRetry,
  timeout as cockatielTimeout,
  wrap,
  type IPolicy,
} from 'cockatiel';
import { createRequire } from 'node:module';

export const TIMEOUT_MS = 2_000;
export const ATTEMPTS = 4;
export const COOLDOWN_MS = 30_000;

/** As much of opossum's types as is used here: it ships none. */
interface OpossumBreaker<I, O> {
  fire(input: I): Promise<O>;
  shutdown(): void;
}
type Opossum = new <I, O>(action: (input: I) => Promise<O>, options: object) => OpossumBreaker<I, O>;
export const OpossumBreaker = createRequire(import.meta.url)('opossum') as Opossum;

/** cockatiel's retry, breaker and timeout in the same order, five failures in a row open it. */
export const cockatielStack = (backoff: 'exponential' | 'none'): IPolicy =>
  wrap(
    cockatielRetry(handleAll, {
      maxAttempts: ATTEMPTS - 1,
      backoff: backoff === 'none' ? new ConstantBackoff(0) : new ExponentialBackoff(),
    }),
    cockatielBreaker(handleAll, { halfOpenAfter: COOLDOWN_MS, breaker: new ConsecutiveBreaker(5) }),
    cockatielTimeout(TIMEOUT_MS, TimeoutStrategy.Aggressive),
  );
