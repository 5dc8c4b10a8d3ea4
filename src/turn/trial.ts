import { take, type Subscription } from 'rxjs';
import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { RetryRecord } from '../contract/envelope.ts';
import type { Classification } from '../contract/error-kind.ts';
import type { RecoveryDecision } from '../contract/recovery.ts';
import { ToolExecutionError, isToolExecutionError } from '../contract/tool-error.ts';
import type { Progress } from '../contract/tool.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import type { Breaker, GivenPermit } from '../operators/breaker.ts';
import { backoffDelayMs } from '../policy/backoff.ts';
import { classify, type Classified } from '../policy/classify.ts';
import { askAdmission, breakerOf } from './admission.ts';
import type { CallRecord, EventBody } from './call-record.ts';
import type { HookRunner, HookSubject } from './hooks.ts';
import { decide, type Circumstances } from './decide.ts';
import type { GuardedTool } from './registry.ts';
import { reportOf, type Failure } from './result.ts';
import { ToolAttempts } from './tool-attempts.ts';

/** Who made a trial and hears its end. */
export interface TrialOwner {
  /** @param atMs when, as just read */
  trialSucceeded(output: unknown, atMs: number): void;
  trialFailed(failure: Failure, decision: RecoveryDecision): void;
}

/** A tool that was not aborted by us and says `AbortError` gave up by itself: nobody canceled the call. */
const abortedItself = ({ message, code, cause }: ToolExecutionError): ToolExecutionError =>
  new ToolExecutionError('execution_error', `The tool aborted itself: ${message}`, { code, cause, uncertain: true });

/**
 * All attempts at one tool: `retry(breaker(attemptTimeout(tool)))`, as `guard` does for a stream and on the same engine. What differs is who is
 * asked: the breaker may be shared with other processes, the host's hooks and error handler have their say, and all of it is told to the trace.
 */
export class Trial extends ToolAttempts {
  readonly #owner: TrialOwner;
  readonly #alternatives: readonly string[];
  readonly #breaker: Breaker | undefined;
  readonly #startedAtMs: number;
  /** The call's attempts before this trial. */
  readonly #attemptsBefore: number;
  #previousDelayMs: number | undefined;
  /** A retry that was decided and has not begun. */
  #retrying: RetryRecord | undefined;
  #lastFailure: Failure | undefined;
  /** The failure that the present attempt is a retry after. */
  #retried: ToolExecutionError | undefined;
  /** An attempt was told of whose end was not. */
  #attempting = false;
  #askedAtMs = 0;
  #attemptStartedAtMs: number;
  #executedBefore = false;

  constructor(record: CallRecord, owner: TrialOwner, guarded: GuardedTool, input: unknown, alternatives: readonly string[]) {
    super(record, guarded, input);
    this.#owner = owner;
    this.#alternatives = alternatives;
    this.#breaker = breakerOf(record, guarded);
    this.#startedAtMs = this.runtime.now();
    this.#attemptStartedAtMs = this.#startedAtMs;
    this.#attemptsBefore = record.attempts;
  }

  get attempting(): boolean {
    return this.#attempting;
  }

  get breakerState(): BreakerStateName {
    return this.#breaker?.state.type ?? 'disabled';
  }

  /** @param atMs now: its own start for the first attempt */
  start(atMs: number = this.#startedAtMs): void {
    const record = this.record;
    this.#askedAtMs = atMs;
    // No attempt without a valid claim: the loss has just been told, and ended this.
    if (record.lease?.holds() === false) return;
    this.#await(askAdmission(record, this.guarded, this.#breaker, atMs, (answer) => this.#answered(answer)));
  }

