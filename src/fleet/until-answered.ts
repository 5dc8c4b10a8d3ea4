import { defer, retry, throwError, type Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';

/** Between two questions to a ledger that gives no answer: it is soon asked again, and not hammered. */
const FIRST_MS = 50;
const LAST_MS = 1_000;

/** Whether asking again can help: the ledger gave no answer, and refused nothing. */
const isSilent = (error: unknown): boolean =>
  isToolExecutionError(error) && error.kind === 'store_unavailable' && error.classification !== 'permanent';

/**
 * Asks a ledger until it answers, for as long as `maxMs`; errors with its refusal.
 *
 * ```
 * question               -#
 * again                     -#
 * again                          -a|
 * untilAnswered          --------a|
 * ```
 */
export const untilAnswered = <T>(
  question: () => Promise<T>,
  runtime: Runtime,
  maxMs: number = Infinity,
): Observable<T> =>
  defer(() => {
    const endMs = runtime.now() + maxMs;
    return defer(question).pipe(
      retry({
        delay: (error: unknown, count) =>
          isSilent(error) && runtime.now() < endMs
            ? runtime.after(Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(10, count - 1)))
            : throwError(() => error),
      }),
    );
  });
