import { AsyncSubject, defer, finalize, of, tap, type Observable } from 'rxjs';
import { isPromiseLike, observableIn } from './output.ts';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function';

/**
 * Sees when the work of all attempts of a call has stopped, also after nobody waits for it any more: a limit takes the
 * subscription down at once, while a Promise goes on until it has seen its signal, and perhaps to its end.
 */
export class StopWatch {
  readonly #stopsOnUnsubscribe: boolean;
  #pending = 0;
  #stopped$: AsyncSubject<boolean> | undefined;
  /** An Observable was unsubscribed before its end, and what it had begun may go on. */
  #isOutOfSight = false;
  /** What a Promise gave, whether or not anyone still waited. */
  given: { readonly value: unknown } | undefined;

  /**
   * @param stopsOnUnsubscribe whether an Observable that is unsubscribed has stopped: many have only turned away from a
   * Promise that goes on, as `defer(() => pay())` does, and that cannot be seen
   */
  constructor(stopsOnUnsubscribe: boolean) {
    this.#stopsOnUnsubscribe = stopsOnUnsubscribe;
  }

  /** Nothing is under way that could still act, as far as can be known. */
  get hasStopped(): boolean {
    return this.#pending === 0 && !this.#isOutOfSight;
  }

  /**
   * Emits once when nothing is under way that can be seen, at once where that is so: whether all of it has stopped, as
   * far as can be known.
   */
  get stopped$(): Observable<boolean> {
    return this.#pending === 0 ? of(!this.#isOutOfSight) : (this.#stopped$ ??= new AsyncSubject<boolean>());
  }

  /** Takes what work has begun to give, and gives it on. */
  watch(output: unknown): unknown {
    if (isPromiseLike(output)) return this.#until(output, (value) => (this.given = { value }));
    const stream$ = observableIn(output);
    if (stream$ !== undefined) return this.#stopsOnUnsubscribe ? stream$ : this.#seen(stream$);
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

  #seen(stream$: Observable<unknown>): Observable<unknown> {
    return defer(() => {
      let hasEnded = false;
      const end = (): void => {
        hasEnded = true;
      };
      const turnedAway = (): void => {
        if (!hasEnded) this.#isOutOfSight = true;
      };
      return stream$.pipe(tap({ error: end, complete: end }), finalize(turnedAway));
    });
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
    this.#stopped$?.next(!this.#isOutOfSight);
    this.#stopped$?.complete();
    this.#stopped$ = undefined;
  }
}
