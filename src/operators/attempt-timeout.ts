import type { Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { ATTEMPT_TIMEOUT_MS } from '../policy/profile.ts';
import { liveRuntime } from '../runtime.ts';
import { overdue } from './timing/expiry.ts';
import { limitedBy } from './timing/limited-by.ts';

/** `30s`, `1.5s`, `200ms`. */
const worded = (ms: number): string => (ms >= 1000 ? `${Number((ms / 1000).toFixed(3))}s` : `${ms}ms`);

const limits = new WeakMap<ToolExecutionError, number>();

/** The error of an attempt that took too long. It may have taken effect. */
export const timeoutError = (timeoutMs: number, what = 'Tool timeout'): ToolExecutionError => {
  const error = new ToolExecutionError('timeout', `${what} after ${worded(timeoutMs)}`, {
    uncertain: true,
    details: { timeoutMs },
  });
  limits.set(error, timeoutMs);
  return error;
};

/**
 * The limit that passed, where this package made the timeout: an error of anyone else's could hold any number there.
 */
export const limitOf = (error: ToolExecutionError): number | undefined => limits.get(error);

/**
 * A hard limit on a stream, from subscription to completion: at `timeoutMs` it errors, whether or not the source reacts
 * to being unsubscribed.
 *
 * ```
 * source              --a-------------b|
 * attemptTimeout(8)   --a-----#
 * ```
 *
 * Emits what the source emits until then. A completion at the very instant of the deadline beats it. The source
 * is unsubscribed before the error is emitted, so that nothing of it overlaps with what follows.
 *
 * @param timeoutMs the limit in milliseconds, above 0; 30,000 by default (SI 4.1)
 * @param runtime where time comes from
 * @throws RangeError for a limit out of range; (as the stream's error) `timeout`, transient and uncertain
 *
 * @example
 * search$.pipe(attemptTimeout(2_000));
 */
export function attemptTimeout(
  timeoutMs: number = ATTEMPT_TIMEOUT_MS,
  runtime: Runtime = liveRuntime,
): <T>(source: Observable<T>) => Observable<T> {
  checkNumber('timeoutMs', timeoutMs, positiveDuration);
  return limitedBy(() => overdue(timeoutMs, runtime, timeoutError));
}
