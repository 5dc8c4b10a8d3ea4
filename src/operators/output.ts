import { Observable, isObservable, map, tap } from 'rxjs';
import type { ToolOutput } from '../contract/output.ts';

export const isPromiseLike = (value: unknown): value is PromiseLike<unknown> => typeof (value as PromiseLike<unknown> | null)?.then === 'function';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function';

/** Pulls an async iterable. When it is no longer wanted it is told so at once, and not waited for. */
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

/** What gives values one by one, an Observable or an AsyncIterable, as a stream. Strings and arrays are values. */
export const streamIn = (output: unknown): Observable<unknown> | undefined => {
  if (output instanceof Observable) return output;
  // Of another copy of RxJS, which may be an older one: it tells an observer through an object of its own, which no subscriber of ours bears.
  if (isObservable(output)) return new Observable((subscriber) => output.subscribe(subscriber)).pipe(map((value) => value));
  return isAsyncIterable(output) ? fromAsyncIterable(output) : undefined;
};

/** A value, Promise, Observable or AsyncIterable as a stream. `settled` is called before the last notification. */
export const fromOutput = <T>(output: ToolOutput<T>, settled: () => void): Observable<T> => {
  const stream = streamIn(output) as Observable<T> | undefined;
  if (stream !== undefined) return stream.pipe(tap({ error: settled, complete: settled }));
  return new Observable((subscriber) => {
    const give = (value: T): void => {
      settled();
      subscriber.next(value);
      subscriber.complete();
    };
    const fail = (error: unknown): void => {
      settled();
      subscriber.error(error);
    };
    if (isPromiseLike(output)) output.then(give, fail);
    else give(output as T);
  });
};
