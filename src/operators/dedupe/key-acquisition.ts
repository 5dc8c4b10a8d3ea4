import { EMPTY, NEVER, Observable, catchError, defer, merge, mergeMap, of, repeat, take } from 'rxjs';
import type { DedupeStep } from '../../contract/event.ts';
import type { DedupeClaim, DedupeReading, DedupeStore } from '../../contract/store.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { decideClaim, type DedupeMode } from '../../policy/key/claim.ts';
import { ask } from './ask.ts';
import { Lease, type LeaseTerms } from './lease.ts';
import { clearedOfLost, forgetLost, loseClaim } from './lost-claims.ts';
import { KEY_REFUSALS, lostSight } from './key-refusals.ts';
import { AT_ONCE_MS, releaseIf } from './release-if.ts';
import { given } from '../../policy/check.ts';

/** Between two looks at a record that another holds; notifications of the store come before that. */
const POLL_MIN_MS = 25;
const POLL_FIRST_MS = 50;
const POLL_MAX_MS = 1_000;

/** On which terms a key is asked for. */
export interface KeyTerms extends LeaseTerms {
  readonly mode: Exclude<DedupeMode, 'disabled'>;
  /** The key is shared by all sessions of a tenant. */
  readonly global: boolean;
  /** It must not run where another may have taken effect under its key. */
  readonly neverTwice: boolean;
  /**
   * Whether whoever holds the key was given up by those who know, however long its lease still lasts. Asked of each
   * claim in the way, once it was read; emits `true` when its owner has certainly been able to learn it. Default:
   * nobody is.
   */
  readonly givenUp?: (held: DedupeReading['record']) => Observable<boolean>;
}

/** Called at each step of a key, while it is asked for and while it is held. */
export type TellKeyStep = (
  step: DedupeStep,
  about?: {
    readonly leaderCallId?: string;
    readonly fence?: number;
    readonly ageMs?: number;
    readonly leaseUntilMs?: number;
    readonly message?: string;
  },
) => void;

/** What comes of asking for a key. */
export type KeyAnswer =
  /**
   * The call runs, in place of an earlier one where it took over. Without a lease nothing protects it: the store is
   * lost, for the reason given, and the call is one that would rather run than not.
   */
  | { readonly act: 'run'; readonly lease: Lease; readonly tookOver: boolean; readonly lost?: undefined }
  | { readonly act: 'run'; readonly lease?: undefined; readonly tookOver: boolean; readonly lost: ToolExecutionError }
  /** It gets what the record holds. */
  | { readonly act: 'replay'; readonly reading: DedupeReading; readonly matchedOn: 'inflight' | 'completed' }
  | { readonly act: 'refuse'; readonly error: ToolExecutionError };

/** The leases that are held in this process, so that those who wait for one can keep its work alive. */
const leases = new WeakMap<DedupeStore, Map<string, Lease>>();

const leasesOf = (store: DedupeStore): Map<string, Lease> => {
  let held = leases.get(store);
  if (held === undefined) leases.set(store, (held = new Map<string, Lease>()));
  return held;
};

/** Where one inquiry stands between two questions to the store. */
interface Inquiry {
  readonly claim: DedupeClaim;
  readonly terms: KeyTerms;
  readonly tell: TellKeyStep;
  /** Only waits for the outcome of whoever holds the key. */
  readonly follows: boolean;
  /** The store was asked to grant a claim, and has not answered. */
  isAsking: boolean;
  /** What the store is asked next. */
  next: 'claim' | 'look';
  /** The version that the next claim takes over from. */
  over?: number | undefined;
  /** The call of the record that was in the way last. */
  leaderCallId?: string;
  /** Whether that may have taken effect, or may yet. */
  uncertain?: boolean;
  /** Emits when the store is to be asked again; completes where nothing more is to be asked. */
  pause$: Observable<unknown>;
  pollMs: number;
  waited: boolean;
  /** The lease of this process that it waits for. */
  leader?: Lease | undefined;
}

/** Asks at once. */
const NO_PAUSE = of(undefined);

/**
 * Gets a key, or what is remembered under it: asks the store, decides by `decideClaim`, and looks again when the record
 * may have changed. Emits one answer. Unsubscribing gives up; a claim that the store grants all the same is given back.
 */
export const acquireKey = (claim: DedupeClaim, terms: KeyTerms, tell: TellKeyStep): Observable<KeyAnswer> =>
  inquire({ claim, terms, tell, follows: false, next: 'claim', waited: false });

/**
 * Waits for the outcome of whoever holds the key now, after its own lease was lost; completes without an answer when
 * nobody does.
 */
