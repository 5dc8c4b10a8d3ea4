import { Observable, catchError, defer, mergeMap, retry, takeLast, tap, throwError } from 'rxjs';
import type { BreakerStateName } from '../contract/envelope.ts';
import type { Classification } from '../contract/error-kind.ts';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import type { Breaker } from '../operators/breaker.ts';
import { circuitBreaker } from '../operators/circuit-breaker.ts';
import { backoffDelayMs } from '../policy/backoff.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import type { BreakerOutcome } from '../policy/breaker.ts';
import { classify } from '../policy/classify.ts';
import { attempt } from './attempt.ts';
import type { CallRun } from './call-run.ts';
import type { GuardedTool } from './registry.ts';
import { readInput } from './request.ts';
import { reportOf, type Failure } from './result.ts';

/** A failure that is not retried, on its way to an alternative or to the result. */
export class FinalFailure {
  readonly failure: Failure;
  readonly decision: RecoveryDecision;
  constructor(failure: Failure, decision: RecoveryDecision) {
    this.failure = failure;
    this.decision = decision;
  }
}

/** A failure with its class and what the breaker made of it. */
interface Judged {
  readonly error: ToolExecutionError;
  readonly classification: Classification;
  readonly breakerState: BreakerStateName;
}

type Circumstances = Omit<FailureNotification, 'toolName' | 'callId' | 'turnId' | 'error' | 'classification' | 'breakerState' | 'turnRemainingMs' | 'required'>;

/** Asks the error handler about a failure and tells its decision. A failure that is not retried becomes final. */
function decide(run: CallRun, judged: Judged, circumstances: Circumstances, wait: (decision: RecoveryDecision) => Observable<unknown>): Observable<unknown> {
  const { call, seat, layer } = run;
  const { error, classification, breakerState } = judged;
  const act = (decision: RecoveryDecision): Observable<unknown> => {
    const { strategy, code, reason, delayMs = 0 } = decision;
    run.emit({ type: 'decision', strategy, code, reason, classification, breakerState, ...(strategy === 'retry' ? { delayMs } : {}) });
    return strategy === 'retry' ? wait(decision) : throwError(() => new FinalFailure({ error, classification, code, breakerState }, decision));
  };
  const decided = layer.recover({
    toolName: run.toolName,
    callId: call.callId,
    turnId: seat.turnId,
    error,
    classification,
    breakerState,
    turnRemainingMs: run.remainingMs,
    required: seat.required,
    ...circumstances,
  });
  return decided instanceof Observable ? decided.pipe(mergeMap(act)) : act(decided);
}

/** Circumstances of a failure without any attempt. */
const unattempted: Circumstances = {
  attempt: 0,
  maxAttempts: 1,
  elapsedMs: 0,
  maxTotalTimeMs: Infinity,
  nextDelayMs: 0,
  budgetAvailable: true,
  alternatives: [],
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: false,
};

/** Fails a call before any attempt: there is nothing to try again. */
export function refuse(run: CallRun, error: ToolExecutionError, alternatives: readonly string[] = []): Observable<unknown> {
  const { classification, rule } = classify(error);
  const breakerState = 'disabled';
  run.emit({ type: 'rejected', error: reportOf(error), classification, rule, breakerState });
  const fail = (decision: RecoveryDecision): Observable<never> => throwError(() => new FinalFailure({ error, classification, code: decision.code, breakerState }, decision));
  return decide(run, { error, classification, breakerState }, { ...unattempted, alternatives }, fail).pipe(orAlternative(run, alternatives));
}

/** What the breaker of a call is known by: its tool, or what the caller asked for, and the tenant. */
const breakerOf = ({ call, layer }: CallRun, { tool, breaker }: GuardedTool): Breaker | undefined => {
  if (breaker === undefined) return undefined;
  if (call.breakerHint === 'global') return layer.breakers.get('*', call.tenant);
  return layer.breakers.get(call.breakerHint === 'dependency' ? (tool.dependency ?? tool.name) : tool.name, call.tenant, breaker);
};

