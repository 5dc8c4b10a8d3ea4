import { NEVER, Observable, defer, filter, map, of, retry, switchMap, tap, throwError } from 'rxjs';
import type { RecoveryDecision } from '../../contract/recovery.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { isOf } from '../../errors/structure.ts';
import { backoffDelayMs } from '../../policy/retry/backoff.ts';
import { permit, permitAtOnce } from './admission.ts';
import type { CallContext } from '../context.ts';
import { BACKING_OFF, TRYING } from '../state.ts';
import { decide, type Weighed } from '../decide.ts';
import { FailedCall } from '../failure.ts';
import { isSafetyCritical } from '../idempotency.ts';
import type { HookRunner } from '../../layer/hooks.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { CallOutcome, SeenFailure } from '../result.ts';
import { afresh, afterCrash, goneOver, retriedHere } from './after-crash.ts';
import { gatesOf, isGated } from './gates.ts';
import { ToolExecution } from './execution.ts';
import { earlierAlternative, earlierAttempts, journalledDecision, resumed } from './resumed.ts';
import { fitted, toolOutput } from './output.ts';
import { CountedFailure, verified } from './verified.ts';

/**
 * All attempts at one tool: `retry(verified(breaker(attemptHooks(attemptTimeout(tool)))))`. Emits the outcome of the
 * one that succeeds; errors with a `FailedCall`.
 *
 * ```
 * first attempt     ---#
 * backoff              ----
 * second attempt           --a|
 * attempts          ---------a|
 * ```
 */
export const attemptsAt = (
  context: CallContext,
  guarded: GuardedTool,
  input: unknown,
  alternatives: readonly string[],
): Observable<CallOutcome> =>
  defer(() => {
    const execution = new ToolExecution(context, guarded, input, alternatives);
    const attempts$ = attempt(execution).pipe(
      verified(execution),
      retry({ delay: (thrown) => recover(execution, thrown) }),
    );
    const gone = earlierAlternative(context, alternatives);
    if (gone !== undefined) return goneOver(execution, gone);
    const earlier = earlierAttempts(context);
    // The attempt that had been decided was still to come.
    const wasWaiting = earlier?.delayLeftMs !== undefined && earlier.delayLeftMs > 0;
    const hasCrashed = context.tookOver && context.attempts === 0 && !wasWaiting;
    const begun$ = hasCrashed ? afterCrash(execution, attempts$) : afresh(execution, attempts$);
    if (earlier === undefined) return begun$;
    const goesOn$ = wasWaiting ? retriedHere(execution, earlier, begun$) : begun$;
    return resumed(execution, earlier).pipe(switchMap(() => goesOn$));
  });

/** Whether the claim of its key, and its turn's, still hold by this machine's clock. */
const mayAct = ({ lease, site }: CallContext): boolean => lease?.holds() !== false && site.undoLog?.holds() !== false;

/** One attempt, from its admission to its end. */
const attempt = (execution: ToolExecution): Observable<CallOutcome> =>
  new Observable((subscriber) => {
    const leave = (): void => execution.left();
    // Left while it starts, there is nothing to take down yet.
    subscriber.add(leave);
    inOwnTurn(execution).subscribe(subscriber);
    // From now on its work is taken down first.
    subscriber.remove(leave);
    subscriber.add(leave);
  });

/** A process that stood still learns first whether its turn still is its own. */
const inOwnTurn = (execution: ToolExecution): Observable<CallOutcome> => {
  const { context } = execution;
  const { journal } = context.site;
  if (journal === undefined || context.isOver || journal.holds()) return started(execution);
  return journal.owned().pipe(switchMap((isOwned) => (isOwned ? started(execution) : NEVER)));
};

