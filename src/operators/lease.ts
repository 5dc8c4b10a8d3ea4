import type { Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { Awaitable, DedupeOutcome, DedupeRecord, DedupeStore } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { ask } from './ask.ts';
import { expireAfter, type Expiry } from './expiry.ts';

/** A lease is renewed every third of it, so that two renewals may fail. */
const HEARTBEATS_PER_LEASE = 3;
/** The last part of a lease does not count: clocks of two machines do not run alike. */
const MARGIN = 0.05;
/** Between two tries to have an outcome recorded. */
const RECORD_RETRY_MS = 100;
/** The shortest lease that every store can keep. */
const AT_ONCE_MS = 1;

export interface LeaseTerms {
  readonly store: DedupeStore;
  readonly runtime: Runtime;
  readonly leaseMs: number;
  readonly storeTimeoutMs: number;
}

/** What became of an outcome: recorded, refused since another holds the key, or not stored. */
export type Recording = 'recorded' | 'superseded' | 'unrecorded';

/**
 * A claimed key, for as long as it is held. The lease ends by this machine's monotonic clock, counted from before the claim was sent; it is renewed
 * while it is watched. Others in this process can wait for it, which keeps its work alive when its own caller leaves.
 */
export class Lease {
  readonly claimed: DedupeRecord;
  readonly #terms: LeaseTerms;
  readonly #tookOver: boolean;
  #validUntilMs: number;
  #lost: ((error: ToolExecutionError | undefined) => void) | undefined;
  #timer: Expiry | undefined;
  #asking: Subscription | undefined;
  /** Why the last renewal is in doubt, if it is. */
  #unanswered: ToolExecutionError | undefined;
  #waiters = 0;
  /** Told when the last one who waited has gone. */
  #unwaited: (() => void) | undefined;
  #ended: (() => void) | undefined;

  constructor(claimed: DedupeRecord, sentAtMs: number, terms: LeaseTerms, tookOver = false) {
    this.claimed = claimed;
    this.#tookOver = tookOver;
    this.#terms = terms;
    this.#validUntilMs = sentAtMs + terms.leaseMs * (1 - MARGIN);
  }

  get fence(): number {
    return this.claimed.version;
  }

  get valid(): boolean {
    return this.#terms.runtime.now() < this.#validUntilMs;
  }

  /** Whether it still holds by this machine's clock; if not, that is told as a loss, since a process that slept may not know yet. */
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

  /** Keeps it renewed. `lost` is told once when that fails: with an error when the store did not answer in time, without when another may hold the key. */
  watch(lost: (error: ToolExecutionError | undefined) => void): void {
    this.#lost = lost;
    this.#wait(this.#terms.leaseMs / HEARTBEATS_PER_LEASE);
  }

  /** Told when the claim is over, however it ends. */
  onEnd(ended: () => void): void {
    this.#ended = ended;
  }

  /** No longer renewed. */
  stop(): void {
    this.#lost = undefined;
    this.#timer?.cancel();
    this.#asking?.unsubscribe();
    this.#ended?.();
    this.#ended = undefined;
  }

  /**
   * Puts the outcome in the record's place and tells what became of it, once. When the store does not answer it is `unrecorded` after
   * `storeTimeoutMs`, and tried on until the lease has passed.
   */
  settle(outcome: DedupeOutcome, told: (recording: Recording) => void): void {
    this.stop();
    const { runtime, storeTimeoutMs } = this.#terms;
    let patience: Expiry | undefined;
    let waiting = true;
    const tell = (recording: Recording): void => {
      if (!waiting) return;
      waiting = false;
      patience?.cancel();
      told(recording);
    };
    this.#write(outcome, tell, false);
    if (waiting) patience = expireAfter(storeTimeoutMs, runtime, () => tell('unrecorded'));
  }

  /**
   * Nothing ran under it: the key is free again, or, where it was taken over, as it was: with a lease that has passed, since what ran before may
   * have taken effect. Not waited for; if the store does not hear of it, the lease runs out.
   */
  release(told: () => void = () => undefined): void {
    this.stop();
    const { store, runtime, storeTimeoutMs } = this.#terms;
    const { key, version } = this.claimed;
    const question = (): Awaitable<boolean> => (this.#tookOver ? store.renew(key, version, AT_ONCE_MS) : store.delete(key, version));
    ask(question, storeTimeoutMs, runtime).subscribe({ complete: told, error: told });
  }

  #wait(ms: number): void {
    const { runtime } = this.#terms;
    const leftMs = Math.max(0, Math.min(ms, this.#validUntilMs - runtime.now()));
    this.#timer = expireAfter(leftMs, runtime, () => this.#beat());
  }

  #beat(): void {
    const { store, runtime, leaseMs, storeTimeoutMs } = this.#terms;
    const sentAtMs = runtime.now();
    const leftMs = this.#validUntilMs - sentAtMs;
    if (leftMs <= 0) return this.#lose(this.#unanswered);
    this.#asking = ask(() => store.renew(this.claimed.key, this.claimed.version, leaseMs), Math.min(storeTimeoutMs, leftMs), runtime).subscribe({
      next: (renewed) => {
        if (!renewed) return this.#lose(undefined);
        this.#unanswered = undefined;
        this.#validUntilMs = sentAtMs + leaseMs * (1 - MARGIN);
        this.#wait(leaseMs / HEARTBEATS_PER_LEASE);
      },
      error: (error: ToolExecutionError) => {
        this.#unanswered = error;
        if (!this.valid) return this.#lose(error);
        // Sooner than a heartbeat, since there is less time left.
        this.#wait(leaseMs / (HEARTBEATS_PER_LEASE * 4));
      },
    });
  }

  #lose(error: ToolExecutionError | undefined): void {
    const lost = this.#lost;
    this.stop();
    lost?.(error);
  }

  #write(outcome: DedupeOutcome, tell: (recording: Recording) => void, again: boolean): void {
    const { store, runtime, storeTimeoutMs } = this.#terms;
    const { key, version } = this.claimed;
    ask(() => store.compareAndSet(key, version, outcome), storeTimeoutMs, runtime).subscribe({
      next: (written) => {
        if (written !== undefined) tell('recorded');
        else if (again) this.#reread(outcome, tell);
        else tell('superseded');
      },
      error: () => {
        if (this.valid) runtime.after(RECORD_RETRY_MS).subscribe(() => this.#write(outcome, tell, true));
        else tell('unrecorded');
      },
    });
  }

  /** The reply to an earlier write may have been lost: then the record that is there is our own. */
  #reread({ state, payload }: DedupeOutcome, tell: (recording: Recording) => void): void {
    const { store, runtime, storeTimeoutMs } = this.#terms;
    ask(() => store.get(this.claimed.key), storeTimeoutMs, runtime).subscribe({
      next: (reading) => {
        const { record } = reading ?? {};
        // A caller may give two calls one request id: its own record says what it wrote.
        const own = record?.request.requestId === this.claimed.request.requestId && record.state === state && record.payload === payload;
        tell(own ? 'recorded' : 'superseded');
      },
      error: () => tell('unrecorded'),
    });
  }
}
