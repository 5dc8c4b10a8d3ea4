import { Observable } from 'rxjs';
import type { ToolErrorKind } from '../../contract/error-kind.ts';
import type { TurnEvent } from '../../contract/event.ts';
import type { FailureNotification } from '../../contract/recovery.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { NodeResult, Plan, PlanOptions, TurnResult } from '../../contract/turn.ts';
import { AS_IT_IS, untimed } from '../../policy/advice.ts';
import { failureText, outputText, type Effect } from '../../policy/model-text.ts';
import { plan } from '../../turn/plan.ts';
import type { TurnOptions } from '../../turn/run.ts';
import { admit, type ToolUseAdmission, type StepCall } from './admission.ts';
import { CallWatch } from './call-watch.ts';
import { shown, TOOL_OUTPUT, type StoredOutputs } from './stored-outputs.ts';
import type { AgentLimits } from './limits.ts';
import type { LoopGuard } from './guard.ts';
import type { ToolCallPart, ToolResult } from '../message.ts';

/** What a run needs of a layer; the one that `createSpillway` makes has it. */
export interface AgentLayer {
  /** Runs the calls of one step as a turn; the stream ends with `settled`, and unsubscribing cancels the calls. */
  turn(plan: Plan, options?: TurnOptions): Observable<TurnEvent>;
  /** Every failed attempt of the layer, by which the run learns whether a tool ran. */
  readonly failures$: Observable<FailureNotification>;
}

/** What the steps of one run share. */
export interface ToolStepContext {
  readonly spillway: AgentLayer;
  readonly tools: ReadonlyMap<string, AnyTool>;
  readonly limits: AgentLimits;
  readonly planOptions: PlanOptions;
  /** Whose run it is. */
  readonly identity: Pick<TurnOptions, 'session' | 'actor' | 'tenant'>;
  readonly guard: LoopGuard;
  readonly outputs: StoredOutputs;
  /** Aborting it settles the step with what it has. */
  readonly signal: AbortSignal;
  /** Whether `signal` was aborted because the run's own time was over, and not by the caller. */
  readonly isOutOfTime: () => boolean;
}

/** The answer to one call, and what it rests on. */
export interface Answer {
  readonly result: ToolResult;
  readonly effect: Effect;
  readonly kind?: ToolErrorKind;
  readonly executed: boolean;
  /** Its output was replayed: the tool ran, some other time. */
  readonly replayed: boolean;
}

export type ToolStepEvent =
  | { readonly type: 'tools'; readonly event: TurnEvent }
  | { readonly type: 'answered'; readonly answers: readonly Answer[] };

/** Runs the calls of one step as a turn, and answers each. */
class ToolStep {
  readonly #context: ToolStepContext;
  readonly #calls: readonly StepCall[];
  readonly #admission: ToolUseAdmission;
  readonly #watch = new CallWatch();

  constructor(calls: readonly StepCall[], context: ToolStepContext) {
    this.#context = context;
    this.#calls = calls;
    this.#admission = admit(calls, context.tools, context.limits.toolCallsPerTurn, context.guard);
  }

