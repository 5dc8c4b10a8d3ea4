import {
  EMPTY,
  catchError,
  defaultIfEmpty,
  defer,
  map,
  mergeMap,
  of,
  throwError,
  throwIfEmpty,
  type Observable,
} from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { DedupeClaim, DedupeOutcome, DedupeReading } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { idempotent, type IdempotentRun, type Recorder, type RunRecord } from '../operators/dedupe/idempotent.ts';
import { FIND_OUT } from '../operators/dedupe/key-refusals.ts';
import { followKey, type KeyTerms, type TellKeyStep } from '../operators/dedupe/key-acquisition.ts';
import { forgetStandIns } from '../operators/dedupe/stand-ins.ts';
import { callKey, type CallKey } from '../policy/key/call-key.ts';
import { withRecording } from '../policy/key/recording.ts';
import { haveStopped } from './attempt/doubt.ts';
import type { CallContext } from './context.ts';
import { claimantOf, givenUpBy } from '../operators/dedupe/turn-claim.ts';
import { ACQUIRING } from './state.ts';
import { endedBy } from './decide.ts';
import { refusedCall } from './failure.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { outcomeOf, replayOf } from './replay.ts';
import type { CallOutcome } from './result.ts';
import { relied } from './undo-log.ts';

/** The short form has none; envelopes name theirs. */
const NAMESPACE = 'tools';

/**
 * The key of a call that is to be deduped, if it has one.
 * @throws for an input that is no JSON, which no key can be made of
 */
export const keyOf = ({ call, layer }: CallContext, { dedupe }: GuardedTool): CallKey | undefined => {
  if (call.dedupeMode === 'disabled' || (call.idempotencyKey === undefined && !layer.switches.deriveKeys))
    return undefined;
  const { toolNamespace: namespace = NAMESPACE, toolName, input: params, idempotencyKey } = call;
  const { session: sessionKey, actor: actorId, tenant: tenantId } = call;
  const { scope, volatile, whitespace } = dedupe;
  return callKey(
    { namespace, toolName, params, sessionKey, actorId, tenantId, scope, idempotencyKey },
    { volatile, whitespace },
  );
};

/** How long a result is kept: in a turn that moves until its end, since it may not be in the journal yet. */
const doneTtlOf = ({ journal }: CallContext['site'], { doneTtlMs }: GuardedTool['dedupe']): number =>
  Math.max(doneTtlMs, journal?.remainingMs ?? 0);

/** What the store is asked for the key of a call. */
export const claimOf = (
  { call, site }: CallContext,
  { dedupe }: GuardedTool,
  { key, idempotencyKey, paramsDigest }: CallKey,
): DedupeClaim => ({
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
    ...claimantOf(site.journal),
  },
  leaseMs: dedupe.leaseMs,
  // Stores keep a claim for its lease at least: a process that lost it unnoticed can still have its outcome recorded,
  // and others see that something ran.
  ttlMs: doneTtlOf(site, dedupe),
});

/** Whether a call must not be done twice, whatever else allows it. */
export const isSafetyCritical = ({ call }: CallContext, { safetyCritical }: GuardedTool): boolean =>
  safetyCritical || call.hints?.safetyCritical === true;

/** How a call asks the store. */
export const storeTermsOf = ({
  layer: { dedupe },
  site: { runtime },
}: CallContext): Pick<KeyTerms, 'store' | 'runtime' | 'storeTimeoutMs'> => ({
  store: dedupe.store(),
  runtime,
  storeTimeoutMs: dedupe.storeTimeoutMs,
});

/** On which terms a call asks for its key; one whose dedupe is disabled has none to ask for. */
export const termsOf = (context: CallContext, guarded: GuardedTool): KeyTerms => {
  const { call, layer, site } = context;
  return {
    ...storeTermsOf(context),
    leaseMs: guarded.dedupe.leaseMs,
    hasOwnId: call.foreignId !== true,
    writing: () => layer.dedupe.writing(),
    mode: call.dedupeMode === 'bestEffort' ? 'bestEffort' : 'enforced',
    global: guarded.dedupe.scope === 'global',
    // One that can find out what became of the other call does, before it runs.
    neverTwice: isSafetyCritical(context, guarded) && guarded.verify === undefined,
    ...givenUpBy(site.journal),
  };
};

