import { AsyncSubject, Subject, defer, map, of, switchMap, type Observable, type Subscription } from 'rxjs';
import { journalSchema, type Journal, type JournalEntry } from '../../contract/settle/journal.ts';
import type { DedupeClaim, DedupeOutcome, DedupeRecord } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Layer } from '../../layer/services.ts';
import { ask } from '../../operators/dedupe/ask.ts';
import { acquireKey } from '../../operators/dedupe/key-acquisition.ts';
import type { Lease } from '../../operators/dedupe/lease.ts';
import { sha256 } from '../../policy/key/sha256.ts';

/** By which name the store lists journals. No tool can have it. */
export const JOURNAL_TOOL = 'spillway/turn';
const LEASE_TOOL = 'spillway/turn-lease';
/** How long a journal is kept: a week, so that a process that stood still over a holiday is still finished. */
const KEEP_MS = 604_800_000;
/** The longest output of one call that is kept. */
const OUTPUT_MAX_CHARS = 100_000;

const keyOf = (tool: string, turnId: string): string => `sw1:${sha256(JSON.stringify([tool, turnId]))}`;
export const journalKey = (turnId: string): string => keyOf(JOURNAL_TOOL, turnId);

const claimOf = (tool: string, turnId: string, leaseMs: number): DedupeClaim => ({
  key: keyOf(tool, turnId),
  tool,
  idempotencyKey: turnId,
  request: { sessionKey: '', actorId: '', requestId: turnId, paramsDigest: sha256('') },
  leaseMs,
  ttlMs: KEEP_MS,
});

/** What of a value a journal can hold: what is no JSON, or too long, is left out. */
const jsonOf = (value: unknown): { readonly value?: unknown } => {
  try {
    const text = JSON.stringify(value);
    return text === undefined || text.length > OUTPUT_MAX_CHARS ? {} : { value: JSON.parse(text) as unknown };
  } catch {
    return {};
  }
};

/** An entry with nothing in it that a store could not keep. */
export const keepable = ({ input, output, ...entry }: JournalEntry): JournalEntry => {
  const { value: kept } = jsonOf(input);
  const { value: given } = jsonOf(output);
  return {
    ...entry,
    ...(kept === undefined ? {} : { input: kept }),
    ...(given === undefined ? {} : { output: given }),
  };
};

/** The journal in a record; `undefined` in one that has none yet, or none that can be read. */
export const journalIn = ({ payload }: DedupeRecord): Journal | undefined => {
  if (payload === undefined) return undefined;
  try {
    return journalSchema.parse(JSON.parse(payload));
  } catch {
    return undefined;
  }
};

const lostTurn = (): ToolExecutionError =>
  new ToolExecutionError('store_unavailable', 'Another process has taken the turn over, and undoes it', {
    executed: false,
    classification: 'permanent',
  });

/**
 * The record of a turn's journal, and the lease by which other processes see that the turn lives. One write at a time:
 * who asks meanwhile shares the next one.
 */
export class JournalRecord {
  /** As it is to be kept. */
  journal: Journal;
  readonly #layer: Layer;
  readonly #leaseMs: number;
  readonly #lost$ = new Subject<void>();
  #version: number | undefined;
  #lease: Lease | undefined;
  #watching: Subscription | undefined;
  #next: AsyncSubject<void> | undefined;
  #isWriting = false;
  /** A write that the store may have, although it did not say so. */
  #unsure: string | undefined;
  /** Another process has the turn. */
  isLost = false;

  constructor(layer: Layer, journal: Journal, leaseMs: number) {
    this.#layer = layer;
    this.journal = journal;
    this.#leaseMs = leaseMs;
  }

  /** Whether no other process can have taken the turn over, by this machine's clock. */
  holds(): boolean {
    return !this.isLost && this.#lease?.holds() !== false;
  }

