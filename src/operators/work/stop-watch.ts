import { AsyncSubject, of, type Observable } from 'rxjs';
import { isPromiseLike } from './output.ts';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function';

/**
 * Sees when work has stopped, also after nobody waits for it any more: a limit takes the subscription down at once,
 * while a Promise goes on until it has seen its signal, and perhaps to its end.
 */
export class StopWatch {
  #pending = 0;
  #stopped$: AsyncSubject<void> | undefined;
  /** What a Promise gave, whether or not anyone still waited. */
  given: { readonly value: unknown } | undefined;

  /** Emits once when nothing is under way; at once where that is so. */
  get stopped$(): Observable<void> {
    return this.#pending === 0 ? of(undefined) : (this.#stopped$ ??= new AsyncSubject<void>());
  }

  /** Takes what work has begun to give, and gives it on. An Observable has stopped when it is unsubscribed. */
  watch(output: unknown): unknown {
    if (isPromiseLike(output)) return this.#until(output, (value) => (this.given = { value }));
    if (!isAsyncIterable(output)) return output;
    return {
      [Symbol.asyncIterator]: (): AsyncIterator<unknown> => {
        const iterator = output[Symbol.asyncIterator]();
        return {
          next: () => this.#until(iterator.next()),
          return: async (value?: unknown) => {
            const ended = iterator.return?.(value);
            return ended === undefined ? { done: true, value } : this.#until(ended);
          },
        };
      },
    };
  }

  /** A thenable is asked once only: one of a query builder would send its query each time. */
  #until<T>(work: PromiseLike<T>, given?: (value: T) => void): Promise<T> {
    this.#pending++;
    const promise = Promise.resolve(work);
    promise.then(
      (value) => {
        given?.(value);
        this.#stop();
      },
      () => this.#stop(),
    );
    return promise;
  }

  #stop(): void {
    this.#pending--;
    if (this.#pending > 0) return;
    this.#stopped$?.next();
    this.#stopped$?.complete();
    this.#stopped$ = undefined;
  }
}
