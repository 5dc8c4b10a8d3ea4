import { Observable } from 'rxjs';
import type { ToolOutput } from '../../contract/output.ts';
import { AttemptSignal } from './attempt-signal.ts';
import { startWork } from './output.ts';

/**
 * A stream of work that takes an `AbortSignal`: each subscription starts it anew with a signal of its own, and
 * unsubscribing aborts that signal. Work that has settled is not aborted after the fact.
 *
 * ```
 * work              ----(a|)
 * abortable(work)   ----(a|)
 * unsubscribed      --!          the signal is aborted at that instant
 * ```
 *
 * @param start gives a value, a Promise, an Observable or an AsyncIterable; a synchronous throw becomes the stream's
 * error
 *
 * @example
 * abortable((signal) => fetch('https://example.com', { signal })).pipe(attemptTimeout(2_000), retryBackoff());
 */
export function abortable<T>(start: (signal: AbortSignal) => ToolOutput<T>): Observable<T> {
  return new Observable((subscriber) => {
    const own = new AttemptSignal();
    startWork(subscriber, () => start(own.signal), own);
  });
}
