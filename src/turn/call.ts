import type { Subscription } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { RecoveryDecision } from '../contract/recovery.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { expireAfter, type Expiry } from '../operators/expiry.ts';
import { classify } from '../policy/classify.ts';
import { CallRecord, type CallSite } from './call-record.ts';
import { conclude, decide, unattempted } from './decide.ts';
import type { Layer } from './layer.ts';
import type { GuardedTool } from './registry.ts';
import { readInput, type Call } from './request.ts';
import type { RunningCall } from './running-calls.ts';
import { failureResult, reportOf, successResult, type Failure } from './result.ts';
import { Trial, type TrialOwner } from './trial.ts';

/** How a call ended, for the turn it is part of. */
export interface CallOutcome {
  readonly result: ToolResultEnvelope;
  /** Absent when it succeeded. */
  readonly error?: ToolExecutionError;
}

/**
 * One call under the whole order, outermost first:
 * `traced(switches(prepareCall(validate(dedupe(alternatives(retry(breaker(attemptHooks(attemptTimeout(provider))))))))))`.
 * Switches, hooks and dedupe have their seats in this order and are not built yet; `Trial` is retry and what is inside it.
 *
 * It is a few objects and not a pipe of operators, which would hold 16 KB for each call in flight, and collecting that garbage would make a fan of
 * 100,000 nodes three times as dear per node as one of 1,000. Tells exactly one outcome; a tool's failure is a value in it.
 */
export class GuardedCall implements TrialOwner, RunningCall {
  next: RunningCall | undefined;
  previous: RunningCall | undefined;
  readonly #record: CallRecord;
  readonly #settled: (outcome: CallOutcome, call: GuardedCall) => void;
  #trial: Trial | undefined;
  /** Alternatives that the present trial may still be followed by. */
  #untried: readonly string[] = [];
  /** The failure that the present trial is an alternative after. */
  #fallen: { readonly toolName: string; readonly error: ToolExecutionError } | undefined;
  #deadline: Expiry | undefined;
  /** An answer of the error handler that comes later, about a refusal. */
  #wait: Subscription | undefined;
  #onAbort: (() => void) | undefined;
  #over = false;

  constructor(layer: Layer, site: CallSite, call: Call, settled: (outcome: CallOutcome, call: GuardedCall) => void) {
    this.#record = new CallRecord(layer, site, call);
    this.#settled = settled;
  }

  /** Whether its tool ran. */
  get executed(): boolean {
    return this.#record.executed;
  }

