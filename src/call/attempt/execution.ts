import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { RetryRecord } from '../../contract/envelope.ts';
import type { Classification } from '../../contract/error-kind.ts';
import type { JournalledDecision } from '../../contract/fleet/journal.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import type { Breaker } from '../../operators/breaker/breaker.ts';
import type { GivenPermit } from '../../operators/breaker/permit.ts';
import type { AttemptSignal } from '../../operators/work/attempt-signal.ts';
import { StopWatch } from '../../operators/work/stop-watch.ts';
import { limitOf } from '../../operators/attempt-timeout.ts';
import { settlePermit } from '../../operators/circuit-breaker.ts';
import { breakerOutcome } from '../../policy/breaker/outcome.ts';
import { classify } from '../../policy/recovery/classify.ts';
import { inDoubt } from '../../policy/model-text.ts';
import { doubted } from '../../policy/recovery/proof.ts';
import { breakerOf } from './admission.ts';
import { given } from '../../policy/check.ts';
import type { CallContext } from '../context.ts';
import type { EventBody } from '../events.ts';
import { LIVE, TRYING } from '../state.ts';
import type { Reservation } from '../../layer/gate-port.ts';
import type { HookSubject } from '../../layer/hooks.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import { reportOf, successResult, type CallOutcome, type SeenFailure } from '../result.ts';

/** A tool that was not aborted by us and says `AbortError` gave up by itself: nobody canceled the call. */
const abortedItself = ({ message, code, cause }: ToolExecutionError): ToolExecutionError =>
  new ToolExecutionError('execution_error', `The tool aborted itself: ${message}`, { code, cause, uncertain: true });

/** All attempts at one tool: what they share and have used up. It emits the events of each one's beginning and end. */
export class ToolExecution {
  readonly context: CallContext;
  readonly guarded: GuardedTool;
  readonly input: unknown;
  readonly alternatives: readonly string[];
  readonly breaker: Breaker | undefined;
  startedAtMs: number;
  previousDelayMs: number | undefined;
  /** A retry that was decided and has not begun. */
  retrying: RetryRecord | undefined;
  /** The failure that the present attempt is a retry after. */
  retried: SeenFailure | undefined;
  /** The permit of the present attempt, until that has ended. */
  permit: GivenPermit | undefined;
  /** What the present attempt has reserved of budgets. */
  reservation: Reservation | undefined;
  /** Budgets have counted a call of this tool. */
  isCounted = false;
  /** Why a gate let the present attempt not pass. */
  refusal: ToolExecutionError | undefined;
  /** The call's attempts before these. */
  #attemptsBefore: number;
  /** Of the work of the present attempt. */
  signal: AttemptSignal | undefined;
  /** Sees whether the work of any of its attempts goes on after its end; only where that may be asked. */
  readonly work: StopWatch | undefined;
  /** An attempt has its `attempt_started` and no event of its end yet. */
  isAttempting = false;
  #hasAnswered = false;
  #learned = true;
  #attemptStartedAtMs: number;
  #executedBefore = false;
  /** Another tool before this one may have taken effect. */
  readonly #wasUncertain: boolean;

  constructor(context: CallContext, guarded: GuardedTool, input: unknown, alternatives: readonly string[]) {
    this.context = context;
    this.guarded = guarded;
    this.input = input;
    this.alternatives = alternatives;
    this.breaker = breakerOf(context, guarded);
    this.work = guarded.verify === undefined ? undefined : new StopWatch(guarded.verify.stopsOnUnsubscribe);
    context.toolInUse = this;
    this.startedAtMs = context.site.runtime.now();
    this.#attemptStartedAtMs = this.startedAtMs;
    this.#attemptsBefore = context.attempts;
    this.#wasUncertain = context.uncertain;
  }

