import { Observable, concatMap } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';

/** `30s`, `1.5s`, `200ms`. */
const worded = (ms: number): string => (ms >= 1000 ? `${Number((ms / 1000).toFixed(3))}s` : `${ms}ms`);

/** The error of an attempt that took too long. It may have taken effect. */
export const timeoutError = (timeoutMs: number, what = 'Tool timeout'): ToolExecutionError =>
  new ToolExecutionError('timeout', `${what} after ${worded(timeoutMs)}`, { uncertain: true, details: { timeoutMs } });

/**
 * Emits once `ms` have passed and what was due at the same instant has had its turn: a result beats its deadline.
 * The second wait also lets in answers that arrived while the event loop was stalled.
 */
export const expiry = (ms: number, runtime: Runtime): Observable<0> => runtime.after(ms).pipe(concatMap(() => runtime.after(0)));

/**
 * A hard limit on a stream, from subscription to completion: at `timeoutMs` it errors, whether or not the source reacts to being unsubscribed.
 *
 * Emits what the source emits until then. A completion at the very instant of the deadline beats it.
 *
 * @param timeoutMs the limit in milliseconds, above 0
 * @param runtime where time comes from
 * @throws RangeError for a limit out of range; (as the stream's error) `timeout`, transient and uncertain
 *
 * @example
 * search$.pipe(attemptTimeout(2_000));
 */
export function attemptTimeout(timeoutMs: number, runtime: Runtime = liveRuntime): <T>(source: Observable<T>) => Observable<T> {
  checkNumber('timeoutMs', timeoutMs, positiveDuration);
  return <T>(source: Observable<T>): Observable<T> =>
    new Observable<T>((subscriber) => {
      // The source first: what it settles synchronously needs no timer, and at one instant it comes before the deadline.
      source.subscribe(subscriber);
      if (!subscriber.closed) subscriber.add(expiry(timeoutMs, runtime).subscribe(() => subscriber.error(timeoutError(timeoutMs))));
    });
}