  /**
   * Begins. The outcome may be told before this returns.
   * @param tool the tool, when the plan brought it along; else it is looked up by the call's name
   * @param malformed what was wrong with the request, if anything
   */
  begin(tool?: GuardedTool, malformed?: ToolExecutionError): void {
    const { layer, call, startedAtMs } = this.#record;
    const { toolCallId, tags, correlationId, fromHook, toolName } = call;
    layer.retryBudget?.recordCall(startedAtMs);
    layer.running.add(this);
    this.#record.emit({
      type: 'call_started',
      ...(toolCallId === undefined ? {} : { toolCallId }),
      ...(tags === undefined ? {} : { tags }),
      ...(correlationId === undefined ? {} : { correlationId }),
      ...(fromHook === undefined ? {} : { fromHook }),
    });
    if (this.#over) return;
    const guarded = tool ?? layer.registry.get(toolName);
    const obstacle = malformed ?? this.#obstacle();
    // Before anything that may take time, as an error handler does that answers later.
    this.#listen();
    if (obstacle !== undefined) return this.#refuse(obstacle, []);
    if (guarded === undefined) return this.#refuse(new ToolExecutionError('unknown_tool', `No tool is named ${toolName}`), []);
    this.#try(guarded, guarded.alternatives, []);
  }

  /** Ends it with the error `canceled`. */
  cancel(): void {
    this.#endBy('canceled', 'The caller canceled the call');
  }

  /** Ends it with the error `deadline_exceeded`. */
  expire(): void {
    this.#endBy('deadline_exceeded', 'The deadline of the turn passed');
  }

  /** Nobody waits for it any more: everything stops, and no outcome is told. */
  abandon(): void {
    if (this.#over) return;
    this.#release();
    this.#record.emit({ type: 'abandoned' });
    this.#record.ended = true;
    this.#record.ended = true;
  }

  /** The turn has settled without it: it goes on, and only the trace hears of it. */
  detach(): void {
    this.#record.late = true;
  }

  trialSucceeded(output: unknown): void {
    this.#learn(true);
    const { toolName, call, history } = this.#record;
    const metadata = toolName === call.toolName ? undefined : { alternativeFor: call.toolName };
    this.#settle({ result: successResult(history, output, metadata) });
  }

  trialFailed(failure: Failure, { strategy, toolName }: RecoveryDecision, untried: readonly string[] = this.#untried): void {
    this.#learn(false);
    if (strategy === 'alternative' && toolName !== undefined) return this.#tryAlternative(toolName, untried.slice(untried.indexOf(toolName) + 1), failure.error);
    this.#settle({ result: failureResult(this.#record.history, failure), error: failure.error });
  }

  /** Remembers what became of using an alternative. */
  #learn(recovered: boolean): void {
    const { layer, site, toolName } = this.#record;
    if (this.#fallen !== undefined) layer.experience?.record({ ...this.#fallen, tried: { strategy: 'alternative', toolName }, recovered }, site.runtime.now());
    this.#fallen = undefined;
  }

  /** Why a call must not even begin. */
  #obstacle(): ToolExecutionError | undefined {
    const { layer, site, call, startedAtMs } = this.#record;
    if (layer.closed) return new ToolExecutionError('canceled', 'The layer is closed');
    if (site.signal?.aborted === true) return new ToolExecutionError('canceled', 'The caller had canceled the call before it began');
    return call.deadlineMs <= startedAtMs ? new ToolExecutionError('deadline_exceeded', 'The deadline of the call had passed before it began') : undefined;
  }

  /** Hears what can end the call from outside: its caller's signal and its own deadline. */
  #listen(): void {
    const { site, call } = this.#record;
    if (site.signal !== undefined) {
      this.#onAbort = () => this.cancel();
      site.signal.addEventListener('abort', this.#onAbort, { once: true });
    }
    if (call.deadlineMs === Infinity) return;
    this.#deadline = expireAfter(Math.max(0, call.deadlineMs - site.runtime.now()), site.runtime, () => this.#endBy('deadline_exceeded', 'The deadline of the call passed'));
  }

  /** Tries a tool. `ifInvalid` is what may follow when the input does not fit it: nothing for the tool that was asked for. */
  #try(guarded: GuardedTool, alternatives: readonly string[], ifInvalid: readonly string[]): void {
    const { input, error } = readInput(guarded.tool.input, this.#record.call.input);
    if (error !== undefined) return this.#refuse(error, ifInvalid);
    this.#untried = alternatives;
    this.#trial = new Trial(this.#record, this, guarded, input, alternatives);
    this.#trial.start();
  }

  /** Each alternative has its own policy and breaker. */
  #tryAlternative(toolName: string, rest: readonly string[], error: ToolExecutionError): void {
    const guarded = this.#record.layer.registry.get(toolName);
    if (guarded === undefined) return this.#refuse(new ToolExecutionError('unknown_tool', `No tool is named ${toolName}`), rest);
    const from = this.#record.toolName;
    this.#fallen = { toolName: from, error };
    this.#record.toolName = toolName;
    this.#record.emit({ type: 'alternative_used', from, message: 'Used alternative tool' });
    if (!this.#over) this.#try(guarded, rest, rest);
  }

  /** A failure before any attempt at a tool: decided like any other, but never tried again. */
  #refuse(error: ToolExecutionError, alternatives: readonly string[]): void {
    const { classification, rule } = classify(error);
    const failure: Failure = { error, classification, breakerState: 'disabled' };
    this.#record.emit({ type: 'rejected', error: reportOf(error), classification, rule, breakerState: 'disabled' });
    if (this.#over) return;
    const later = decide(this.#record, failure, { ...unattempted, alternatives }, (decision) => {
      if (!this.#over) this.trialFailed({ ...failure, code: decision.code }, decision, alternatives);
    });
    if (later?.closed === false) this.#wait = later;
  }

  #endBy(kind: Extract<ToolErrorKind, 'canceled' | 'deadline_exceeded'>, message: string): void {
    if (this.#over) return;
    const error = new ToolExecutionError(kind, message, { executed: this.executed, uncertain: this.#trial?.attempting === true });
    this.#trial?.abort();
    const failure: Failure = { error, classification: classify(error).classification, breakerState: this.#trial?.breakerState ?? 'disabled' };
    const concluded = conclude(this.#record, failure, this.#record.attempts);
    this.#settle({ result: failureResult(this.#record.history, concluded), error });
  }

  #settle(outcome: CallOutcome): void {
    if (this.#over) return;
    this.#release();
    this.#record.emit({ type: 'settled', result: outcome.result });
    this.#record.ended = true;
    this.#settled(outcome, this);
  }

  #release(): void {
    this.#over = true;
    this.#trial?.abort();
    this.#wait?.unsubscribe();
    this.#deadline?.cancel();
    const { layer, site } = this.#record;
    layer.running.delete(this);
    if (this.#onAbort !== undefined) site.signal?.removeEventListener('abort', this.#onAbort);
  }
}
