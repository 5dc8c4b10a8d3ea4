import { AsyncSubject, Observable, Subscription, defer, finalize, map, noop, takeUntil, type Subscriber } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable, DedupeOutcome, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { ask } from './ask.ts';
import { AT_ONCE_MS } from './release-if.ts';
import { expireAfter, expiry, type Expiry } from '../timing/expiry.ts';
import { loseClaim } from './lost-claims.ts';
import { UNRECORDED, outcomeWritten, type Recorded } from './outcome-record.ts';
import type { StandIns } from './stand-ins.ts';

/** A renewal is asked for every third of a lease, so that two may fail; sooner where less is left. */
const HEARTBEATS_PER_LEASE = 3;
/** After a renewal that failed the next is asked for sooner, since there is less time left. */
const RETRIES_PER_LEASE = 12;
/** With no more than this left of a lease no renewal is asked for: its loss is waited for. */
const LAST_MS = 1;
/** The last part of a lease does not count: clocks of two machines do not run alike. */
const MARGIN = 0.05;

export interface LeaseTerms {
  readonly store: DedupeStore;
  readonly runtime: Runtime;
  readonly leaseMs: number;
  readonly storeTimeoutMs: number;
  /** The id of the claim's request was made for it, so that no other claim has it. */
  readonly hasOwnId: boolean;
  /**
   * Called when the end of a lease is written to the store; what it returns is called once the store has answered, or
   * will not.
   */
  readonly writing?: () => () => void;
}

/**
 * Others no longer see what this store holds, and may claim the key where they look: nothing is gained by asking it
 * again.
 */
const MOVED = 'store_moved';

const tooSlow = (leaseMs: number): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    `The store takes longer to answer than a lease of ${leaseMs} ms lasts; raise leaseMs`,
  );

/**
 * A claimed key, for as long as it is held. The lease ends by this machine's monotonic clock, counted from before the
 * claim was sent; it is renewed while it is watched and while its outcome is recorded. Others in this process can wait
 * for it, which keeps its work alive when its own caller leaves.
 */
export class Lease {
  readonly claimed: DedupeRecord;
  readonly #terms: LeaseTerms;
  /** Another's lease had passed, whose work may have taken effect. */
  readonly tookOver: boolean;
  readonly standIns: StandIns = { noted: new Set(), inherited: undefined };
  #validUntilMs: number;
  #watcher: Subscriber<ToolExecutionError | undefined> | undefined;
  /** Set where the lease was lost before anyone watched it: why it was. */
  #missed: { readonly error: ToolExecutionError | undefined } | undefined;
  #timer: Expiry | undefined;
  /** Renewals that were asked for and not answered yet. */
  readonly #asking = new Subscription();
  /** When the claim or a renewal was asked for last. */
  #askedAtMs: number;
  /** When the claim or renewal was asked for that was granted last. */
  #renewedAtMs: number;
  /** Why the last renewal is in doubt, if it is. */
  #unanswered: ToolExecutionError | undefined;
  /** No longer renewed. */
  #over = false;
  /** Set while an outcome is recorded: it is renewed until then at the latest. */
  #recordUntilMs: number | undefined;
  #waiters = 0;
  /** Emits when the last waiter has unsubscribed. */
  #unwaited: (() => void) | undefined;
  #ended: (() => void) | undefined;

  constructor(claimed: DedupeRecord, sentAtMs: number, terms: LeaseTerms, tookOver = false) {
    this.claimed = claimed;
    this.tookOver = tookOver;
    this.#terms = terms;
    this.#askedAtMs = this.#renewedAtMs = sentAtMs;
    this.#validUntilMs = sentAtMs + terms.leaseMs * (1 - MARGIN);
  }

  get fence(): number {
    return this.claimed.version;
  }

  get valid(): boolean {
    return this.#terms.runtime.now() < this.#validUntilMs;
  }

