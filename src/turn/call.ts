import type { Subscription } from 'rxjs';
import type { RecoveryDecision } from '../contract/recovery.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { classify } from '../policy/classify.ts';
import { CallRecord, type CallSite } from './call-record.ts';
import { conclude, decide, unattempted } from './decide.ts';
import { dedupeSeat, type DedupeSeat, type SeatOwner } from './dedupe-seat.ts';
import type { Layer } from './layer.ts';
import { listenOutside, obstacleTo, type Ending, type Outside } from './outside.ts';
import type { GuardedTool } from './registry.ts';
import { readInput, type Call } from './request.ts';
import type { RunningCall } from './running-calls.ts';
import { failureResult, reportOf, successResult, type CallOutcome, type Failure } from './result.ts';
import { ShadowWatch } from './shadow.ts';
import { Trial, type TrialOwner } from './trial.ts';

/**
 * One call under the whole order, outermost first:
 * `traced(switches(prepareCall(validate(dedupe(alternatives(retry(breaker(attemptHooks(attemptTimeout(provider))))))))))`.
 * `DedupeSeat` is dedupe; `Trial` is retry and what is inside it.
 *
 * It is a few objects and not a pipe of operators, which would hold 16 KB for each call in flight, and collecting that garbage would make a fan of
 * 100,000 nodes three times as dear per node as one of 1,000. Tells exactly one outcome; a tool's failure is a value in it.
 */
