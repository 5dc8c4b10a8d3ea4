import { EMPTY, catchError, defer, map, switchMap, tap, type Observable, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable, DedupeClaim, DedupeReading, DedupeStore } from '../../contract/store.ts';
import type { OpenBreaker } from '../../operators/breaker/open-breaker.ts';
import { advanceBreaker, initialBreaker, type BreakerMemory } from '../../policy/breaker/reducer.ts';
import { sharedIn, sharedText, type SharedMemory } from './record.ts';
import type { BreakerStore } from './store.ts';

/** A breaker that nobody asks about is forgotten this long after its state would have ended. */
const FORGET_MS = 3_600_000;

/** The record as it was last seen. */
export interface Seen extends SharedMemory {
  /**
   * What to add to its generation and its probes' epoch for those of our own breaker, which has changes and probes of
   * its own, too.
   */
  readonly generationsAhead: number;
  readonly epochsAhead: number;
}

interface RecordName {
  readonly name: string;
  readonly key: string;
}

/** One that ramps has more to say. */
const isClosed = ({ type, rampFromMs }: BreakerMemory): boolean => type === 'closed' && rampFromMs === undefined;

/**
 * A breaker of ours that follows a record which all processes share. While it is closed there is no record, and each
 * process counts for itself. The one whose breaker opens makes a record of all that it knows; from then on that is what
 * all of them go by, each moving it on from one version to the next. Time alone changes nothing there: each reads from
 * the record what it means by now.
 */
export class BreakerReplica {
  readonly own: OpenBreaker;
  seen: Seen | undefined;
  /** Our own has opened, and the record is being written for the others. */
  isPublishing = false;
  readonly #name: string;
  readonly #key: string;
  readonly #store: BreakerStore;
  readonly #runtime: Runtime;
  /** How far the store's clock is ahead of ours, at the least: the answer that said so had been on its way. */
  #aheadMs = 0;
  /** What that way took at the most. Times are written later by it, so that nobody asks a tool too early. */
  #wayMs = 0;
  #watchers = 0;
  #changes: Subscription | undefined;

  /** @param key of the record; `name` is what records are listed by */
  constructor(own: OpenBreaker, { name, key }: RecordName, store: BreakerStore, runtime: Runtime) {
    this.own = own;
    this.#name = name;
    this.#key = key;
    this.#store = store;
    this.#runtime = runtime;
  }

