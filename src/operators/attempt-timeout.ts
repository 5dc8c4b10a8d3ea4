import type { Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { DirectStream } from './direct-stream.ts';
import { queueOf } from './expiry.ts';
import { LimitedSubscriber } from './limited-subscriber.ts';

/** `30s`, `1.5s`, `200ms`. */
const worded = (ms: number): string => (ms >= 1000 ? `${Number((ms / 1000).toFixed(3))}s` : `${ms}ms`);

/** The error of an attempt that took too long. It may have taken effect. */
export const timeoutError = (timeoutMs: number, what = 'Tool timeout'): ToolExecutionError =>
  new ToolExecutionError('timeout', `${what} after ${worded(timeoutMs)}`, { uncertain: true, details: { timeoutMs } });

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
  const deadlines = queueOf(timeoutMs, runtime);
  return <T>(source: Observable<T>): Observable<T> =>
    new DirectStream((subscriber) => {
      const startedAtMs = runtime.now();
      const attempt = new LimitedSubscriber(subscriber);
      source.subscribe(attempt);
      if (!attempt.closed) attempt.deadline = deadlines.addFrom(startedAtMs, () => attempt.overtake(timeoutError(timeoutMs)));
    });
}