  run(): Observable<ToolStepEvent> {
    const { spillway, planOptions, identity, signal } = this.#context;
    const { nodes } = this.#admission;
    return new Observable((subscriber) => {
      const answer = (result: TurnResult | undefined): void => {
        subscriber.next({ type: 'answered', answers: this.#answers(result) });
        subscriber.complete();
      };
      if (nodes.length === 0) return answer(undefined);
      subscriber.add(spillway.failures$.subscribe((failure) => this.#watch.fail(failure)));
      subscriber.add(
        spillway.turn(plan.from(nodes, planOptions), { ...identity, signal }).subscribe({
          next: (event) => {
            this.#watch.record(event);
            subscriber.next({ type: 'tools', event });
            if (event.source === 'turn' && event.type === 'settled') answer(event.result);
          },
          error: (error: unknown) => subscriber.error(error),
        }),
      );
    });
  }

  #answers(result: TurnResult | undefined): readonly Answer[] {
    const nodes = new Map(result?.nodes.map((node) => [node.id, node]));
    return this.#calls.map(({ call }) => this.#answer(call, nodes.get(call.id)));
  }

  #answer(call: ToolCallPart, node: NodeResult | undefined): Answer {
    const refusal = this.#admission.refusals.get(call.id);
    if (refusal !== undefined) {
      const { kind, detail } = refusal;
      // Ours, not a hook's: what its kind means would not be true.
      const words =
        kind === 'blocked' ? { safeMessage: `This call was blocked and not made. ${detail} ${AS_IT_IS}` } : { detail };
      return this.#failed(call, kind, 'did_not_run', failureText(kind, 'did_not_run', words));
    }
    if (node?.state === 'succeeded' || node?.state === 'defaulted') return this.#succeeded(call, node);
    return this.#failure(call, node);
  }

  #succeeded(call: ToolCallPart, { result }: NodeResult): Answer {
    const { limits, outputs, guard } = this.#context;
    const whole = outputText(result?.output?.content);
    const noted = guard.record(call, whole);
    // Cut before the note, which must not be lost; what reads on in a cut output is not cut again.
    const text =
      call.name === TOOL_OUTPUT ? noted : `${shown(whole, limits.outputChars, outputs)}${noted.slice(whole.length)}`;
    const replayed = result?.fromCache === true;
    return {
      result: { callId: call.id, toolName: call.name, text },
      effect: 'ran',
      executed: this.#watch.of(call.id).executed,
      replayed,
    };
  }

  /** A call that was made, or would have been, and has no output. */
  #failure(call: ToolCallPart, node: NodeResult | undefined): Answer {
    const { isOutOfTime, tools } = this.#context;
    const facts = this.#watch.of(call.id);
    const { effect } = facts;
    const error = node?.result?.error;
    if (error !== undefined) {
      const kind = error.code as ToolErrorKind;
      // A record that holds no text still says whether it is known what happened.
      const known = error.uncertain === true ? 'may_have_run' : effect;
      return this.#failed(call, kind, effect, error.modelText ?? failureText(kind, known));
    }
    if (node?.state === 'skipped')
      return this.#failed(call, 'dependency_failed', effect, failureText('dependency_failed', effect));
    if (node?.state === 'failed')
      return this.#failed(
        call,
        'invalid_parameters',
        effect,
        failureText('invalid_parameters', effect, { detail: this.#admission.faults.get(call.id) }),
      );
    const isLate = node?.state === 'timed_out' || isOutOfTime();
    const kind = !isLate ? 'canceled' : facts.executed ? 'timeout' : 'deadline_exceeded';
    const detached = node?.state === 'timed_out' && facts.running && this.#context.planOptions.onDeadline !== 'abort';
    const effects = tools.get(call.name)?.policy?.effects;
    const detail = detached ? 'The turn ended while it ran, and it goes on in the background.' : undefined;
    return this.#failed(call, kind, effect, failureText(kind, effect, { effects, detail }));
  }

  #failed(call: ToolCallPart, kind: ToolErrorKind, effect: Effect, text: string): Answer {
    // What did not depend on the call itself is no repetition of it.
    const { guard, limits, outputs } = this.#context;
    const isOwn = ![
      'blocked',
      'limit_exceeded',
      'canceled',
      'deadline_exceeded',
      'dependency_failed',
      'duplicate_in_flight',
    ].includes(kind);
    const same = untimed(text);
    const note = isOwn ? guard.record(call, same).slice(same.length) : '';
    return {
      result: {
        callId: call.id,
        toolName: call.name,
        text: `${shown(text, limits.outputChars, outputs)}${note}`,
        isError: true,
      },
      effect,
      kind,
      executed: this.#watch.of(call.id).executed,
      replayed: false,
    };
  }
}

/**
 * The calls of one step as a stream: what happens in the turn, then one answer per call, in call order. Unsubscribing
 * cancels them.
 */
export const runTools = (calls: readonly StepCall[], context: ToolStepContext): Observable<ToolStepEvent> =>
  new Observable((subscriber) => new ToolStep(calls, context).run().subscribe(subscriber));