/** An outcome that says itself what became of the record of this call's own run, as far as that is known. */
export const sayingRecord = ({ unkept, executed }: CallContext, outcome: CallOutcome): CallOutcome =>
  unkept === undefined || !executed ? outcome : { ...outcome, result: withRecording(outcome.result, unkept) };

/**
 * Runs a call once per key, around all its attempts and alternatives; a later one gets the outcome of the one that ran.
 */
export const idempotentCall =
  (context: CallContext, guarded: GuardedTool, key: CallKey | undefined) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    if (key === undefined) return source;
    context.callKey = key.idempotencyKey;
    context.advance(ACQUIRING);
    return source.pipe(idempotent(runOf(context, guarded, key)));
  };

const runOf = (context: CallContext, guarded: GuardedTool, key: CallKey): IdempotentRun<CallOutcome> => {
  const { layer } = context;
  const keyed: KeyedCall = {
    context,
    guarded,
    claim: claimOf(context, guarded, key),
    terms: termsOf(context, guarded),
    key,
    tell: (step, about) => context.emit({ type: 'dedupe', step, keyFingerprint: key.fingerprint, ...about }),
  };
  return {
    ...keyed,
    begins: ({ lease, lost, tookOver }) => {
      layer.dedupe.noteAnswer(lost);
      Object.assign(context, { lease, tookOver });
      if (lease === undefined) context.unkept = 'unrecorded';
    },
    refused: (error) => {
      if (error.kind === 'store_unavailable') layer.dedupe.noteAnswer(error);
      return refusedCall(context, error);
    },
    replay: (reading, matchedOn) => {
      layer.dedupe.noteAnswer(undefined);
      return replayed(keyed, reading, matchedOn).pipe(
        catchError((error: ToolExecutionError) => refusedCall(context, error)),
      );
    },
    recorded: (source, record) => heldBack(keyed, source, record),
    left: () => leftRecordOf(keyed),
    lost: (error) => lost(keyed, error),
    outlives: (stop) => {
      if (layer.closed) return false;
      context.goOn(stop);
      return true;
    },
    deserted: () => context.desert(),
    endedAlone: () => context.close(),
  };
};

interface KeyedCall {
  readonly context: CallContext;
  readonly guarded: GuardedTool;
  readonly claim: DedupeClaim;
  readonly terms: KeyTerms;
  readonly key: CallKey;
  readonly tell: TellKeyStep;
}

/** What the store gets of a call, without a result where no caller got one; nothing where no tool was attempted. */
const recordOf = (
  { context, guarded }: KeyedCall,
  result: ToolResultEnvelope | undefined,
  kind: ToolErrorKind | undefined,
): DedupeOutcome | undefined => {
  const { dedupe } = guarded;
  // What may have happened, and what must never happen twice, is not forgotten sooner because it failed; nor what a
  // turn that moves may yet ask for.
  const isOpen = result?.error?.uncertain === true && !guarded.enforcesKey;
  const isKept = isOpen || isSafetyCritical(context, guarded) || context.site.journal !== undefined;
  const doneTtlMs = doneTtlOf(context.site, dedupe);
  const failedTtlMs = isKept ? doneTtlMs : dedupe.failedTtlMs;
  const more = { owner: ownerOf(context, guarded), hasStopped: isOpen && haveStopped(context) };
  const outcome = outcomeOf(context, { doneTtlMs, failedTtlMs }, result, kind, more);
  // Until the store has answered, the outcome counts as one that it did not get.
  if (outcome !== undefined) context.unkept = 'unrecorded';
  return outcome;
};

/** The turn that may undo what the call does. */
const ownerOf = ({ site: { undoLog } }: CallContext, { effects, alternatives }: GuardedTool): string | undefined =>
  effects === 'read' && alternatives.length === 0 ? undefined : undoLog?.owner;

/** What the store gets of a call that did not end by itself: it was ended from outside, or its caller left. */
const leftRecordOf = (keyed: KeyedCall): DedupeOutcome | undefined => {
  const { ending } = keyed.context;
  return recordOf(keyed, ending && endedBy(keyed.context, ending).result, ending?.kind ?? 'canceled');
};

const replayed = (
  { context, guarded, key, tell }: KeyedCall,
  reading: DedupeReading,
  matchedOn: 'inflight' | 'completed',
): Observable<CallOutcome> =>
  defer(() => relied(context, guarded, reading)).pipe(
    map((standing) => {
      const outcome = replayOf(standing, matchedOn, key.fingerprint, context.history);
      tell('replayed', { leaderCallId: standing.record.request.requestId, ageMs: outcome.result.cache?.ageMs ?? 0 });
      return outcome;
    }),
    catchError((error: unknown) => throwError(() => toToolExecutionError(error))),
  );