/** @throws ToolExecutionError of an attempt that is not admitted, or too late */
const started = (execution: ToolExecution): Observable<CallOutcome> => {
  const { context } = execution;
  // No attempt without a valid claim: whoever watches the lease has just learned of its loss, and stops what runs.
  if (context.isOver || !mayAct(context)) return NEVER;
  context.advance(TRYING);
  const { hooks, sharedBreakers } = context.layer;
  const askedAtMs = execution.ownAttempts === 0 ? execution.startedAtMs : context.site.runtime.now();
  const hasGates = isGated(context, execution.guarded);
  if (!hasGates && sharedBreakers === undefined && hooks === undefined) {
    execution.permit = permitAtOnce(context, execution.breaker, askedAtMs);
    return run(execution, askedAtMs);
  }
  const permitted = (atMs: number): Observable<void> =>
    permit(context, execution.breaker, atMs).pipe(
      tap((given) => (execution.permit = given)),
      switchMap(() => (hooks === undefined ? of(undefined) : approvedBy(hooks, execution))),
    );
  const now = (): number => context.site.runtime.now();
  if (!hasGates) return permitted(askedAtMs).pipe(switchMap(() => run(execution, now())));
  return gatesOf(context, execution.guarded).attempt(execution, {
    permitted: () => permitted(now()),
    run: () => run(execution, now()),
    again: () => started(execution),
  });
};

/**
 * Asks the host's hooks, which can block each attempt. A blocked attempt counts neither as an attempt nor against the
 * tool.
 * @throws ToolExecutionError of an attempt that they block
 */
const approvedBy = (hooks: HookRunner, execution: ToolExecution): Observable<void> => {
  const { context, subject } = execution;
  // A listener of the breaker's change may have ended the call.
  if (context.isOver) return NEVER;
  const number = context.attempts + 1;
  return hooks.before(subject, number).pipe(
    filter(() => !context.isOver),
    map((blocked) => {
      if (blocked === undefined) return;
      execution.takePermit()?.ignore();
      hooks.after(subject, number, { durationMs: 0, error: blocked });
      throw blocked;
    }),
  );
};

/** @throws ToolExecutionError when it is too late for the attempt */
const run = (execution: ToolExecution, atMs: number): Observable<CallOutcome> => {
  const { context } = execution;
  if (context.isOver) return NEVER;
  // A hook or a shared breaker may have taken longer than the lease, or than the turn.
  if (!mayAct(context) || context.remainingMs <= 0) {
    execution.takePermit()?.ignore();
    if (context.isOver || context.remainingMs > 0) return NEVER;
    throw new ToolExecutionError('deadline_exceeded', 'The deadline passed before the attempt could start');
  }
  if (execution.retried !== undefined && isSpent(execution, atMs)) {
    execution.takePermit()?.ignore();
    return failedFor(execution, execution.retried, outOfTime(execution, 'time_exhausted'));
  }
  execution.begin(atMs);
  // A subscriber of that event may have ended the call.
  if (context.isOver) return NEVER;
  return toolOutput(execution, execution.ownAttempts).pipe(
    map((given) => execution.succeed(fitted(execution.guarded, given))),
  );
};

/** What follows a failed attempt: the wait before the next one, or a `FailedCall`. */
const recover = (execution: ToolExecution, thrown: unknown): Observable<unknown> => {
  const { context } = execution;
  if (isOf(thrown, FailedCall)) return throwError(() => thrown);
  const nowMs = context.site.runtime.now();
  const { failure, latencyMs } = isOf(thrown, CountedFailure)
    ? thrown
    : { latencyMs: execution.attemptMs, failure: execution.fail(thrown) };
  // Whoever has its turn now decides about it.
  if (context.isHandedOver) context.cancel();
  if (context.isOver) return NEVER;
  if (context.bare)
    return failedFor(execution, failure, {
      strategy: 'fail',
      code: 'attempts_exhausted',
      reason: 'the layer decides nothing about it',
    });
  const weighed = weigh(execution, nowMs);
  return decide(context, failure, weighed).pipe(
    switchMap((decision) => {
      if (context.isOver) return NEVER;
      return decision.strategy === 'retry'
        ? decidedRetry(execution, failure, weighed, decision.delayMs ?? 0, latencyMs)
        : failedFor(execution, failure, decision);
    }),
  );
};