  /**
   * Counts the attempts that were made before the turn moved here: the next one is a retry after their last failure.
   */
  takeUp(earlier: JournalledDecision, failure: SeenFailure): void {
    const { attempt, attemptsBefore = 0, elapsedMs, delayMs, delayLeftMs = delayMs, kind } = earlier;
    const { context } = this;
    context.attempts += attemptsBefore + attempt;
    this.#attemptsBefore += attemptsBefore;
    context.executed ||= attemptsBefore + attempt > 0;
    context.uncertain ||= earlier.uncertain === true;
    if (attempt === 0) return;
    this.isCounted = earlier.uncounted !== true;
    this.startedAtMs -= elapsedMs + Math.max(0, delayMs - delayLeftMs);
    this.previousDelayMs = delayMs;
    this.retried = failure;
    this.retrying = { attempt, delayMs, reasonCode: kind, latencyMs: 0 };
  }

  get breakerState(): BreakerStateName {
    return this.breaker?.state.type ?? 'disabled';
  }

  /** Attempts at this tool so far. */
  get ownAttempts(): number {
    return this.context.attempts - this.#attemptsBefore;
  }

  get attemptMs(): number {
    return Math.max(0, this.context.site.runtime.now() - this.#attemptStartedAtMs);
  }

  /**
   * How long an attempt may take: the tool's own limit, or what its caller wants if that is less. A call that goes
   * straight through has none.
   */
  get limitMs(): number {
    return Math.min(this.guarded.timeoutMs, this.context.call.hints?.timeoutMs ?? Infinity);
  }

  /** What a result says of the tool that gave it, where that is an alternative. */
  get #metadata(): { readonly alternativeFor: string } | undefined {
    const { toolName, call } = this.context;
    return toolName === call.toolName ? undefined : { alternativeFor: call.toolName };
  }

  get subject(): HookSubject {
    return { context: this.context, guarded: this.guarded, input: this.input };
  }

  /** Counts an attempt that begins now, and emits `attempt_started`. */
  begin(atMs: number): void {
    const { context } = this;
    if (this.retrying !== undefined) context.recordRetry(this.retrying);
    this.retrying = undefined;
    this.#learned = false;
    this.#attemptStartedAtMs = atMs;
    this.#executedBefore = context.executed;
    this.#hasAnswered = false;
    this.isAttempting = true;
    context.verified = undefined;
    context.executed = true;
    context.attempts++;
    context.advance(LIVE);
    context.events.attemptStarted(atMs, Math.min(atMs + this.limitMs, context.call.deadlineMs));
  }

  /** The tool gave a value, and may give more. */
  answered(): void {
    this.#hasAnswered = true;
    this.permit?.progress?.();
  }

