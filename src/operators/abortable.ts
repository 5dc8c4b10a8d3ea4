import type { Observable, Subscriber } from 'rxjs';
import type { ToolOutput } from '../contract/output.ts';
import { DirectStream } from './direct-stream.ts';
import { fromOutput, isPromiseLike } from './output.ts';

type AbortableWork<T> = (signal: AbortSignal) => ToolOutput<T>;

const begin = <T>(work: AbortableWork<T>, subscriber: Subscriber<T>): void => {
  const controller = new AbortController();
  let settled = false;
  // Added first: the work may be unsubscribed while it starts.
  subscriber.add(() => {
    if (!settled) controller.abort();
  });
  const settle = (): void => {
    settled = true;
  };
  const fail = (error: unknown): void => {
    settle();
    subscriber.error(error);
  };
  try {
    const output = work(controller.signal);
    // What most work gives needs no stream of its own.
    if (isPromiseLike(output)) {
      output.then((value) => {
        settle();
        subscriber.next(value);
        subscriber.complete();
      }, fail);
      // Unsubscribed while it started: a stream is not even subscribed to.
    } else if (!subscriber.closed) fromOutput(output, settle).subscribe(subscriber);
  } catch (error) {
    fail(error);
  }
};

/** A stream of work. It shows the work, so that a guard right behind it can call that itself. */
export class AbortableStream<T> extends DirectStream<T> {
  readonly work: AbortableWork<T>;

  constructor(work: AbortableWork<T>) {
    super((subscriber) => begin(work, subscriber));
    this.work = work;
  }
}

/**
 * A stream of work that takes an `AbortSignal`: each subscription starts it anew with a signal of its own, and unsubscribing aborts that signal.
 * Work that has settled is not aborted after the fact.
 *
 * @param start gives a value, a Promise, an Observable or an AsyncIterable; a synchronous throw becomes the stream's error
 *
 * @example
 * abortable((signal) => fetch('https://example.com', { signal })).pipe(attemptTimeout(2_000), retryBackoff());
 */
export function abortable<T>(start: AbortableWork<T>): Observable<T> {
  return new AbortableStream(start);
}
