import { Observable, isObservable, map, tap, type MonoTypeOperatorFunction, type Subscriber } from 'rxjs';
import type { ToolOutput } from '../../contract/output.ts';
import { AttemptSignal } from './attempt-signal.ts';

export const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null)?.then === 'function';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function';

/** Pulls an async iterable. Unsubscribing calls its `return` at once and does not wait for it. */
const fromAsyncIterable = <T>(iterable: AsyncIterable<T>): Observable<T> =>
  new Observable((subscriber) => {
    const iterator = iterable[Symbol.asyncIterator]();
    let ended = false;
    const end = (settle: () => void): void => {
      ended = true;
      settle();
    };
    const fail = (error: unknown): void => end(() => subscriber.error(error));
    const pull = (): void => {
      try {
        iterator.next().then(({ done, value }) => {
          if (subscriber.closed) return;
          if (done === true) return end(() => subscriber.complete());
          subscriber.next(value);
          if (!subscriber.closed) pull();
        }, fail);
      } catch (error) {
        fail(error);
      }
    };
    pull();
    return () => {
      if (ended) return;
      try {
        iterator.return?.()?.then(undefined, () => undefined);
      } catch {
        // Nobody waits for it.
      }
    };
  });

/** An Observable, as one of this copy of RxJS. */
export const observableIn = (output: unknown): Observable<unknown> | undefined => {
  if (output instanceof Observable) return output;
  // A stream of another copy of RxJS, perhaps an older one, wraps its observer in an object of its own, which our
  // subscribers do not accept.
  return isObservable(output)
    ? new Observable((subscriber) => output.subscribe(subscriber)).pipe(map((value) => value))
    : undefined;
};

/** What gives values one by one, an Observable or an AsyncIterable, as a stream. Strings and arrays are values. */
const streamIn = (output: unknown): Observable<unknown> | undefined =>
  observableIn(output) ?? (isAsyncIterable(output) ? fromAsyncIterable(output) : undefined);

/** Tells the signal of a stream's work that it has settled, and `next` of each of its values. */
export const settling = <T>(own: AttemptSignal, next?: () => void): MonoTypeOperatorFunction<T> =>
  tap({ ...(next === undefined ? {} : { next }), error: () => own.fail(), complete: () => own.answer() });

/**
 * Starts work for a subscriber, who gets what it gives: a value, a Promise, an Observable or an AsyncIterable. When the
 * subscriber leaves before the work has settled, its signal is aborted; work that has settled is not aborted after the
 * fact, and settles once.
 *
 * @param through what a stream is piped through before it is subscribed to: `settling`, and more
 */
export function startWork<T>(
  subscriber: Subscriber<T>,
  start: () => ToolOutput<T>,
  own: AttemptSignal,
  through: (stream: Observable<T>) => Observable<T> = settling(own),
): void {
  // Added first: the work may be unsubscribed while it starts.
  subscriber.add(() => own.abort());
  const give = (value: T): void => {
    if (own.isOver) return;
    own.answer();
    subscriber.next(value);
    subscriber.complete();
  };
  const fail = (error: unknown): void => {
    if (own.isOver) return;
    own.fail();
    subscriber.error(error);
  };
  try {
    const output = start();
    if (isPromiseLike(output)) return void output.then(give, fail);
    const stream = streamIn(output) as Observable<T> | undefined;
    if (stream === undefined) give(output as T);
    // Unsubscribed while it started: a stream is not even subscribed to.
    else if (!subscriber.closed) through(stream).subscribe(subscriber);
  } catch (error) {
    fail(error);
  }
}

/** A value, Promise, Observable or AsyncIterable as a stream. */
export const fromOutput = <T>(output: ToolOutput<T>): Observable<T> =>
  new Observable((subscriber) => startWork(subscriber, () => output, new AttemptSignal()));
