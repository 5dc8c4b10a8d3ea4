import { Observable } from 'rxjs';
import type { ToolOutput } from '../contract/tool.ts';
import { fromOutput } from './output.ts';

/**
 * A stream of work that takes an `AbortSignal`: each subscription starts it anew with a signal of its own, and unsubscribing aborts that signal.
 * Work that has settled is not aborted after the fact.
 *
 * @param start gives a value, a Promise, an Observable or an AsyncIterable; a synchronous throw becomes the stream's error
 *
 * @example
 * abortable((signal) => fetch('https://example.com', { signal })).pipe(attemptTimeout(2_000), retryBackoff());
 */
export function abortable<T>(start: (signal: AbortSignal) => ToolOutput<T>): Observable<T> {
  return new Observable((subscriber) => {
    const controller = new AbortController();
    let settled = false;
    // Added first: the work may be unsubscribed while it starts.
    subscriber.add(() => {
      if (!settled) controller.abort();
    });
    const settle = (): void => {
      settled = true;
    };
    try {
      fromOutput(start(controller.signal), settle).subscribe(subscriber);
    } catch (error) {
      settle();
      subscriber.error(error);
    }
  });
}