/** All attempts at one tool: `retry(breaker(attempt))`. */
function attempts(run: CallRun, guarded: GuardedTool, input: unknown, alternatives: readonly string[]): Observable<unknown> {
  const { call, seat, layer } = run;
  const { runtime } = seat;
  const breaker = breakerOf(run, guarded);
  const maxAttempts = call.retryBudget?.maxAttempts ?? guarded.retry.maxAttempts;
  const maxTotalTimeMs = call.retryBudget?.maxElapsedMs ?? guarded.retry.maxTotalTimeMs;
  const firstStartedAtMs = runtime.now();
  const attemptsBefore = run.attempts;
  const ownAttempt = (): number => run.attempts - attemptsBefore;
  let executedBefore = seat.executed;
  let startedAtMs = firstStartedAtMs;
  let previousDelayMs: number | undefined;

  const tellFailure = ({ error, ...judged }: Judged, rule: string): void => {
    const report = { error: reportOf(error), rule, ...judged };
    if (!run.attempting) return run.emit({ type: 'rejected', ...report });
    run.attempting = false;
    if (!error.executed) seat.executed = executedBefore;
    const { timeoutMs } = (error.details ?? {}) as { readonly timeoutMs?: number };
    const limit = error.kind === 'timeout' && timeoutMs !== undefined ? { timeoutMs } : {};
    run.emit({ type: 'attempt_failed', attempt: run.attempts, durationMs: runtime.now() - startedAtMs, ...report, ...limit });
  };

  const recover = (thrown: unknown): Observable<unknown> => {
    const error = toToolExecutionError(thrown, runtime.wallNow);
    const { classification, rule } = classify(error, guarded.classification);
    const judged: Judged = { error, classification, breakerState: breaker?.state.type ?? 'disabled' };
    const now = runtime.now();
    tellFailure(judged, rule);
    const nextDelayMs = backoffDelayMs(guarded.retry, Math.max(0, ownAttempt() - 1), previousDelayMs, () => runtime.random());
    const circumstances: Circumstances = {
      attempt: ownAttempt(),
      maxAttempts,
      elapsedMs: now - firstStartedAtMs,
      maxTotalTimeMs,
      nextDelayMs,
      budgetAvailable: layer.retryBudget?.available(now) ?? true,
      alternatives,
      effects: guarded.effects,
      hasIdempotencyKey: guarded.enforcesKey,
      retrySafe: call.hints?.expectedRetrySafe ?? false,
      safetyCritical: guarded.safetyCritical || call.hints?.safetyCritical === true,
    };
    return decide(run, judged, circumstances, ({ delayMs = 0 }) => {
      layer.retryBudget?.recordRetry(now);
      previousDelayMs = nextDelayMs;
      run.retriedBy.push({ attempt: run.attempts, delayMs, reasonCode: error.kind, latencyMs: now - startedAtMs });
      return runtime.after(delayMs);
    });
  };

  const outcome = (thrown: unknown): BreakerOutcome => {
    const error = toToolExecutionError(thrown, runtime.wallNow);
    return breakerOutcome(error, classify(error, guarded.classification).classification);
  };
  const attempt$ = defer(() => {
    executedBefore = seat.executed;
    startedAtMs = runtime.now();
    return attempt(run, guarded, input, ownAttempt);
  });
  return (breaker === undefined ? attempt$ : attempt$.pipe(circuitBreaker(breaker, outcome))).pipe(
    // The value only after the breaker has counted the success: what it leads to may call the same tool.
    takeLast(1),
    tap(() => {
      run.attempting = false;
      const number = ownAttempt();
      const message = number > 1 ? { message: `Tool succeeded on retry ${number}` } : {};
      run.emit({ type: 'attempt_succeeded', attempt: run.attempts, durationMs: runtime.now() - startedAtMs, ...message });
    }),
    retry({ delay: recover }),
  );
}

/** Goes to the alternative that a final failure was given, if any; each has its own policy and breaker. */
const orAlternative = (run: CallRun, alternatives: readonly string[]): ((source: Observable<unknown>) => Observable<unknown>) =>
  catchError((thrown: unknown) => {
    const next = thrown instanceof FinalFailure && thrown.decision.strategy === 'alternative' ? thrown.decision.toolName : undefined;
    if (next === undefined) return throwError(() => thrown);
    const rest = alternatives.slice(alternatives.indexOf(next) + 1);
    const guarded = run.layer.registry.get(next);
    if (guarded === undefined) return refuse(run, new ToolExecutionError('unknown_tool', `No tool is named ${next}`), rest);
    const from = run.toolName;
    run.toolName = next;
    run.emit({ type: 'alternative_used', from, message: 'Used alternative tool' });
    return runTool(run, guarded, rest, rest);
  });

/**
 * A tool, and after it its alternatives: `validate(alternatives(retry(breaker(attempt))))`. Gives the output of the first that succeeds.
 *
 * @param ifInvalid what may still be tried when the input does not fit this tool; nothing for the tool that was asked for
 */
export function runTool(run: CallRun, guarded: GuardedTool, alternatives: readonly string[], ifInvalid: readonly string[] = []): Observable<unknown> {
  const { input, error } = readInput(guarded.tool.input, run.call.input);
  return error === undefined ? attempts(run, guarded, input, alternatives).pipe(orAlternative(run, alternatives)) : refuse(run, error, ifInvalid);
}
