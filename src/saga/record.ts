import {
  AsyncSubject,
  Subject,
  defer,
  finalize,
  map,
  of,
  switchMap,
  tap,
  type Observable,
  type Subscription,
} from 'rxjs';
import { claimantOf, givenUpBy } from '../operators/dedupe/turn-claim.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import type { Awaitable, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Layer } from '../layer/services.ts';
import { ask } from '../operators/dedupe/ask.ts';
import { acquireKey } from '../operators/dedupe/key-acquisition.ts';
import type { Lease } from '../operators/dedupe/lease.ts';
import { claimOf, turnKey } from './journal-text.ts';
import { LEASE_TOOL } from './own-records.ts';
import { JournalPages, type Adopted, type JournalOwner } from './pages.ts';

const lostTurn = (): ToolExecutionError =>
  new ToolExecutionError('store_unavailable', 'Another process has taken the turn over', {
    executed: false,
    classification: 'permanent',
  });

const takenId = ({ turnId }: Journal): ToolExecutionError =>
  new ToolExecutionError(
    'conflict',
    `What an earlier turn ${turnId} did is not settled; let resume() finish it, or use another turnId`,
    { executed: false, classification: 'permanent' },
  );

/**
 * A turn's journal, and the lease by which other processes see that the turn lives. One write at a time: who asks
 * meanwhile shares the next one.
 */
export class JournalRecord implements JournalOwner {
  /** As it is to be kept. */
  journal: Journal;
  readonly writer: string;
  readonly leaseMs: number;
  readonly #layer: Layer;
  /** The engine that has the turn, which knows who had it before, and when that one has stopped. */
  readonly #engine: TurnJournal | undefined;
  readonly #lost$ = new Subject<void>();
  readonly #pages: JournalPages;
  #lease: Lease | undefined;
  #watching: Subscription | undefined;
  #next: AsyncSubject<void> | undefined;
  #isWriting = false;
  /** What stands in the store is another turn's. */
  #isTaken = false;
  /** Another process has the turn. */
  isLost = false;

  constructor(layer: Layer, journal: Journal, leaseMs: number, engine?: TurnJournal) {
    this.#layer = layer;
    this.writer = layer.runtime.id();
    this.journal = journal;
    this.leaseMs = leaseMs;
    this.#engine = engine;
    this.#pages = new JournalPages(this);
  }

  /** Whether no other process can have taken the turn over, by this machine's clock. */
  holds(): boolean {
    return !this.isLost && this.#lease?.holds() !== false;
  }

  /** Reads the journal that another process has left. To be asked once it is held. */
  adopted(): Observable<Adopted> {
    return this.#pages.adopted();
  }

  takes(found: Journal | undefined): asserts found is Journal {
    if (found !== undefined && this.#engine !== undefined) return;
    this.#isTaken = true;
    throw takenId(this.journal);
  }

  /** An entry has changed, and is to be written with the next one. */
  touch(entry: JournalEntry): void {
    this.#pages.touch(entry);
  }

  /** Emits when another process may have taken the turn over. */
  get lost$(): Observable<void> {
    return this.#lost$.asObservable();
  }

  /**
   * Emits once the store has the journal as it stands now; errors where it does not.
   * @param entry which has changed; without one, what the turn is has
   */
  written(entry?: JournalEntry): Observable<void> {
    return defer(() => {
      if (entry === undefined) this.#pages.touchHead();
      else this.touch(entry);
      const due = (this.#next ??= new AsyncSubject<void>());
      if (!this.#isWriting) this.#flush();
      return due;
    });
  }

  /**
   * Somebody has been told how the turn ended: the store forgets it, where there is nothing more to do. Not waited for;
   * if the store does not hear of it, `resume()` tells it once more.
   */
  told(): void {
    if (this.#lease === undefined) return;
    const { state } = this.journal;
    if (this.isLost || this.#isTaken || state === 'running' || state === 'undoing') return this.release();
    const release = (): void => this.release();
    this.#pages.forgotten().subscribe({ error: release, complete: release });
  }

  /** Takes the lease, from a process that has died where there was one. Errors while another one lives. */
  held(): Observable<void> {
    if (this.isLost) throw lostTurn();
    if (this.#lease !== undefined) return of(undefined);
    const { dedupe, runtime } = this.#layer;
    const claim = claimOf(LEASE_TOOL, this.journal, this.writer, this.leaseMs, claimantOf(this.#engine));
    const terms = {
      store: dedupe.store(),
      runtime: runtime.background ?? runtime,
      leaseMs: this.leaseMs,
      storeTimeoutMs: dedupe.storeTimeoutMs,
      hasOwnId: true,
      writing: () => dedupe.writing(),
      mode: this.#engine ? ('enforced' as const) : ('bestEffort' as const),
      global: false,
      neverTwice: false,
      ...givenUpBy(this.#engine),
    };
    return acquireKey(claim, terms, () => undefined).pipe(
      switchMap((answer) => {
        if (answer.act !== 'run') throw answer.act === 'refuse' ? answer.error : lostTurn();
        if (answer.lease === undefined) throw answer.lost;
        this.#hold(answer.lease);
        return this.#engine?.owned() ?? of(true);
      }),
      // Who has the turn now may have ended it meanwhile: it would stand in the store as one that nobody has.
      map((isOwned) => (isOwned && !this.isLost ? undefined : this.gone())),
      // A lease that was not confirmed confirms nothing.
      tap({ error: () => this.release() }),
    );
  }

  /** Emits whether a process has the turn, without a wish to take it over. */
  isHeld(): Observable<boolean> {
    return this.asked((store) => store.get(turnKey(LEASE_TOOL, this.journal))).pipe(
      map((reading) => reading !== undefined && (reading.record.lockUntilMs ?? 0) > reading.atMs),
    );
  }

  /** Others may go on with the turn from now on. */
  release(): void {
    this.#watching?.unsubscribe();
    this.#lease?.release();
    this.#lease = undefined;
  }

  #hold(lease: Lease): void {
    this.#lease = lease;
    this.#watching = lease.lost$.subscribe(() => this.#lose());
  }

  /** However it is found out: whoever listens ends the turn's calls. */
  #lose(): void {
    if (this.isLost) return;
    this.isLost = true;
    this.#lost$.next();
  }

  #flush(): void {
    const due = this.#next;
    if (due === undefined) return;
    this.#next = undefined;
    this.#isWriting = true;
    const over = (): void => {
      this.#isWriting = false;
      this.#flush();
    };
    defer(() => this.held())
      .pipe(
        switchMap(() => {
          if (this.#isTaken) throw takenId(this.journal);
          return this.#pages.write();
        }),
      )
      .subscribe({
        error: (error: unknown) => {
          due.error(error);
          over();
        },
        complete: () => {
          due.next();
          due.complete();
          over();
        },
      });
  }

  gone(): never {
    this.#lose();
    this.release();
    throw lostTurn();
  }

  asked<T>(question: (store: DedupeStore) => Awaitable<T>): Observable<T> {
    const { dedupe, runtime } = this.#layer;
    return defer(() => {
      const over = dedupe.writing();
      return ask(() => question(dedupe.store()), dedupe.storeTimeoutMs, runtime.background ?? runtime).pipe(
        finalize(over),
      );
    });
  }
}
