import { map, of, switchMap, type Observable } from 'rxjs';
import type {
  Awaitable,
  DedupeClaim,
  DedupeOutcome,
  DedupeReading,
  DedupeRecord,
  DedupeStore,
} from '../contract/store.ts';
import { KEEP_MS, writerIn } from './journal-text.ts';

/** Whose pages they are. */
export interface PageOwner {
  /** By which it knows what it has written itself. */
  readonly writer: string;
  /** Asks the store; each question counts as a write that is under way. */
  asked<T>(question: (store: DedupeStore) => Awaitable<T>): Observable<T>;
  /** Whether no other process can have the turn. */
  holds(): boolean;
  /** Another process has it. @throws ToolExecutionError that says so */
  gone(): never;
}

/**
 * One record of a journal in the store. It is changed by who wrote it last; another's hand in it says that the turn was
 * taken over.
 */
export class KeptPage {
  version: number | undefined;
  readonly #owner: PageOwner;
  readonly #claim: () => DedupeClaim;
  readonly #found: (record: DedupeRecord) => Observable<unknown>;

  /** @param found called with what stands there before its first write; errors where that must stay */
  constructor(
    owner: PageOwner,
    claim: () => DedupeClaim,
    found: (record: DedupeRecord) => Observable<unknown> = () => of(0),
  ) {
    this.#owner = owner;
    this.#claim = claim;
    this.#found = found;
  }

  read(): Observable<DedupeReading | undefined> {
    const { key } = this.#claim();
    return this.#owner.asked((store) => store.get(key));
  }

  /** Emits once the store has it. @param payload made when it is written */
  put(payload: () => string): Observable<void> {
    return this.version === undefined ? this.#claimed(payload) : this.#written(this.version, payload);
  }

  /** Emits whether it was there as it was read or written last. */
  forgotten(): Observable<boolean> {
    const { key } = this.#claim();
    const { version } = this;
    return version === undefined ? of(false) : this.#owner.asked((store) => store.delete(key, version));
  }

  /** The first write: what stands in its way may be its own, of which the answer was lost. */
  #claimed(payload: () => string): Observable<void> {
    const claim = this.#claim();
    return this.#owner
      .asked((store) => store.setIfNotExists(claim))
      .pipe(
        switchMap(({ record }) => {
          // One that was claimed and not written: nothing had begun.
          const isFree = record.payload === undefined || writerIn(record) === this.#owner.writer;
          return (isFree ? of(0) : this.#found(record)).pipe(
            switchMap(() => this.#written((this.version = record.version), payload)),
          );
        }),
      );
  }

  #written(version: number, payload: () => string, isRepeated = false): Observable<void> {
    const outcome: DedupeOutcome = { state: 'done', ttlMs: KEEP_MS, payload: payload(), pinned: true };
    const { key } = this.#claim();
    return this.#owner
      .asked((store) => store.compareAndSet(key, version, outcome))
      .pipe(
        switchMap((written) => {
          if (written === undefined) return isRepeated ? this.#owner.gone() : this.#again(payload);
          this.version = written.version;
          return of(undefined);
        }),
      );
  }

  /** Refused: the answer to a write before may have been lost, and then the record that is there is our own. */
  #again(payload: () => string): Observable<void> {
    return this.read().pipe(
      switchMap((reading) => {
        this.version = reading?.record.version;
        // The store has lost it, and nobody else has the turn.
        if (reading === undefined) return this.#owner.holds() ? this.#claimed(payload) : this.#owner.gone();
        const isOwn = writerIn(reading.record) === this.#owner.writer;
        return isOwn ? this.#written(reading.record.version, payload, true) : this.#owner.gone();
      }),
      map(() => undefined),
    );
  }
}