export const followKey = (claim: DedupeClaim, terms: KeyTerms, tell: TellKeyStep): Observable<KeyAnswer> =>
  inquire({ claim, terms, tell, follows: true, next: 'look', waited: true });

const inquire = (begun: Omit<Inquiry, 'isAsking' | 'pause$' | 'pollMs'>): Observable<KeyAnswer> =>
  new Observable((subscriber) => {
    const inquiry: Inquiry = { ...begun, isAsking: false, pause$: EMPTY, pollMs: POLL_FIRST_MS };
    subscriber.add(() => {
      stayWith(inquiry, undefined);
      nothingRuns(inquiry);
    });
    // The caller may have left when it heard why the key is asked for.
    if (subscriber.closed) return;
    defer(() => (inquiry.next === 'claim' ? claimed(inquiry) : looked(inquiry)))
      .pipe(
        repeat({ delay: () => inquiry.pause$ }),
        catchError((error: ToolExecutionError) => unanswered(inquiry, error)),
      )
      .subscribe(subscriber);
  });

const claimed = (inquiry: Inquiry): Observable<KeyAnswer> => {
  inquiry.pause$ = EMPTY;
  // Nobody holds the key that was followed.
  if (inquiry.follows) return EMPTY;
  const { claim, terms, over } = inquiry;
  const { store, runtime, storeTimeoutMs } = terms;
  const sentAtMs = runtime.now();
  const leaseOf = ({ record }: DedupeReading): Lease => new Lease(record, sentAtMs, terms, over !== undefined);
  const giveBack = (late: DedupeReading & { readonly created: boolean }): void => {
    if (late.created) leaseOf(late).release();
  };
  inquiry.isAsking = true;
  return ask(() => store.setIfNotExists(claim, over), storeTimeoutMs, runtime, giveBack).pipe(
    mergeMap((answer) => {
      inquiry.isAsking = false;
      if (!answer.created) return considered(inquiry, answer);
      const lease = leaseOf(answer);
      return lease.valid ? granted(inquiry, lease) : confirmed(inquiry, lease);
    }),
  );
};

/**
 * The store took so long that the lease has passed by our own clock: nothing is run before it says that the claim still
 * stands.
 */
const confirmed = (inquiry: Inquiry, lease: Lease): Observable<KeyAnswer> =>
  lease.confirmed().pipe(
    mergeMap((held) => (held ? granted(inquiry, lease) : later(inquiry, 'claim', NO_PAUSE))),
    catchError((error: unknown) => {
      lease.release();
      throw error;
    }),
  );

const looked = (inquiry: Inquiry): Observable<KeyAnswer> => {
  inquiry.pause$ = EMPTY;
  const { store, runtime, storeTimeoutMs } = inquiry.terms;
  return ask(() => store.get(inquiry.claim.key), storeTimeoutMs, runtime).pipe(
    mergeMap((reading) => {
      if (reading !== undefined) return considered(inquiry, reading);
      inquiry.uncertain = false;
      return later(inquiry, 'claim', NO_PAUSE);
    }),
  );
};

/** Nothing yet: the store is asked again after a pause. */
const later = (
  inquiry: Inquiry,
  next: Inquiry['next'],
  pause$: Observable<unknown>,
  over?: number,
): Observable<KeyAnswer> => {
  Object.assign(inquiry, { next, pause$, over });
  return EMPTY;
};

const considered = (inquiry: Inquiry, reading: DedupeReading): Observable<KeyAnswer> => {
  const { claim, terms, tell, waited } = inquiry;
  const { mode, global, neverTwice } = terms;
  const { key, tool, request } = claim;
  const { record } = reading;
  const leaderCallId = record.request.requestId;
  const cleared$ = inquiry.follows ? undefined : clearedOfLost(terms, record);
  if (cleared$ !== undefined)
    return cleared$.pipe(mergeMap(() => later(inquiry, 'look', terms.runtime.after(2 * AT_ONCE_MS))));
  Object.assign(inquiry, { leaderCallId, uncertain: record.state === 'inflight' || record.error?.uncertain });
  const decision = decideClaim(reading, { key, tool, mode, request, neverTwice }, global);
  switch (decision.act) {
    case 'take_over':
      return later(inquiry, 'claim', NO_PAUSE, decision.version);
    case 'wait':
      if (terms.givenUp !== undefined && !inquiry.follows) return released(inquiry, reading, terms.givenUp);
      return held(inquiry, reading);
    case 'replay':
      return of({ act: 'replay', reading, matchedOn: waited ? 'inflight' : 'completed' });
    case 'refuse': {
      const error = KEY_REFUSALS[decision.because](reading);
      const { message } = error;
      if (decision.because !== 'cancelled')
        tell(decision.because === 'conflict' ? 'conflict' : 'busy', { leaderCallId, message });
      return of({ act: 'refuse', error });
    }
  }
};

