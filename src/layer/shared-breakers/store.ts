import { Subject, merge, take, tap, type Observable, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable, DedupeStore } from '../../contract/store.ts';
import { isToolExecutionError, type ToolExecutionError } from '../../contract/tool-error.ts';
import { ask } from '../../operators/dedupe/ask.ts';
import type { DedupeLayer } from '../idempotency.ts';

/** How often a lost store is asked whether it answers again. */
const ASK_AGAIN_MS = 1_000;
/** No breaker's record: no breaker has a key without a name. */
const NO_KEY = 'breaker:';

/** A store that refuses for good, or for lack of room, answers. */
const isLoss = (error: unknown): boolean =>
  !isToolExecutionError(error) || (error.classification !== 'permanent' && error.code !== 'store_full');

/**
 * The store as breakers ask it: once it gave no answer it is lost, and nobody waits for it until it answers a question
 * that is asked beside all calls.
 */
export class BreakerStore {
  readonly #dedupe: DedupeLayer;
  readonly #runtime: Runtime;
  /** Ends the questions that are out when the store is found lost. */
  #losses = new Subject<never>();
  #lost = false;
  #closed = false;
  #again: Subscription | undefined;

  constructor(dedupe: DedupeLayer, runtime: Runtime) {
    this.#dedupe = dedupe;
    this.#runtime = runtime;
  }

  get isLost(): boolean {
    return this.#lost;
  }

  /**
   * Emits the answer, once; errors as soon as the store is known to be lost.
   * @param late gets an answer that nobody waited for any more
   */
  ask<T>(question: (store: DedupeStore) => Awaitable<T>, late?: (answer: T) => void): Observable<T> {
    const asked = this.#asked(question, late).pipe(tap({ error: (error: unknown) => this.#heard(error) }));
    return merge(asked, this.#losses).pipe(take(1));
  }

  /** Emits when the record of a key may have changed, where the store can say so. */
  changes(key: string): Observable<unknown> | undefined {
    return this.#dedupe.store().changes?.(key);
  }

  close(): void {
    this.#closed = true;
    this.#again?.unsubscribe();
  }

  #asked<T>(question: (store: DedupeStore) => Awaitable<T>, late?: (answer: T) => void): Observable<T> {
    return ask(() => question(this.#dedupe.store()), this.#dedupe.storeTimeoutMs, this.#runtime, late);
  }

  #heard(error: unknown): void {
    if (this.#lost || !isLoss(error)) return;
    this.#lost = true;
    this.#dedupe.noteAnswer(error as ToolExecutionError);
    this.#askLater();
    const losses = this.#losses;
    this.#losses = new Subject();
    losses.error(error);
  }

  #askLater(): void {
    if (this.#closed) return;
    const background = this.#runtime.background ?? this.#runtime;
    this.#again = background.after(ASK_AGAIN_MS).subscribe(() => {
      this.#asked((store) => store.get(NO_KEY)).subscribe({
        next: () => this.#answers(),
        error: (error: unknown) => (isLoss(error) ? this.#askLater() : this.#answers()),
      });
    });
  }

  #answers(): void {
    this.#lost = false;
    this.#dedupe.noteAnswer(undefined);
  }
}