  /** Asks the store how it stands; completes in any case. */
  refresh(): Observable<unknown> {
    if (this.#store.isLost || this.isSet || this.isPublishing) return EMPTY;
    return this.look().pipe(
      tap((agreed) => {
        if (!agreed) this.publish();
      }),
      catchError(() => EMPTY),
    );
  }

  /** Somebody watches its state: gives what ends that. */
  watched(): () => void {
    this.#watchers++;
    this.#listen();
    return () => {
      this.#watchers--;
      this.#listen();
    };
  }

  close(): void {
    this.#changes?.unsubscribe();
    this.#changes = undefined;
  }

  /** What a person set holds here, whatever the others are in. */
  get isSet(): boolean {
    const { type } = this.own.memory;
    return type === 'forced_open' || type === 'disabled';
  }

  /** Our own breaker now. */
  get here(): BreakerMemory {
    return advanceBreaker(this.own.memory, this.own.settings, this.#runtime.now());
  }

  /** Our own has changed by an outcome of this process or an order since it was last made equal to the record. */
  get strayed(): boolean {
    const { type, generation } = this.here;
    if (this.seen === undefined) return type !== 'closed';
    const expected = advanceBreaker(this.seen.memory, this.own.settings, this.#runtime.now());
    return type !== expected.type || generation !== expected.generation + this.seen.generationsAhead;
  }

  /** Reads the record and follows it. False where our own breaker is ahead of it: the others are to be told. */
  look(): Observable<boolean> {
    return defer(() => {
      const knownBefore = this.seen?.version;
      const isOvertaken = (reading: DedupeReading | undefined): boolean =>
        reading === undefined && this.seen?.version !== knownBefore;
      // That there was no record proves nothing once one was made or seen: it would close what has just been opened.
      const read$ = this.#read((store) => store.get(this.#key));
      return read$.pipe(map((reading) => isOvertaken(reading) || this.#follow(reading)));
    });
  }

  /** Our own breaker becomes what all are in. */
  adopt(shared: SharedMemory, by?: string): void {
    const { generation: theirs, cooldownMs } = shared.memory;
    // A damaged record could state a cooldown without end.
    const capped = { ...shared.memory, cooldownMs: Math.min(cooldownMs, this.own.settings.cooldownMaxMs) };
    const memory = isClosed(shared.memory) ? { ...this.#closedNow(), generation: theirs } : capped;
    const seen = this.seen;
    const here = this.here;
    const isSame =
      seen?.origin === shared.origin &&
      memory.type === here.type &&
      memory.generation + seen.generationsAhead === here.generation &&
      memory.probeEpoch + seen.epochsAhead === here.probeEpoch;
    const generation = here.generation + (isSame ? 0 : 1);
    const probeEpoch = here.probeEpoch + (isSame ? 0 : 1);
    const epochsAhead = probeEpoch - memory.probeEpoch;
    this.seen = { ...shared, memory, generationsAhead: generation - memory.generation, epochsAhead };
    this.#listen();
    if (!this.isSet) this.#become({ ...memory, generation, probeEpoch }, by);
  }

  /** Moves the record on: false when somebody else was faster. */
  put(from: Pick<SharedMemory, 'version' | 'origin'>, memory: BreakerMemory, late?: () => void): Observable<boolean> {
    const { version, origin } = from;
    const { rampMs, halfOpenTimeoutMs } = this.own.settings;
    if (isClosed(memory)) return this.#remove(version);
    const ttlMs = memory.type === 'closed' ? rampMs : memory.cooldownMs + halfOpenTimeoutMs + FORGET_MS;
    const payload = sharedText({ origin, memory }, this.#aheadMs + this.#wayMs);
    const outcome = { state: 'done', ttlMs, payload } as const;
    const put$ = this.#store.ask(
      (store) => store.compareAndSet(this.#key, version, outcome),
      (record) => {
        if (record !== undefined) late?.();
      },
    );
    return put$.pipe(
      map((record) => {
        if (record === undefined) return false;
        // A subscriber of the store's changes may have been notified by now.
        if ((this.seen?.version ?? 0) < record.version) this.adopt({ version: record.version, origin, memory });
        return true;
      }),
    );
  }

  /**
   * Makes a record of our own breaker. A claim comes first: it stands for an open breaker, and its version is the
   * record's origin.
   */
  publish(then?: () => void): void {
    if (this.isPublishing || this.#store.isLost) return then?.();
    this.isPublishing = true;
    const done = (): void => {
      this.isPublishing = false;
      then?.();
    };
    this.#read((store) => store.setIfNotExists(this.#wish()))
      .pipe(switchMap((reading) => this.#fill(reading, reading.created)))
      // Our own breaker is open all the same.
      .subscribe({ complete: done, error: done });
  }

  /** Asks the store for the record, and what time it is there. */
  #read<T extends DedupeReading | undefined>(question: (store: DedupeStore) => Awaitable<T>): Observable<T> {
    const askedAtMs = this.#runtime.now();
    return this.#store.ask(question).pipe(
      tap((reading) => {
        if (reading === undefined) return;
        const now = this.#runtime.now();
        this.#aheadMs = reading.atMs - now;
        this.#wayMs = now - askedAtMs;
      }),
    );
  }

  /**
   * Closed, with nothing remembered. A reset would count on probes that are out, of whose end nobody tells us any more.
   */
  #closedNow(): BreakerMemory {
    return { ...initialBreaker(this.own.settings), type: 'closed', sinceMs: this.#runtime.now() };
  }

  #follow(reading: DedupeReading | undefined): boolean {
    const shared = reading === undefined ? undefined : sharedIn(reading, this.#aheadMs);
    const strayed = this.strayed;
    const isClosedHere = this.here.type === 'closed';
    const isClosedThere = shared === undefined || shared.memory.type === 'closed';
    if (!this.isSet && strayed && !isClosedHere && isClosedThere) return false;
    if (shared === undefined) this.#forget();
    else if (strayed || (this.seen?.version ?? 0) < shared.version) this.adopt(shared);
    return true;
  }

  /** There is no record: it is closed for all. */
  #forget(): void {
    this.seen = undefined;
    this.#listen();
    const here = this.here;
    if (this.isSet || here.type === 'closed') return;
    this.#become({ ...this.#closedNow(), generation: here.generation + 1, probeEpoch: here.probeEpoch + 1 });
  }

  #become(memory: BreakerMemory, by?: string): void {
    this.own.tell({ type: 'adopt', atMs: this.#runtime.now(), memory }, by);
  }

  #remove(version: number): Observable<boolean> {
    return this.#store
      .ask((store) => store.delete(this.#key, version))
      .pipe(
        tap((done) => {
          if (done) this.#forget();
        }),
      );
  }

  #fill(reading: DedupeReading, created: boolean): Observable<unknown> {
    if (!created && this.#follow(reading)) return EMPTY;
    const here = this.here;
    const { version } = reading.record;
    // A person's order came in between.
    if (here.type !== 'open' && here.type !== 'half_open') return created ? this.#remove(version) : EMPTY;
    const { origin, memory } = sharedIn(reading, this.#aheadMs);
    // Probes of our own, made while nobody could be told, are none of theirs.
    const numbers = { generation: memory.generation + 1, probeEpoch: memory.probeEpoch + 1 };
    return this.put({ version, origin }, { ...here, ...numbers, probesOut: 0 });
  }

  #wish(): DedupeClaim {
    const { sinceMs, cooldownMs } = this.own.memory;
    const leaseMs = Math.max(1, sinceMs + cooldownMs - this.#runtime.now());
    return {
      key: this.#key,
      tool: `breaker:${this.#name}`,
      idempotencyKey: this.#key,
      request: { sessionKey: '', actorId: '', requestId: this.#runtime.id(), paramsDigest: '' },
      leaseMs,
      ttlMs: leaseMs + FORGET_MS,
    };
  }

  /** Subscribes to the others' changes, where the store emits them, while there is a record or somebody watches. */
  #listen(): void {
    if (this.#watchers === 0 && this.seen === undefined) return this.close();
    this.#changes ??= this.#store
      .changes(this.#key)
      ?.pipe(switchMap(() => this.refresh()))
      .subscribe();
  }
}