  /** The tool has given its output. */
  succeed(output: unknown): CallOutcome {
    const { context } = this;
    const { layer, site } = context;
    const atMs = site.runtime.now();
    this.takePermit()?.success(atMs);
    this.#learn(true);
    // A listener of the breaker's change may have ended the call: then this attempt counts as one that was cut short.
    if (!context.isOver) {
      this.isAttempting = false;
      context.advance(TRYING);
      context.uncertain = true;
      const durationMs = Math.max(0, atMs - this.#attemptStartedAtMs);
      context.recordAttempt(durationMs);
      context.events.attemptSucceeded(durationMs, this.ownAttempts, atMs, this.reservation?.told);
      layer.hooks?.after(this.subject, context.attempts, { durationMs, output });
    }
    // A hook may have taken its time.
    return {
      result: successResult(
        context.historyAt(layer.hooks === undefined ? atMs : site.runtime.now()),
        output,
        this.#metadata,
      ),
    };
  }

  /** What was thrown as a failure, counted and with its event; where no attempt had begun, as a refusal. */
  fail(thrown: unknown): SeenFailure {
    const error = this.isAttempting ? this.#entered(thrown) : this.#refused(thrown as ToolExecutionError);
    const { classification, rule } = classify(error, this.guarded.classification);
    if (this.isAttempting) {
      if (error.uncertain) this.context.uncertain = true;
      settlePermit(this.takePermit(), breakerOutcome(error, classification, rule), error);
      this.#learn(false);
    }
    const failure: SeenFailure = { error, classification, breakerState: this.breakerState };
    // A listener of the breaker's change may have ended the call.
    if (!this.context.isOver) this.#tell(failure, rule);
    return failure;
  }

  /** It was found out that it took effect: a success, although its attempt failed. */
  foundDone(output: unknown): CallOutcome {
    const { context } = this;
    context.uncertain = true;
    context.executed = true;
    return { result: successResult(context.history, output, this.#metadata) };
  }

  /** It was found out that no attempt at this tool took effect. */
  foundUndone(): void {
    this.context.uncertain = this.#wasUncertain;
  }

  /** Ends an attempt that nobody waits for any more: gives its permit back and emits `attempt_canceled`. */
  left(): void {
    // Where a hook answered late, the work is taken down after this event.
    this.signal?.abort();
    const { ending } = this.context;
    if (this.isAttempting && ending?.kind === 'timeout') return this.#timedOut(ending);
    const permit = this.takePermit();
    // Who leaves after a value has had an answer; one of an earlier attempt is none of this one's.
    if (this.isAttempting && this.#hasAnswered) permit?.success();
    else permit?.release();
    if (!this.isAttempting) return;
    this.isAttempting = false;
    const error = new ToolExecutionError('canceled', 'The attempt was aborted', { executed: true, uncertain: true });
    const answered = this.#hasAnswered ? ({ answered: true } as const) : {};
    const { attempts: attempt } = this.context;
    this.#ended(error, { type: 'attempt_canceled', attempt, durationMs: this.attemptMs, ...answered });
  }

  /** The time that the caller gave the call is over: what was attempted has failed, and that counts. */
  #timedOut(error: ToolExecutionError): void {
    const { classification, rule } = classify(error, this.guarded.classification);
    settlePermit(this.takePermit(), breakerOutcome(error, classification, rule), error);
    this.#learn(false);
    this.#tell({ error, classification, breakerState: this.breakerState }, rule);
  }

  /** Takes the permit of the attempt, so that its end is reported once. */
  takePermit(): GivenPermit | undefined {
    const { permit } = this;
    this.permit = undefined;
    return permit;
  }

  #entered(thrown: unknown): ToolExecutionError {
    const entered = toToolExecutionError(thrown, () => this.context.site.runtime.wallNow());
    const read = entered.kind === 'canceled' && entered !== thrown ? abortedItself(entered) : entered;
    // What a tool gave says that it had begun; what it says of itself is believed.
    const began = this.#hasAnswered && read.executed && read !== thrown;
    return doubted(read, this.guarded.effects, this.context.uncertain || began);
  }

  /** An attempt that was not made proves nothing about those before it. */
  #refused(error: ToolExecutionError): ToolExecutionError {
    if (!this.context.uncertain) return error;
    const said = error.safeMessage === undefined ? undefined : inDoubt(error.safeMessage);
    const open = doubted(error, this.guarded.effects, true, said);
    if (this.refusal === error) this.refusal = open;
    return open;
  }

  /** Remembers what became of a retry. */
  #learn(recovered: boolean): void {
    const { layer, toolName, site } = this.context;
    if (this.retried !== undefined && !this.#learned)
      layer.experience?.record(
        { toolName, error: this.retried.error, tried: { strategy: 'retry' }, recovered },
        site.runtime.now(),
      );
    this.#learned = true;
  }

  #tell({ error, classification, breakerState }: SeenFailure, rule: string): void {
    const { context } = this;
    const report = { error: reportOf(error), classification, rule, breakerState };
    if (!this.isAttempting) return context.emit({ type: 'rejected', ...report });
    this.isAttempting = false;
    context.advance(TRYING);
    if (!error.executed) context.executed = this.#executedBefore;
    const more = given({ timeoutMs: limitOf(error), usage: this.reservation?.told });
    this.#ended(
      error,
      { type: 'attempt_failed', attempt: context.attempts, durationMs: this.attemptMs, ...report, ...more },
      classification,
    );
  }

  /** An attempt failed: for the store, the trace and the hooks, which may end the call. */
  #ended(
    error: ToolExecutionError,
    event: EventBody & { readonly durationMs: number },
    classification?: Classification,
  ): void {
    const { context } = this;
    const { durationMs } = event;
    context.recordAttempt(durationMs, { retriable: classification === 'transient', errorCode: error.kind });
    context.emit(event);
    context.layer.hooks?.after(this.subject, context.attempts, { durationMs, error });
  }
}
