import { BehaviorSubject, defer, distinctUntilChanged, finalize, map, type Observable } from 'rxjs';

/**
 * The questions that a server has open with people and models, and which calls may wait for them. A server does not say
 * for which call it asks: any that was under way by then may be it, and none that came later.
 */
export class Waits {
  readonly #open$ = new BehaviorSubject<ReadonlyMap<unknown, number>>(new Map());
  #begun = 0;

  /** A call begins: emits whether it may wait for an answer. */
  begin(): Observable<boolean> {
    const mine = ++this.#begun;
    return this.#open$.pipe(
      map((open) => [...open.values()].some((begunThen) => begunThen >= mine)),
      distinctUntilChanged(),
    );
  }

  opened(question: unknown): void {
    this.#open$.next(new Map([...this.#open$.value, [question, this.#begun]]));
  }

  closed(question: unknown): void {
    if (this.#open$.value.has(question))
      this.#open$.next(new Map([...this.#open$.value].filter(([open]) => open !== question)));
  }

  closedAll(): void {
    if (this.#open$.value.size > 0) this.#open$.next(new Map());
  }

  /** Counts the answer to a question as waited for, from its subscription to its end. */
  during<T>(answer$: Observable<T>): Observable<T> {
    return defer(() => {
      const question = {};
      this.opened(question);
      return answer$.pipe(finalize(() => this.closed(question)));
    });
  }
}