  /** Whether its outcome is still to be recorded: it is neither lost nor over. */
  get isHeld(): boolean {
    return !this.#over && this.#recordUntilMs === undefined;
  }

  /**
   * Whether it still holds by this machine's clock. If not, it is marked as lost, since a process that slept may not
   * know yet.
   */
  holds(): boolean {
    if (!this.valid) this.#lose(undefined);
    return this.valid;
  }

  get waitedFor(): boolean {
    return this.#waiters > 0;
  }

  wait(): void {
    this.#waiters++;
  }

  leave(): void {
    this.#waiters--;
    if (this.#waiters === 0) this.#unwaited?.();
  }

  onUnwaited(unwaited: () => void): void {
    this.#unwaited = unwaited;
  }

  /**
   * Asks for a renewal of a claim whose answer took longer than its lease: another may have taken it over meanwhile.
   * Emits whether it holds; errors when the store did not say, or is so slow that it never will in time.
   */
  confirmed(): Observable<boolean> {
    const { store, runtime, leaseMs, storeTimeoutMs } = this.#terms;
    const sentAtMs = runtime.now();
    this.#askedAtMs = sentAtMs;
    const question = (): Awaitable<boolean> => store.renew(this.claimed.key, this.claimed.version, leaseMs);
    return ask(question, storeTimeoutMs, runtime, (renewed) => renewed && this.release()).pipe(
      map((renewed) => {
        if (renewed) this.#extend(sentAtMs);
        if (renewed && !this.valid) throw tooSlow(leaseMs);
        return renewed;
      }),
    );
  }

  /**
   * Keeps it renewed from when it is subscribed to until the work is over, and completes then. Emits once when that
   * fails, also where it had failed before: an error when the store did not answer in time, `undefined` when another
   * may hold the key.
   */
  get lost$(): Observable<ToolExecutionError | undefined> {
    return new Observable((subscriber) => {
      if (this.#missed !== undefined) subscriber.next(this.#missed.error);
      if (!this.isHeld) return subscriber.complete();
      this.#watcher = subscriber;
      this.#schedule();
    });
  }

  /** Emits when the claim is over, however it ends. */
  onEnd(ended: () => void): void {
    this.#ended = ended;
  }

  /** No longer renewed. */
  stop(): void {
    this.#over = true;
    this.#timer?.unsubscribe();
    this.#asking.unsubscribe();
    this.#finish();
  }

  /**
   * Puts the outcome in the record's place and emits what became of it. When the store does not answer it is
   * `unrecorded` after `storeTimeoutMs`, and tried on for as long as a lease, whoever listens. It is renewed all the
   * while: a slow write must not let another run what has run.
   */
  settled(outcome: DedupeOutcome): Observable<Recorded> {
    return defer(() => {
      this.#finish();
      const { runtime, leaseMs, storeTimeoutMs, writing = () => noop } = this.#terms;
      this.#recordUntilMs = runtime.now() + Math.max(leaseMs, storeTimeoutMs);
      const inputs$ = new AsyncSubject<Recorded>();
      inputs$.subscribe({ complete: writing() });
      const tell = (recorded: Recorded): void => {
        inputs$.next(recorded);
        inputs$.complete();
      };
      outcomeWritten(this.claimed, outcome, this.#terms, () => this.valid).subscribe((recorded) => {
        this.stop();
        tell(recorded);
      });
      if (this.#over) return inputs$;
      expiry(storeTimeoutMs, runtime)
        .pipe(takeUntil(inputs$))
        .subscribe(() => tell(UNRECORDED));
      // Work that ended at once was not watched.
      if (this.#timer === undefined) this.#schedule();
      return inputs$;
    });
  }

  /**
   * Nothing ran under it, so that the key is free again, or, where it was taken over, as it was: with a lease that has
   * passed, since what ran before may have taken effect. Not waited for; if the store does not hear of it, the lease
   * runs out, or the next call of this process ends it.
   */
  release(): void {
    this.stop();
    const { store, runtime, storeTimeoutMs, writing } = this.#terms;
    const { key, version } = this.claimed;
    const over = writing?.() ?? noop;
    const question = (): Awaitable<boolean> =>
      this.tookOver ? store.renew(key, version, AT_ONCE_MS) : store.delete(key, version);
    ask(question, storeTimeoutMs, runtime)
      .pipe(finalize(over))
      .subscribe({
        error: () => loseClaim(this.#terms, this.claimed, this.tookOver),
      });
  }

  /** The claim is over for those who wait for it in this process, and can no longer be lost. */
  #finish(): void {
    this.#watcher?.complete();
    this.#watcher = undefined;
    this.#ended?.();
    this.#ended = undefined;
  }

  /**
   * The next renewal: a third of the lease after the last was asked for, or sooner. Half of what is left is waited for
   * at most; at the very end, for the loss.
   */
  #schedule(
    ms: number = this.#askedAtMs + this.#terms.leaseMs / HEARTBEATS_PER_LEASE - this.#terms.runtime.now(),
  ): void {
    const { runtime } = this.#terms;
    const leftMs = Math.max(0, this.#validUntilMs - runtime.now());
    this.#timer?.unsubscribe();
    this.#timer = expireAfter(leftMs > LAST_MS ? Math.max(0, Math.min(ms, leftMs / 2)) : leftMs, runtime, () =>
      this.#beat(),
    );
  }

  #beat(): void {
    const { store, runtime, leaseMs, storeTimeoutMs } = this.#terms;
    const sentAtMs = runtime.now();
    const leftMs = this.#validUntilMs - sentAtMs;
    if (leftMs <= 0)
      return this.#lose(this.#unanswered ?? (this.#askedAtMs > this.#renewedAtMs ? tooSlow(leaseMs) : undefined));
    if (this.#recordUntilMs !== undefined && sentAtMs >= this.#recordUntilMs) return;
    // Goes on when this renewal gets no answer: a later one may, and a late answer counts while the lease holds.
    this.#askedAtMs = sentAtMs;
    this.#schedule();
    const answered = (renewed: boolean): void => this.#renewed(renewed, sentAtMs);
    const question = (): Awaitable<boolean> => store.renew(this.claimed.key, this.claimed.version, leaseMs);
    this.#asking.add(
      ask(question, Math.min(storeTimeoutMs, leftMs), runtime, answered).subscribe({
        next: answered,
        error: (error: ToolExecutionError) => this.#refused(error, sentAtMs),
      }),
    );
  }

  #renewed(renewed: boolean, sentAtMs: number): void {
    if (this.#over) return;
    if (!renewed) return this.#lose(undefined);
    this.#extend(sentAtMs);
    this.#schedule();
  }

  #extend(sentAtMs: number): void {
    if (sentAtMs < this.#renewedAtMs) return;
    this.#renewedAtMs = sentAtMs;
    this.#unanswered = undefined;
    this.#validUntilMs = sentAtMs + this.#terms.leaseMs * (1 - MARGIN);
  }

  /** A renewal failed: whether it took place is not known. */
  #refused(error: ToolExecutionError, sentAtMs: number): void {
    // A later one was granted.
    if (this.#over || sentAtMs < this.#renewedAtMs) return;
    this.#unanswered = error;
    if (!this.valid || error.code === MOVED) return this.#lose(error);
    this.#schedule(this.#terms.leaseMs / RETRIES_PER_LEASE);
  }

  /**
   * Reports a loss, except while an outcome is written: the store may refuse a renewal because the record has its
   * outcome by then, and the write says what became of that.
   */
  #lose(error: ToolExecutionError | undefined): void {
    const watcher = this.#watcher;
    this.#watcher = undefined;
    if (watcher === undefined && this.isHeld) this.#missed = { error };
    this.stop();
    watcher?.next(error);
    watcher?.complete();
  }
}
