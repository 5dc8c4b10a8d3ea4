import { Observable, Subscription, merge, take, type Observer } from 'rxjs';
import type { DedupeStep } from '../contract/event.ts';
import type { DedupeClaim, DedupeReading, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { decideClaim, type ClaimDecision, type DedupeMode } from '../policy/claim.ts';
import { ask } from './ask.ts';
import { Lease, type LeaseTerms } from './lease.ts';

/** Between two looks at a record that another holds: at first, and at most. Notifications of the store come before that. */
const POLL_FIRST_MS = 50;
const POLL_MAX_MS = 1_000;

export interface ClaimingOptions extends LeaseTerms {
  readonly mode: Exclude<DedupeMode, 'disabled'>;
  /** The key is shared by all sessions of a tenant. */
  readonly global: boolean;
  readonly neverTwice: boolean;
}

/** Who wants to run, and hears once how it stands. */
export interface Claimant {
  /** It runs now. Without a lease nothing protects it: the store is lost, for the reason given, and it would rather run than not. */
  claimed(lease: Lease | undefined, lost?: ToolExecutionError): void;
  /** It gets what the record holds. */
  replayed(reading: DedupeReading, matchedOn: 'inflight' | 'completed'): void;
  refused(error: ToolExecutionError): void;
  tell(step: DedupeStep, about?: { readonly leaderCallId?: string; readonly fence?: number; readonly message?: string }): void;
}

/** The claims that run in this process, so that those who wait for one can keep it alive. */
const leases = new WeakMap<DedupeStore, Map<string, Lease>>();

const leasesOf = (store: DedupeStore): Map<string, Lease> => {
  let held = leases.get(store);
  if (held === undefined) leases.set(store, (held = new Map<string, Lease>()));
  return held;
};

const REFUSALS: Readonly<Record<Extract<ClaimDecision, { act: 'refuse' }>['because'], (reading: DedupeReading) => ToolExecutionError>> = {
  // No status: a 409 that a server answers is permanent, and this is not.
  busy: () => new ToolExecutionError('duplicate_in_flight', 'Another call runs under this idempotency key; ask again when it has ended'),
  conflict: () =>
    new ToolExecutionError('conflict', 'This idempotency key was used with another input; use a new key for a new input, or the same input to get the earlier result', {
      status: 422,
    }),
  cancelled: ({ record }) =>
    new ToolExecutionError('canceled', 'The earlier call under this idempotency key was canceled while it ran and may have taken effect; clear the key to run it again', {
      uncertain: record.error?.uncertain === true,
    }),
  uncertain: () =>
    new ToolExecutionError(
      'duplicate_in_flight',
      'An earlier call under this idempotency key lost its lease and may have taken effect; a safety-critical tool is not run again: find out, then clear the key',
      { classification: 'permanent', uncertain: true },
    ),
};

/**
 * Gets a key, or what is remembered under it: the loop that asks the store, decides by `decideClaim`, and waits for another's outcome.
 */
export class Claiming {
  readonly #claim: DedupeClaim;
  readonly #options: ClaimingOptions;
  readonly #claimant: Claimant;
  #asking: Subscription | undefined;
  #pollMs = POLL_FIRST_MS;
  /** The claim of this process that it waits for. */
  #leader: Lease | undefined;
  #waited = false;
  #gone: (() => void) | undefined;
  #over = false;

  constructor(claim: DedupeClaim, options: ClaimingOptions, claimant: Claimant) {
    this.#claim = claim;
    this.#options = options;
    this.#claimant = claimant;
  }

  start(): void {
    this.#ask();
  }

  /** Only waits for the outcome of whoever holds the key now, after its own claim was lost. `gone` is told instead when nobody does. */
  follow(gone: () => void): void {
    this.#gone = gone;
    this.#waited = true;
    this.#look();
  }

  /** It no longer wants to run. A claim that the store grants all the same is given back. */
  cancel(): void {
    if (this.#over) return;
    this.#end();
  }

  #ask(over?: number): void {
    if (this.#gone !== undefined) {
      this.#end();
      return this.#gone();
    }
    const { store, runtime, storeTimeoutMs } = this.#options;
    const sentAtMs = runtime.now();
    const lease = ({ record }: DedupeReading): Lease => new Lease(record, sentAtMs, this.#options, over !== undefined);
    const giveBack = (late: DedupeReading & { readonly created: boolean }): void => {
      if (late.created) lease(late).release();
    };
    this.#await(ask(() => store.setIfNotExists(this.#claim, over), storeTimeoutMs, runtime, giveBack), {
      next: (answer) => {
        if (!answer.created) return this.#consider(answer);
        const claimed = lease(answer);
        if (this.#over) return claimed.release();
        if (claimed.valid) this.#claimed(claimed, over !== undefined);
        else this.#confirm(claimed, over !== undefined);
      },
      error: (error: ToolExecutionError) => this.#unanswered(error),
    });
  }

  /** The store took so long that the lease has passed by our own clock: nothing is run before it says that the claim still stands. */
  #confirm(claimed: Lease, tookOver: boolean): void {
    this.#asking = new Subscription();
    this.#asking.add(
      claimed.confirm((held) => {
        if (held === true) return this.#claimed(claimed, tookOver);
        if (held === false) return this.#ask();
        claimed.release();
        this.#unanswered(held);
      }),
    );
  }

  #look(): void {
    const { store, runtime, storeTimeoutMs } = this.#options;
    this.#await(ask(() => store.get(this.#claim.key), storeTimeoutMs, runtime), {
      next: (reading) => (reading === undefined ? this.#ask() : this.#consider(reading)),
      error: (error: ToolExecutionError) => this.#unanswered(error),
    });
  }

  #consider(reading: DedupeReading): void {
    if (this.#over) return;
    const { mode, global, neverTwice } = this.#options;
    const { key, tool, request } = this.#claim;
    const decision = decideClaim(reading, { key, tool, mode, request, neverTwice }, global);
    const leaderCallId = reading.record.request.requestId;
    switch (decision.act) {
      case 'take_over':
        return this.#ask(decision.version);
      case 'wait':
        return this.#wait(reading);
      case 'replay':
        this.#end();
        return this.#claimant.replayed(reading, this.#waited ? 'inflight' : 'completed');
      case 'refuse': {
        this.#end();
        const error = REFUSALS[decision.because](reading);
        if (decision.because !== 'cancelled') this.#claimant.tell(decision.because === 'conflict' ? 'conflict' : 'busy', { leaderCallId, message: error.message });
        return this.#claimant.refused(error);
      }
    }
  }

  /** Until the record may have changed: the store says so, its lease ends, or it is time to look again. */
  #wait({ record, atMs }: DedupeReading): void {
    const { store, runtime } = this.#options;
    if (!this.#waited) this.#claimant.tell('waiting', { leaderCallId: record.request.requestId });
    this.#waited = true;
    if (this.#over) return;
    this.#stayWith(leasesOf(store).get(record.key));
    const leaseMs = Math.max(0, (record.lockUntilMs ?? 0) - atMs);
    const waitMs = Math.min(leaseMs, this.#pollMs * (0.5 + runtime.random()));
    this.#pollMs = Math.min(POLL_MAX_MS, this.#pollMs * 2);
    const changed$ = store.changes?.(record.key) ?? new Observable<never>();
    this.#await(merge(changed$, runtime.after(waitMs)).pipe(take(1)), { next: () => this.#look(), error: (error: ToolExecutionError) => this.#unanswered(error) });
  }

  /** Held before it is subscribed to, since what answers at once may already have led to the next one. */
  #await<T>(source: Observable<T>, observer: Partial<Observer<T>>): void {
    this.#asking = new Subscription();
    this.#asking.add(source.subscribe(observer));
  }

  #stayWith(leader: Lease | undefined): void {
    if (leader === this.#leader) return;
    this.#leader?.leave();
    this.#leader = leader;
    leader?.wait();
  }

  #claimed(lease: Lease, tookOver: boolean): void {
    const { store } = this.#options;
    const held = leasesOf(store);
    held.set(this.#claim.key, lease);
    lease.onEnd(() => {
      if (held.get(this.#claim.key) === lease) held.delete(this.#claim.key);
    });
    this.#claimant.tell(tookOver ? 'taken_over' : 'claimed', { fence: lease.fence });
    // Whoever heard that may have ended the call.
    if (this.#over) return lease.release();
    this.#end();
    this.#claimant.claimed(lease);
  }

  /** Without the store `enforced` refuses, so that nothing runs twice; `bestEffort` runs and says so. */
  #unanswered(error: ToolExecutionError): void {
    if (this.#over) return;
    if (this.#options.mode === 'enforced' || this.#waited) {
      this.#end();
      return this.#claimant.refused(error);
    }
    this.#claimant.tell('unprotected', { message: error.message });
    if (this.#over) return;
    this.#end();
    this.#claimant.claimed(undefined, error);
  }

  #end(): void {
    this.#over = true;
    this.#asking?.unsubscribe();
    this.#stayWith(undefined);
  }
}