/** The retry, once it is journalled where the turn has a journal: whoever goes on with it decides nothing again. */
const decidedRetry = (
  execution: ToolExecution,
  failure: SeenFailure,
  weighed: Weighed,
  delayMs: number,
  latencyMs: number,
): Observable<unknown> => {
  const { context } = execution;
  const retry$ = (): Observable<unknown> => backoff(execution, failure, weighed, delayMs, latencyMs);
  const kept$ = journalledDecision(execution, failure.error, delayMs);
  return kept$ === undefined ? retry$() : kept$.pipe(switchMap(() => (context.isOver ? NEVER : retry$())));
};

const maxTotalTimeMsOf = ({ context, guarded }: ToolExecution): number =>
  context.call.retryBudget?.maxElapsedMs ?? guarded.retry.maxTotalTimeMs;

/** Whether it is too late for another attempt. */
const isSpent = (execution: ToolExecution, atMs: number): boolean =>
  atMs - execution.startedAtMs >= maxTotalTimeMsOf(execution);

const outOfTime = ({ context }: ToolExecution, code: 'time_exhausted' | 'turn_deadline'): RecoveryDecision => ({
  strategy: context.call.required ? 'escalate' : 'partial',
  code,
  reason: 'the time was over when the wait ended',
});

const weigh = (execution: ToolExecution, nowMs: number): Weighed => {
  const { context, guarded, ownAttempts } = execution;
  const { layer, call, site } = context;
  const { retry: policy, effects, enforcesKey, cost } = guarded;
  let draw: number | undefined;
  const random = (): number => (draw = site.runtime.random());
  const circumstances = {
    attempt: ownAttempts,
    maxAttempts: call.retryBudget?.maxAttempts ?? policy.maxAttempts,
    elapsedMs: nowMs - execution.startedAtMs,
    maxTotalTimeMs: maxTotalTimeMsOf(execution),
    nextDelayMs: backoffDelayMs(policy, Math.max(0, ownAttempts - 1), execution.previousDelayMs, random),
    budgetAvailable: site.unbudgeted === true || (layer.retryBudget?.available(nowMs) ?? true),
    alternatives: execution.alternatives,
    effects,
    hasIdempotencyKey: enforcesKey,
    retrySafe: call.hints?.expectedRetrySafe ?? false,
    safetyCritical: isSafetyCritical(context, guarded),
    cost,
  };
  return { circumstances, draw };
};

const failedFor = (execution: ToolExecution, failure: SeenFailure, decision: RecoveryDecision): Observable<never> =>
  throwError(() => {
    // A retry that was not admitted was not made: the failure is still the one before it.
    const made = failure.error === execution.refusal ? execution.retried : undefined;
    const last = made ?? (failure.error.kind === 'circuit_open' ? (execution.retried ?? failure) : failure);
    return new FailedCall(
      { ...last, breakerState: failure.breakerState, code: decision.code },
      decision,
      execution.alternatives,
    );
  });

const backoff = (
  execution: ToolExecution,
  failure: SeenFailure,
  { circumstances: { nextDelayMs } }: Weighed,
  delayMs: number,
  latencyMs: number,
): Observable<unknown> => {
  const { context } = execution;
  const { layer, attempts, site } = context;
  const { runtime } = site;
  if (site.unbudgeted !== true) layer.retryBudget?.recordRetry(runtime.now());
  execution.previousDelayMs = nextDelayMs;
  context.advance(BACKING_OFF);
  return runtime.after(delayMs).pipe(
    switchMap(() => {
      // A timer can come late, behind a stalled event loop: no attempt starts once the time is over.
      if (isSpent(execution, runtime.now()))
        return failedFor(execution, failure, outOfTime(execution, 'time_exhausted'));
      if (context.remainingMs <= 0) return failedFor(execution, failure, outOfTime(execution, 'turn_deadline'));
      execution.retrying = { attempt: attempts, delayMs, reasonCode: failure.error.kind, latencyMs };
      execution.retried = failure;
      return [true];
    }),
  );
};