/** The caller is told its outcome with what became of the record. */
const heldBack = (keyed: KeyedCall, source: Observable<CallOutcome>, record: Recorder): Observable<CallOutcome> =>
  source.pipe(
    mergeMap((outcome) => {
      const concluded = (): DedupeOutcome | undefined => {
        keyed.context.advance({ phase: 'concluding', outcome });
        return recordOf(keyed, outcome.result, outcome.error?.kind);
      };
      return record(concluded, (became) => told(keyed, outcome, became));
    }),
  );

/** What the caller gets, now that it is known what became of the record. A key that was given back has no record. */
const told = (keyed: KeyedCall, own: CallOutcome, became: RunRecord): Observable<CallOutcome> => {
  const { context } = keyed;
  if (became === 'recorded') {
    context.unkept = undefined;
    if (context.lease !== undefined) forgetStandIns(context.lease, keyed.terms);
  } else if (became === 'superseded' || became === 'unrecorded') context.unkept = became;
  if (became !== 'superseded') return of(became === 'released' ? own : sayingRecord(context, own));
  // Another holds the key: its outcome is everybody's. Where there is none, its own stands.
  return followed(keyed).pipe(
    catchError(() => EMPTY),
    defaultIfEmpty(own),
    map((outcome) => sayingRecord(context, outcome)),
  );
};

/** The outcome of whoever holds the key now; completes empty where nobody does, and errors where it cannot be got. */
const followed = (keyed: KeyedCall): Observable<CallOutcome> =>
  followKey(keyed.claim, keyed.terms, keyed.tell).pipe(
    mergeMap((answer) => {
      if (answer.act === 'replay') return replayed(keyed, answer.reading, answer.matchedOn);
      return answer.act === 'refuse' ? throwError(() => answer.error) : EMPTY;
    }),
  );

/**
 * What follows the loss of a lease. Where the store gave no answer, `bestEffort` goes on without one; else the tool has
 * stopped, and the call waits for whoever holds the key now.
 */
const lost = (keyed: KeyedCall, error: ToolExecutionError | undefined): Observable<CallOutcome> | undefined => {
  const { context, terms, tell } = keyed;
  const isForGood = error?.classification === 'permanent';
  tell('lease_lost', error && { message: isForGood ? error.message : 'the store did not answer' });
  if (error !== undefined) context.layer.dedupe.noteAnswer(error);
  if (error !== undefined && terms.mode === 'bestEffort') {
    context.lease = undefined;
    context.unkept = 'unrecorded';
    tell('unprotected');
    return undefined;
  }
  context.unkept = 'superseded';
  // What was found out before holds no longer: another process may act now.
  context.verified = undefined;
  // Nothing ran under it: whoever asks next must not find that something may have.
  if (context.attempts === 0) context.lease?.release();
  return defer(() => {
    const unknown = lostError(keyed, error);
    if (error !== undefined) return refusedCall(context, unknown);
    return followed(keyed).pipe(
      throwIfEmpty(() => unknown),
      // The reason why there is nothing to get does not tell what its own tool may have done.
      catchError((refusal: ToolExecutionError) => refusedCall(context, unknown.uncertain ? unknown : refusal)),
    );
  }).pipe(map((outcome) => sayingRecord(context, outcome)));
};

const lostError = ({ context, guarded }: KeyedCall, error?: ToolExecutionError) => {
  const { executed, uncertain } = context;
  // Its own tool has run, or an earlier process's may have.
  const isOpen = executed || uncertain;
  // Where the record has gone, nothing of it keeps whoever asks again from running the tool, nor has its verify asked.
  const isForGood = error ? error.classification === 'permanent' : isOpen && isSafetyCritical(context, guarded);
  const remedy = isForGood ? (error?.message ?? FIND_OUT) : 'ask again under the same key';
  const what = error ? 'store' : 'idempotency key';
  const message = `The call lost its ${what} while it ran${isOpen ? ' and may have taken effect' : ''}; ${remedy}`;
  const classification = isForGood ? 'permanent' : undefined;
  return new ToolExecutionError('store_unavailable', message, { executed, uncertain: isOpen, classification });
};