/** Another runs: its outcome is waited for. */
const held = (inquiry: Inquiry, reading: DedupeReading): Observable<KeyAnswer> => {
  const { terms, tell, waited } = inquiry;
  const leaderCallId = reading.record.request.requestId;
  if (!waited) tell('waiting', { leaderCallId, leaseUntilMs: terms.runtime.now() + leaseLeftMs(reading) });
  inquiry.waited = true;
  return later(inquiry, 'look', changeOf(inquiry, reading));
};

/**
 * The record was read before anybody asked whether its owner was given up: so the claim that is ended here is that
 * owner's, and no later one's.
 */
const released = (
  inquiry: Inquiry,
  reading: DedupeReading,
  givenUp: NonNullable<KeyTerms['givenUp']>,
): Observable<KeyAnswer> => {
  const { claim, terms } = inquiry;
  return givenUp(reading.record).pipe(
    mergeMap((isGivenUp) => {
      if (!isGivenUp) return held(inquiry, reading);
      return releaseIf(terms, claim.key, reading.record.version).pipe(
        mergeMap(() => later(inquiry, 'look', terms.runtime.after(2 * AT_ONCE_MS))),
      );
    }),
  );
};

/** For how long the holder of a record has it, by the store's own clock, as it stands. */
const leaseLeftMs = ({ record, atMs }: DedupeReading): number => Math.max(0, (record.lockUntilMs ?? 0) - atMs);

/** When a record may have changed: the store says so, its lease ends, or it is time to look before a result is gone. */
const changeOf = (inquiry: Inquiry, reading: DedupeReading): Observable<unknown> => {
  const { key, ttlMs } = reading.record;
  const { store, runtime } = inquiry.terms;
  const keptMs = Math.max(POLL_MIN_MS, ttlMs / 2);
  const waitMs = Math.min(leaseLeftMs(reading), keptMs, inquiry.pollMs * (0.5 + runtime.random()));
  inquiry.pollMs = Math.min(POLL_MAX_MS, inquiry.pollMs * 2);
  return defer(() => {
    stayWith(inquiry, leasesOf(store).get(key));
    return merge(store.changes?.(key) ?? NEVER, runtime.after(waitMs)).pipe(take(1));
  });
};

const stayWith = (inquiry: Inquiry, leader: Lease | undefined): void => {
  if (leader === inquiry.leader) return;
  inquiry.leader?.leave();
  inquiry.leader = leader;
  leader?.wait();
};

/** The key is held from now on. Whoever hears of it may have ended the call: then it is given back. */
const granted = (inquiry: Inquiry, lease: Lease): Observable<KeyAnswer> =>
  new Observable((subscriber) => {
    const { claim, terms, tell, leaderCallId } = inquiry;
    const { store } = terms;
    const held = leasesOf(store);
    held.set(claim.key, lease);
    forgetLost(store, claim);
    lease.onEnd(() => {
      if (held.get(claim.key) === lease) held.delete(claim.key);
    });
    const { fence } = lease;
    if (!lease.tookOver) tell('claimed', { fence });
    else tell('taken_over', given({ fence, leaderCallId }));
    if (subscriber.closed) return lease.release();
    subscriber.next({ act: 'run', lease, tookOver: lease.tookOver });
    subscriber.complete();
  });

/** The store may have granted a claim without telling, if it was asked for one. */
const nothingRuns = (inquiry: Inquiry): void => {
  const { claim, terms, over, isAsking } = inquiry;
  inquiry.isAsking = false;
  if (isAsking) loseClaim(terms, claim, over !== undefined);
};

/** Without the store `enforced` refuses, as does a call that has waited; else `bestEffort` runs and says so. */
const unanswered = (inquiry: Inquiry, error: ToolExecutionError): Observable<KeyAnswer> => {
  const { terms, waited, tell, uncertain = false } = inquiry;
  if (terms.mode === 'enforced' || waited) {
    nothingRuns(inquiry);
    return of({ act: 'refuse', error: uncertain ? lostSight(error) : error });
  }
  inquiry.isAsking = false;
  tell('unprotected', { message: error.message });
  return of({ act: 'run', tookOver: uncertain, lost: error });
};