export class GuardedCall implements TrialOwner, SeatOwner, RunningCall {
  next: RunningCall | undefined;
  previous: RunningCall | undefined;
  readonly #record: CallRecord;
  readonly #settled: (outcome: CallOutcome, call: GuardedCall) => void;
  #guarded: GuardedTool | undefined;
  #seat: DedupeSeat | undefined;
  #shadow: ShadowWatch | undefined;
  /** The input as the tool's schema gives it. */
  #input: unknown;
  #trial: Trial | undefined;
  /** Alternatives that the present trial may still be followed by. */
  #untried: readonly string[] = [];
  /** The failure that the present trial is an alternative after. */
  #fallen: { readonly toolName: string; readonly error: ToolExecutionError } | undefined;
  /** An answer that comes later, of the error handler about a refusal or of a hook. */
  #wait: Subscription | undefined;
  #outside: Outside | undefined;
  /** How it ends, while that is being recorded. */
  #outcome: CallOutcome | undefined;
  /** Its caller has gone; it goes on for others that wait for the same key. */
  #left = false;
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
    layer.retryBudget?.recordCall(startedAtMs);
    layer.running.add(this);
    this.#record.emitStart();
    if (this.#over) return;
    const guarded = tool ?? layer.registry.get(call.toolName);
    this.#guarded = guarded;
    const obstacle = malformed ?? obstacleTo(this.#record);
    // Before anything that may take time, as an error handler or a hook does that answers later.
    this.#outside = listenOutside(this.#record, (kind, message) => this.#endBy(kind, message));
    if (obstacle !== undefined) return this.#refuse(obstacle, []);
    if (guarded === undefined) return this.#refuse(new ToolExecutionError('unknown_tool', `No tool is named ${call.toolName}`), []);
    if (layer.hooks === undefined) this.#pass(guarded);
    else this.#prepare(guarded);
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
    if (this.#over || this.#left) return;
    if (this.#keepsOn) return this.#leave(() => this.#record.emit({ type: 'abandoned' }));
    this.#release();
    this.#seat?.leave(undefined, 'canceled');
    this.#record.emit({ type: 'abandoned' });
    this.#record.ended = true;
  }

  /** The turn has settled without it: it goes on, and only the trace hears of it. */
  detach(): void {
    // One that has not begun to run, since it waits for its key or for a hook, would begin when the turn is over.
    if (this.#trial === undefined) return this.expire();
    this.#record.late = true;
  }

  trialSucceeded(output: unknown, atMs: number): void {
    this.#learn(true);
    const { toolName, call } = this.#record;
    const metadata = toolName === call.toolName ? undefined : { alternativeFor: call.toolName };
    this.#conclude({ result: successResult(this.#record.historyAt(atMs), output, metadata) });
  }

  trialFailed(failure: Failure, { strategy, toolName }: RecoveryDecision, untried: readonly string[] = this.#untried): void {
    this.#learn(false);
    if (strategy === 'alternative' && toolName !== undefined) return this.#tryAlternative(toolName, untried.slice(untried.indexOf(toolName) + 1), failure.error);
    this.#conclude({ result: failureResult(this.#record.history, failure), error: failure.error });
  }

  seatTaken(): void {
    if (this.#guarded !== undefined && !this.#over) this.#try(this.#guarded, this.#input, this.#guarded.alternatives);
  }

  seatReplayed(outcome: CallOutcome): void {
    if (!this.#over) this.#conclude(outcome);
  }

  seatRefused(error: ToolExecutionError): void {
    if (!this.#over) this.#refuse(error, []);
  }

  seatLost(): void {
    this.#trial?.unsubscribe();
    this.#wait?.unsubscribe();
  }

  seatDeserted(): void {
    if (this.#left && this.#outcome === undefined) this.#endBy('canceled', 'Nobody waits for the call any more');
  }

  /** Whether others wait for what it finds, so that it outlives its caller. Not beyond the layer's own end. */
  get #keepsOn(): boolean {
    return this.#seat?.waitedFor === true && !this.#record.layer.closed;
  }

  /** Remembers what became of using an alternative. */
  #learn(recovered: boolean): void {
    const { layer, site, toolName } = this.#record;
    if (this.#fallen !== undefined) layer.experience?.record({ ...this.#fallen, tried: { strategy: 'alternative', toolName }, recovered }, site.runtime.now());
    this.#fallen = undefined;
  }

  /** Asks the host's hook, which may change the call. */
  #prepare(guarded: GuardedTool): void {
    const record = this.#record;
    this.#await(
      record.layer.hooks?.prepare({ record, guarded, input: record.call.input }, (preparation, error) => {
        if (this.#over) return;
        if (error !== undefined) return this.#refuse(error, []);
        record.prepare(preparation);
        this.#pass(guarded);
      }),
    );
  }

  /** Through the switches, and then on in the order. */
  #pass(guarded: GuardedTool): void {
    const { layer, call } = this.#record;
    const mode = layer.switches.modeOf(guarded.mode);
    if (mode !== 'on') return this.#passBy(guarded, mode === 'shadow');
    const { input, error } = readInput(guarded.tool.input, call.input);
    if (error !== undefined) return this.#refuse(error, []);
    this.#input = input;
    if (call.dedupeMode === 'disabled') return this.#try(guarded, input, guarded.alternatives);
    const seat = dedupeSeat(this.#record, this, guarded);
    if (seat instanceof ToolExecutionError) return this.#refuse(seat, []);
    this.#seat = seat;
    if (seat === undefined) this.#try(guarded, input, guarded.alternatives);
    else seat.start();
  }

  /** Straight through to the tool; in shadow mode with a note of what the layer would have done. */
  #passBy(guarded: GuardedTool, shadow: boolean): void {
    this.#record.goBare();
    if (shadow) this.#shadow = new ShadowWatch(this.#record, guarded);
    this.#try(guarded.bare(), this.#record.call.input, []);
  }

  #try(guarded: GuardedTool, input: unknown, alternatives: readonly string[]): void {
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
    if (this.#over) return;
    const { input, error: misfit } = readInput(guarded.tool.input, this.#record.call.input);
    if (misfit === undefined) this.#try(guarded, input, rest);
    else this.#refuse(misfit, rest);
  }

  /** A failure before any attempt at a tool: decided like any other, but never tried again. */
  #refuse(error: ToolExecutionError, alternatives: readonly string[]): void {
    const { classification, rule } = classify(error);
    const failure: Failure = { error, classification, breakerState: 'disabled' };
    this.#record.emit({ type: 'rejected', error: reportOf(error), classification, rule, breakerState: 'disabled' });
    if (this.#over) return;
    this.#await(
      decide(this.#record, failure, { ...unattempted, maxAttempts: 0, alternatives }, (decision) => {
        if (this.#over) return;
        // What is refused is no end of a row of retries.
        this.trialFailed(decision.code === 'attempts_exhausted' ? failure : { ...failure, code: decision.code }, decision, alternatives);
      }),
    );
  }

  #endBy(kind: Ending, message: string): void {
    if (this.#over) return;
    // It has ended by itself already.
    if (this.#outcome !== undefined) {
      this.#seat?.leave(undefined, kind);
      return this.#settle(this.#outcome);
    }
    const error = new ToolExecutionError(kind, message, { executed: this.executed, uncertain: this.#record.uncertain || this.#trial?.attempting === true });
    const failure: Failure = { error, classification: classify(error).classification, breakerState: this.#trial?.breakerState ?? 'disabled' };
    if (this.#keepsOn && !this.#left) {
      const outcome = { result: failureResult(this.#record.history, conclude(this.#record, failure, this.#record.attempts)), error };
      return this.#leave(() => {
        this.#record.emitSettled(outcome.result);
        this.#settled(outcome, this);
      });
    }
    this.#trial?.unsubscribe();
    const concluded = conclude(this.#record, failure, this.#record.attempts);
    const outcome = { result: failureResult(this.#record.history, concluded), error };
    this.#seat?.leave(outcome.result, kind);
    this.#settle(outcome);
  }

  /** Its caller goes, told or not; it runs on for those who wait for the same key. */
  #leave(tell: () => void): void {
    this.#left = true;
    this.#outside?.cancel();
    tell();
    this.#record.late = true;
  }

  /** It has its outcome: hooks that have not been asked hear of it, the store remembers it, and then its caller is told. */
  #conclude(outcome: CallOutcome): void {
    const record = this.#record;
    const { hooks } = record.layer;
    if (hooks === undefined || record.hooked) return this.#keep(outcome);
    const subject = { record, guarded: this.#guarded, input: this.#input ?? record.call.input };
    this.#await(
      hooks.before(subject, 0, (blocked) => {
        if (this.#over) return;
        if (blocked !== undefined && outcome.error === undefined) return this.#refuse(blocked, []);
        hooks.after(subject, 0, { durationMs: outcome.result.durationMs, result: outcome.result });
        this.#keep(outcome);
      }),
    );
  }

  #keep(outcome: CallOutcome): void {
    this.#shadow?.end(outcome);
    if (this.#seat === undefined) return this.#settle(outcome);
    this.#outcome = outcome;
    this.#seat.settle(outcome, (final) => this.#settle(final));
  }

  #settle(outcome: CallOutcome): void {
    if (this.#over) return;
    this.#release();
    if (!this.#left) this.#record.emitSettled(outcome.result);
    this.#record.ended = true;
    if (!this.#left) this.#settled(outcome, this);
  }

  /** Keeps hold of an answer that comes later; one that was there at once may have set a wait of its own. */
  #await(later: Subscription | undefined): void {
    if (later?.closed === false) this.#wait = later;
  }

  #release(): void {
    this.#over = true;
    this.#shadow?.cutShort('canceled');
    this.#trial?.unsubscribe();
    this.#wait?.unsubscribe();
    this.#outside?.cancel();
    this.#record.layer.running.delete(this);
  }
}
