import { defer, retry, switchMap, throwError, type Observable } from 'rxjs';
import type { RetryPolicy } from '../../../src/contract/policy.ts';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { backoffDelayMs, retryPolicy } from '../../../src/policy/retry/backoff.ts';
import type { Operator, Read } from './operators.ts';

/** What of a call bears on its retries. */
interface Around {
  /** When its turn is over. */
  readonly deadlineMs?: number;
  /** Told of a failure that is not retried, and whether the server's own pushback alone forbade it. */
  readonly ended?: (byPushback: boolean) => void;
}

/**
 * another attempt after each failure that may be retried, while attempts and time are left.
 * The delays are the policy's own: gives them as formulas of chance, which have tests of their own.
 */
export const retryBackoff =
  (
    policy: Partial<RetryPolicy>,
    runtime: Runtime,
    read: Read,
    { deadlineMs = Infinity, ended }: Around = {},
  ): Operator =>
  (source) =>
    defer(() => {
      const settings = retryPolicy(policy);
      const overMs = Math.min(runtime.now() + settings.maxTotalTimeMs, deadlineMs);
      let previousMs: number | undefined;
      const delay = (error: unknown, attempt: number): Observable<unknown> => {
        const { retriable, retryAfterMs = 0 } = read(error);
        const delayMs = backoffDelayMs(settings, attempt - 1, previousMs, () => runtime.random());
        const waitMs = Math.max(delayMs, retryAfterMs);
        const mayRetry = retriable && attempt < settings.maxAttempts && runtime.now() + delayMs < overMs;
        if (!mayRetry || retryAfterMs < 0 || runtime.now() + waitMs >= overMs) {
          ended?.(mayRetry && retryAfterMs < 0);
          return throwError(() => error);
        }
        previousMs = delayMs;
        // A timer can come late, and no attempt starts once the time is over.
        return runtime.after(waitMs).pipe(switchMap(() => (runtime.now() >= overMs ? throwError(() => error) : [0])));
      };
      return source.pipe(retry({ delay }));
    });