  #answered(answer: GivenPermit | ToolExecutionError | undefined): void {
    const record = this.record;
    const refused = isToolExecutionError(answer);
    // Whoever heard of the breaker's change may have ended the call.
    if (!this.hold(refused ? undefined : answer)) return;
    if (refused) return this.#decide(answer);
    if (record.layer.hooks === undefined) this.#attemptNow();
    else this.#askHooks(record.layer.hooks);
  }

  /** The host's hooks can block each attempt. That is no word about the tool, nor is it an attempt. */
  #askHooks(hooks: HookRunner): void {
    const record = this.record;
    const asked = hooks.before(this.#subject, record.attempts + 1, (error) => {
      if (this.closed) return;
      if (error === undefined) return this.#attemptNow();
      this.takePermit()?.ignore();
      hooks.after(this.#subject, record.attempts + 1, { durationMs: 0, error });
      this.#decide(error);
    });
    this.#await(asked);
  }

  get #subject(): HookSubject {
    return { record: this.record, guarded: this.guarded, input: this.input };
  }

  #attemptNow(): void {
    const record = this.record;
    const { hooks, sharedBreakers } = record.layer;
    // A hook or a shared breaker may have taken longer than the lease, or than the turn.
    if (record.lease?.holds() === false || record.remainingMs <= 0) return this.#tooLate();
    if (this.#retrying !== undefined) record.recordRetry(this.#retrying);
    this.#retrying = undefined;
    this.#attemptStartedAtMs = hooks === undefined && sharedBreakers === undefined ? this.#askedAtMs : this.runtime.now();
    this.#executedBefore = record.executed;
    record.executed = true;
    record.attempts++;
    this.#attempting = true;
    record.emitAttemptStarted(this.#attemptStartedAtMs);
    // Whoever heard that may have ended the call.
    if (!this.closed) this.attempt(this.#attemptStartedAtMs);
  }

  /** No attempt without a valid claim, nor after the deadline. A loss has just been told, and ended this. */
  #tooLate(): void {
    this.takePermit()?.ignore();
    if (!this.closed) this.#decide(new ToolExecutionError('deadline_exceeded', 'The deadline passed before the attempt could start'));
  }

  /** Ends it from outside: the attempt is aborted, its permit given back, a backoff called off. Nobody is told but the trace. */
  override unsubscribe(): void {
    if (this.closed) return;
    super.unsubscribe();
    if (!this.#attempting) return;
    const { attempts } = this.record;
    this.#ended(new ToolExecutionError('canceled', 'The attempt was aborted', { executed: true, uncertain: true }), { type: 'attempt_canceled', attempt: attempts, durationMs: this.#attemptMs });
  }

  protected override progressed(report: Progress): void {
    this.record.emit({ type: 'progress', attempt: this.record.attempts, report });
  }

  protected override gaveOutput(output: unknown): void {
    const { record, runtime } = this;
    const atMs = runtime.now();
    this.takePermit()?.success(atMs);
    this.#learn(true);
    // Whoever heard of the breaker's change may have ended the call.
    if (this.closed) return;
    this.closed = true;
    this.#attempting = false;
    record.uncertain = true;
    const durationMs = Math.max(0, atMs - this.#attemptStartedAtMs);
    record.recordAttempt(durationMs);
    record.emitAttemptSucceeded(durationMs, this.#ownAttempts, atMs);
    record.layer.hooks?.after(this.#subject, record.attempts, { durationMs, output });
    // A hook may have taken its time.
    this.#owner.trialSucceeded(output, record.layer.hooks === undefined ? atMs : runtime.now());
  }

  protected override failed(thrown: unknown): void {
    const entered = toToolExecutionError(thrown, () => this.runtime.wallNow());
    const error = entered.kind === 'canceled' && entered !== thrown ? abortedItself(entered) : entered;
    const classified = classify(error, this.guarded.classification);
    if (error.uncertain) this.record.uncertain = true;
    this.settleFailure({ error, classification: classified.classification });
    this.#learn(false);
    // Whoever heard of the breaker's change may have ended the call.
    if (!this.closed) this.#decide(error, classified);
  }

  /** Attempts at this tool so far. */
  get #ownAttempts(): number {
    return this.record.attempts - this.#attemptsBefore;
  }

  get #attemptMs(): number {
    return Math.max(0, this.runtime.now() - this.#attemptStartedAtMs);
  }

  /** Tells of a failure, asks what to do, and does it. */
  #decide(error: ToolExecutionError, { classification, rule }: Classified = classify(error, this.guarded.classification)): void {
    const { layer, call } = this.record;
    const { retry, effects, enforcesKey, safetyCritical, cost } = this.guarded;
    const failure: Failure = { error, classification, breakerState: this.breakerState };
    const now = this.runtime.now();
    const latencyMs = this.#attemptMs;
    this.#tell(failure, rule);
    if (this.closed) return;
    if (this.record.bare) return this.#end(failure, { strategy: 'fail', code: 'attempts_exhausted', reason: 'the layer decides nothing about it' });
    const attempt = this.#ownAttempts;
    const nextDelayMs = backoffDelayMs(retry, Math.max(0, attempt - 1), this.#previousDelayMs, () => this.runtime.random());
    const circumstances: Circumstances = {
      attempt,
      maxAttempts: call.retryBudget?.maxAttempts ?? retry.maxAttempts,
      elapsedMs: now - this.#startedAtMs,
      maxTotalTimeMs: call.retryBudget?.maxElapsedMs ?? retry.maxTotalTimeMs,
      nextDelayMs,
      budgetAvailable: layer.retryBudget?.available(now) ?? true,
      alternatives: this.#alternatives,
      effects,
      hasIdempotencyKey: enforcesKey,
      retrySafe: call.hints?.expectedRetrySafe ?? false,
      safetyCritical: safetyCritical || call.hints?.safetyCritical === true,
      cost,
    };
    const later = decide(this.record, failure, circumstances, (decision) => {
      if (this.closed) return;
      if (decision.strategy === 'retry') this.#retry(failure, circumstances, decision.delayMs ?? 0, latencyMs);
      else this.#end(failure, decision);
    });
    this.#await(later);
  }

  #end(failure: Failure, decision: RecoveryDecision): void {
    this.closed = true;
    // A retry that was not admitted was not made: the failure is still the one before it.
    const last = failure.error.kind === 'circuit_open' ? (this.#lastFailure ?? failure) : failure;
    this.#owner.trialFailed({ ...last, breakerState: failure.breakerState, code: decision.code }, decision);
  }

  #retry(failure: Failure, { nextDelayMs, maxTotalTimeMs }: Circumstances, delayMs: number, latencyMs: number): void {
    const { layer, attempts, call } = this.record;
    const retry = { attempt: attempts, delayMs, reasonCode: failure.error.kind, latencyMs };
    layer.retryBudget?.recordRetry(this.runtime.now());
    this.#previousDelayMs = nextDelayMs;
    const wait = this.runtime.after(delayMs).pipe(take(1)).subscribe(() => {
      // A timer can come late, behind a stalled event loop: no attempt starts once the time is over.
      const atMs = this.runtime.now();
      const late = atMs - this.#startedAtMs >= maxTotalTimeMs;
      if (!late && this.record.remainingMs > 0) {
        this.#retrying = retry;
        this.#retried = failure.error;
        this.#lastFailure = failure;
        return this.start(atMs);
      }
      this.#end(failure, {
        strategy: call.required ? 'escalate' : 'partial',
        code: late ? 'time_exhausted' : 'turn_deadline',
        reason: 'the time was over when the wait ended',
      });
    });
    this.#await(wait);
  }

  /** Keeps hold of what is waited for; what was there at once may have made way for something else. */
  #await(later: Subscription | undefined): void {
    if (later?.closed === false) this.inner = later;
  }

  /** Remembers what became of a retry. */
  #learn(recovered: boolean): void {
    const { layer, toolName } = this.record;
    if (this.#retried !== undefined) layer.experience?.record({ toolName, error: this.#retried, tried: { strategy: 'retry' }, recovered }, this.runtime.now());
    this.#retried = undefined;
  }

  /** An attempt failed: for the store, the trace and the hooks, which may end the call. */
  #ended(error: ToolExecutionError, event: EventBody & { readonly durationMs: number }, classification?: Classification): void {
    const { record } = this;
    const { durationMs } = event;
    record.recordAttempt(durationMs, { retriable: classification === 'transient', errorCode: error.kind });
    record.emit(event);
    record.layer.hooks?.after(this.#subject, record.attempts, { durationMs, error });
  }

  #tell({ error, classification, breakerState }: Failure, rule: string): void {
    const record = this.record;
    const report = { error: reportOf(error), classification, rule, breakerState };
    if (!this.#attempting) return record.emit({ type: 'rejected', ...report });
    this.#attempting = false;
    if (!error.executed) record.executed = this.#executedBefore;
    const { timeoutMs } = (error.details ?? {}) as { readonly timeoutMs?: number };
    const limit = error.kind === 'timeout' && timeoutMs !== undefined ? { timeoutMs } : {};
    this.#ended(error, { type: 'attempt_failed', attempt: record.attempts, durationMs: this.#attemptMs, ...report, ...limit }, classification);
  }
}
