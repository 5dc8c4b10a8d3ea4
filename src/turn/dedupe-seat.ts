import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { DedupeClaim, DedupeOutcome, DedupeReading } from '../contract/store.ts';
import { ToolExecutionError, isToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { Claiming, type Claimant, type ClaimingOptions } from '../operators/claiming.ts';
import type { Lease } from '../operators/lease.ts';
import type { DedupeStep } from '../contract/event.ts';
import type { DedupeMode } from '../policy/claim.ts';
import type { CallContext } from './call-context.ts';
import { callKey, type CallKey } from '../policy/key.ts';
import { withRecording, type FailedRecording } from '../policy/recording.ts';
import type { GuardedTool } from './registry.ts';
import { outcomeOf, replayOf } from './replay.ts';
import type { CallOutcome } from './result.ts';

/** Whose call it is, and hears how its key stands. */
export interface SeatOwner {
  /** It runs now. */
  seatTaken(): void;
  /** It ends with what another found. */
  seatReplayed(outcome: CallOutcome): void;
  seatRefused(error: ToolExecutionError): void;
  /** Its tool must stop: it no longer holds its key. */
  seatLost(): void;
  /** Its caller had left, and now nobody waits for it any more. */
  seatDeserted(): void;
}

/** The short form has none; envelopes name theirs. */
const NAMESPACE = 'tools';

/** The key of a call that is to be deduped, if it has one; an error when its input is no JSON, which no key can be made of. */
const keyOf = ({ call, layer }: CallContext, { dedupe }: GuardedTool): CallKey | ToolExecutionError | undefined => {
  if (call.dedupeMode === 'disabled' || (call.idempotencyKey === undefined && !layer.switches.deriveKeys)) return undefined;
  const { toolNamespace: namespace = NAMESPACE, toolName, input: params, session: sessionKey, actor: actorId, tenant: tenantId, idempotencyKey } = call;
  const { scope, volatile, whitespace } = dedupe;
  try {
    return callKey({ namespace, toolName, params, sessionKey, actorId, tenantId, scope, idempotencyKey }, { volatile, whitespace });
  } catch (error) {
    return toToolExecutionError(error);
  }
};

const claimOf = ({ call }: CallContext, { dedupe }: GuardedTool, { key, idempotencyKey, paramsDigest }: CallKey): DedupeClaim => ({
  key,
  tool: call.toolName,
  idempotencyKey,
  request: {
    sessionKey: call.session ?? '',
    actorId: call.actor ?? '',
    ...(call.tenant === undefined ? {} : { tenantId: call.tenant }),
    requestId: call.callId,
    ...(call.toolCallId === undefined ? {} : { toolCallId: call.toolCallId }),
    paramsDigest,
  },
  leaseMs: dedupe.leaseMs,
  // Longer than the lease: who lost it unnoticed can still have its outcome recorded, and others see that something ran.
  ttlMs: Math.max(dedupe.doneTtlMs, dedupe.leaseMs),
});

/** Whether a call must not be done twice, whatever else allows it. */
const isSafetyCritical = ({ call }: CallContext, { safetyCritical }: GuardedTool): boolean =>
  safetyCritical || call.hints?.safetyCritical === true;

const termsOf = (record: CallContext, guarded: GuardedTool, mode: Exclude<DedupeMode, 'disabled'>): ClaimingOptions => ({
  store: record.layer.dedupe.store(),
  runtime: record.site.runtime,
  leaseMs: guarded.dedupe.leaseMs,
  storeTimeoutMs: record.layer.dedupe.storeTimeoutMs,
  mode,
  global: guarded.dedupe.scope === 'global',
  neverTwice: isSafetyCritical(record, guarded),
});

/** The seat of a call in the store; none for a call that is not deduped, an error for one whose key cannot be made. */
export function dedupeSeat(record: CallContext, owner: SeatOwner, guarded: GuardedTool): DedupeSeat | ToolExecutionError | undefined {
  const key = keyOf(record, guarded);
  const { dedupeMode } = record.call;
  if (key === undefined || dedupeMode === 'disabled' || isToolExecutionError(key)) return key as ToolExecutionError | undefined;
  record.callKey = key.idempotencyKey;
  return new DedupeSeat(record, owner, guarded, key, dedupeMode);
}

/** What a call in shadow mode would have met, in a space of keys of its own. It never waits. */
export function shadowClaim(record: CallContext, guarded: GuardedTool, claimant: Claimant): void {
  const key = keyOf(record, guarded);
  const { dedupeMode } = record.call;
  if (key === undefined || dedupeMode === 'disabled') return;
  if (isToolExecutionError(key)) return claimant.refused(key);
  const claim = claimOf(record, guarded, { ...key, key: `shadow:${key.key}` });
  const claiming = new Claiming(claim, termsOf(record, guarded, dedupeMode), {
    claimed: (lease) => claimant.claimed(lease),
    replayed: (reading, matchedOn) => claimant.replayed(reading, matchedOn),
    refused: (error) => claimant.refused(error),
    tell: (step) => {
      claimant.tell(step);
      if (step === 'waiting') claiming.cancel();
    },
  });
  claiming.start();
}

/**
 * A call's seat in the store: its key, its claim, and what is recorded when it ends. Around all its attempts and alternatives.
 */
export class DedupeSeat implements Claimant {
  readonly #record: CallContext;
  readonly #owner: SeatOwner;
  readonly #guarded: GuardedTool;
  readonly #key: CallKey;
  readonly #mode: Exclude<DedupeMode, 'disabled'>;
  #claiming: Claiming | undefined;
  #lease: Lease | undefined;
  /** Why what its own tool does leaves no record, once that is known. */
  #unkept: FailedRecording | undefined;
  #over = false;

  constructor(record: CallContext, owner: SeatOwner, guarded: GuardedTool, key: CallKey, mode: Exclude<DedupeMode, 'disabled'>) {
    this.#record = record;
    this.#owner = owner;
    this.#guarded = guarded;
    this.#key = key;
    this.#mode = mode;
  }

  /** Whether others of this process wait for its outcome. */
  get waitedFor(): boolean {
    return this.#lease?.waitedFor === true;
  }

  start(): void {
    this.#claiming = this.#newClaiming();
    this.#claiming.start();
  }

  claimed(lease: Lease | undefined, lost?: ToolExecutionError): void {
    this.#record.layer.dedupe.heard(lost);
    this.#lease = lease;
    this.#record.lease = lease;
    if (lease === undefined) this.#unkept = 'unrecorded';
    lease?.onUnwaited(() => this.#owner.seatDeserted());
    lease?.watch((error) => this.#lost(error));
    this.#owner.seatTaken();
  }

  replayed(reading: DedupeReading, matchedOn: 'inflight' | 'completed'): void {
    this.#record.layer.dedupe.heard(undefined);
    const outcome = this.#replay(reading, matchedOn);
    if (isToolExecutionError(outcome)) return this.#owner.seatRefused(outcome);
    this.#owner.seatReplayed(outcome);
  }

  refused(error: ToolExecutionError): void {
    if (error.kind === 'store_unavailable') this.#record.layer.dedupe.heard(error);
    this.#owner.seatRefused(error);
  }

  tell(step: DedupeStep, about: { readonly leaderCallId?: string; readonly fence?: number; readonly ageMs?: number; readonly message?: string } = {}): void {
    this.#record.emit({ type: 'dedupe', step, keyFingerprint: this.#key.fingerprint, ...about });
  }

  /** The call has its outcome: `told` gets what the caller gets, once it is recorded or it is known that it cannot be. */
  settle(outcome: CallOutcome, told: (outcome: CallOutcome) => void): void {
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return told(this.saying(outcome));
    const ended = this.#outcome(outcome.result, outcome.error?.kind);
    const over = this.#record.layer.dedupe.telling();
    if (ended === undefined) {
      lease.release(over);
      this.tell('released');
      return told(outcome);
    }
    // Until the store has answered, nobody knows better.
    this.#unkept = 'unrecorded';
    lease.settle(ended, (recording, why) => {
      over();
      this.#unkept = recording === 'recorded' ? undefined : recording;
      this.tell(recording, why && { message: why.message });
      if (recording === 'superseded') this.#follow(outcome, told);
      else told(this.saying(outcome));
    });
  }

  /** An outcome that says itself what became of the record of this call's own run, as far as that is known. */
  saying(outcome: CallOutcome): CallOutcome {
    if (this.#unkept === undefined || !this.#record.executed) return outcome;
    return { ...outcome, result: withRecording(outcome.result, this.#unkept) };
  }

  /** The call ends without waiting: what the store is told about it, it is told in the background. */
  leave(result: ToolResultEnvelope | undefined, kind: ToolErrorKind): void {
    this.#over = true;
    this.#claiming?.cancel();
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    const ended = this.#outcome(result, kind);
    const over = this.#record.layer.dedupe.telling();
    if (ended === undefined) {
      lease.release(over);
      return this.tell('released');
    }
    lease.settle(ended, (recording, why) => {
      over();
      this.tell(recording, why && { message: why.message });
    });
  }

  #newClaiming(claimant: Claimant = this): Claiming {
    return new Claiming(claimOf(this.#record, this.#guarded, this.#key), termsOf(this.#record, this.#guarded, this.#mode), claimant);
  }

  #outcome(result: ToolResultEnvelope | undefined, kind: ToolErrorKind | undefined): DedupeOutcome | undefined {
    const { dedupe } = this.#guarded;
    // What must never happen twice is not forgotten sooner because it failed.
    const failedTtlMs = isSafetyCritical(this.#record, this.#guarded) ? dedupe.doneTtlMs : dedupe.failedTtlMs;
    return outcomeOf(this.#record, { ...dedupe, failedTtlMs }, result, kind);
  }

  #replay(reading: DedupeReading, matchedOn: 'inflight' | 'completed'): CallOutcome | ToolExecutionError {
    try {
      const outcome = replayOf(reading, matchedOn, this.#key.fingerprint, this.#record.history);
      this.tell('replayed', { leaderCallId: reading.record.request.requestId, ageMs: outcome.result.cache?.ageMs ?? 0 });
      return outcome;
    } catch (error) {
      return toToolExecutionError(error);
    }
  }

  /** Another holds the key: its outcome is everybody's. Where there is none, `own` stands. */
  #follow(own: CallOutcome, told: (outcome: CallOutcome) => void): void {
    // Whoever heard of it may have ended the call.
    if (this.#over) return;
    const keep = (): void => told(this.saying(own));
    this.#claiming = this.#newClaiming({
      claimed: keep,
      refused: keep,
      replayed: (reading, matchedOn) => {
        const outcome = this.#replay(reading, matchedOn);
        told(this.saying(isToolExecutionError(outcome) ? own : outcome));
      },
      tell: (step, about) => this.tell(step, about),
    });
    this.#claiming.follow(keep);
  }

  /** The claim could not be kept. Without a word of the store `bestEffort` goes on; else the tool stops, and whoever holds the key now is waited for. */
  #lost(error: ToolExecutionError | undefined): void {
    this.#lease = undefined;
    this.tell('lease_lost', error === undefined ? {} : { message: error.classification === 'permanent' ? error.message : 'the store did not answer' });
    if (error !== undefined) this.#record.layer.dedupe.heard(error);
    if (error !== undefined && this.#mode === 'bestEffort') {
      this.#record.lease = undefined;
      this.#unkept = 'unrecorded';
      return this.tell('unprotected');
    }
    this.#unkept = 'superseded';
    this.#owner.seatLost();
    if (this.#over) return;
    const executed = this.#record.executed;
    const why = error === undefined ? 'The call lost its idempotency key while it ran' : 'The store was lost while the call ran';
    const forGood = error?.classification === 'permanent';
    const what = `${why}${executed ? ' and may have taken effect' : ''}; ${forGood ? error.message : 'ask again under the same key'}`;
    const unknown = new ToolExecutionError('store_unavailable', what, { executed, uncertain: executed, ...(forGood ? { classification: 'permanent' } : {}) });
    if (error !== undefined) return this.#owner.seatRefused(unknown);
    this.#claiming = this.#newClaiming({
      claimed: () => this.#owner.seatRefused(unknown),
      replayed: (reading, matchedOn) => this.replayed(reading, matchedOn),
      // Why there is nothing to get says nothing about what its own tool may have done.
      refused: (refusal) => (executed ? this.#owner.seatRefused(unknown) : this.refused(refusal)),
      tell: (step, about) => this.tell(step, about),
    });
    this.#claiming.follow(() => this.#owner.seatRefused(unknown));
  }
}