  /** Reads the journal that another process has left; emits whether there is one. To be asked once it is held. */
  adopted(): Observable<boolean> {
    return this.#asked((dedupe) => dedupe.store().get(journalKey(this.journal.turnId))).pipe(
      map((reading) => {
        const journal = reading === undefined ? undefined : journalIn(reading.record);
        if (reading === undefined || journal === undefined) return false;
        this.journal = journal;
        this.#version = reading.record.version;
        return true;
      }),
    );
  }

  /** Emits when another process may have taken the turn over. */
  get lost$(): Observable<void> {
    return this.#lost$.asObservable();
  }

  /** Emits once the store has the journal as it stands now; errors where it does not. */
  written(): Observable<void> {
    return defer(() => {
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
    const { turnId, state } = this.journal;
    if (this.isLost || state === 'running' || state === 'undoing') return this.release();
    this.#asked((dedupe) => dedupe.store().delete(journalKey(turnId))).subscribe({
      error: () => this.release(),
      complete: () => this.release(),
    });
  }

  /** Takes the lease, from a process that has died where there was one. Errors while another one lives. */
  held(): Observable<void> {
    if (this.isLost) throw lostTurn();
    if (this.#lease !== undefined) return of(undefined);
    const { dedupe, runtime } = this.#layer;
    const claim = claimOf(LEASE_TOOL, this.journal.turnId, this.#leaseMs);
    const terms = {
      store: dedupe.store(),
      runtime: runtime.background ?? runtime,
      leaseMs: this.#leaseMs,
      storeTimeoutMs: dedupe.storeTimeoutMs,
      writing: () => dedupe.writing(),
      mode: 'bestEffort' as const,
      global: false,
      neverTwice: false,
    };
    return acquireKey(claim, terms, () => undefined).pipe(
      map((answer) => {
        if (answer.act === 'refuse') throw answer.error;
        if (answer.act !== 'run') throw lostTurn();
        if (answer.lease === undefined) throw answer.lost;
        this.#hold(answer.lease);
      }),
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
    this.#watching = lease.lost$.subscribe(() => {
      this.isLost = true;
      this.#lost$.next();
    });
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
      .pipe(switchMap(() => this.#write()))
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

  #write(): Observable<void> {
    const { turnId } = this.journal;
    const payload = JSON.stringify({ ...this.journal, entries: this.journal.entries.map(keepable) });
    const outcome: DedupeOutcome = { state: 'done', ttlMs: KEEP_MS, payload };
    const put = (version: number): Observable<void> => {
      const before = this.#unsure;
      this.#unsure = payload;
      return this.#asked((dedupe) => dedupe.store().compareAndSet(journalKey(turnId), version, outcome)).pipe(
        switchMap((written) => {
          if (written === undefined) return this.#again(before, put);
          this.#version = written.version;
          this.#unsure = undefined;
          return of(undefined);
        }),
      );
    };
    if (this.#version !== undefined) return put(this.#version);
    const claim = claimOf(JOURNAL_TOOL, turnId, this.#leaseMs);
    return this.#asked((dedupe) => dedupe.store().setIfNotExists(claim)).pipe(
      switchMap(({ record }) => put((this.#version = record.version))),
    );
  }

  /** Refused: the answer to the write before may have been lost. Then the record that is there is our own. */
  #again(before: string | undefined, put: (version: number) => Observable<void>): Observable<void> {
    return this.#asked((dedupe) => dedupe.store().get(journalKey(this.journal.turnId))).pipe(
      switchMap((reading) => {
        const isOwn = reading !== undefined && before !== undefined && reading.record.payload === before;
        if (isOwn) return put((this.#version = reading.record.version));
        this.isLost = true;
        throw lostTurn();
      }),
    );
  }

  #asked<T>(question: (dedupe: Layer['dedupe']) => T | PromiseLike<T>): Observable<T> {
    const { dedupe, runtime } = this.#layer;
    return ask(() => question(dedupe), dedupe.storeTimeoutMs, runtime.background ?? runtime);
  }
}
