import { Subscription, type Observable, type Subscriber } from 'rxjs';
import type { ToolErrorKind } from '../../contract/error-kind.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { expireAfter, type Expiry } from '../../operators/timing/expiry.ts';
import { withUniqueIds, type StepCall } from './admission.ts';
import type { AnswerBuilder } from './answer-builder.ts';
import { modelErrorReport, type AgentEvent, type AgentReason, type AgentResult, type AgentStatus } from '../event.ts';
import { textOf, toolCallsOf, type AgentMessage, type AssistantMessage, type ToolMessage } from '../message.ts';
import type { StopReason } from '../model.ts';
import type { AgentLimits } from './limits.ts';
import { modelStep, type ModelStepEvent, type ModelStepOptions } from './model-step.ts';
import { Spending, type Price } from './spending.ts';
import { CallTally, runSummary } from './summary.ts';
import { runTools, type Answer, type ToolStepContext, type ToolStepEvent } from './tool-step.ts';
import { lostResult, repairTranscript, type TranscriptEvidence } from './transcript.ts';

/** A run with everything decided. */
export interface AgentRunSettings {
  readonly messages: readonly AgentMessage[];
  readonly evidence: TranscriptEvidence | undefined;
  readonly step: ModelStepOptions;
  /** All but what belongs to one subscription. */
  readonly toolsOf: (signal: AbortSignal, isOutOfTime: () => boolean) => ToolStepContext;
  readonly limits: AgentLimits;
  readonly price: Price | undefined;
  readonly signal: AbortSignal | undefined;
  readonly runtime: Runtime;
}

type End = Pick<AgentResult, 'status' | 'reason' | 'error'>;

/** What it means that the model stopped and asks for no tool. `undefined`: it wants to be asked again. */
const endOf = (stop: StopReason): End | undefined => {
  const end = (status: AgentStatus, reason: AgentReason): End => ({ status, reason });
  switch (stop) {
    case 'pause':
      return undefined;
    case 'refusal':
      return end('failed', 'refused');
    case 'max_tokens':
      return end('limit', 'output_tokens');
    case 'context_full':
      return end('limit', 'context_full');
    case 'end':
    case 'tool_calls':
    case 'other':
      return { status: 'completed' };
  }
};

const isAnswer = (said: AgentMessage | undefined): said is AssistantMessage =>
  said?.role === 'assistant' && said.stop !== 'pause' && toolCallsOf(said).length === 0;

/**
 * One run of an agent: model step, tools, model step, until something ends it. Steps that end at once are a loop and
 * not a stack.
 */
export class AgentRun {
  readonly #settings: AgentRunSettings;
  readonly #subscriber: Subscriber<AgentEvent>;
  readonly #toolsStop = new AbortController();
  readonly #tools: ToolStepContext;
  readonly #messages: AgentMessage[] = [];
  readonly #takenIds: Set<string>;
  readonly #executed: string[] = [];
  readonly #failureKinds = new Map<string, ToolErrorKind>();
  #replayed = false;
  readonly #calls = new CallTally();
  readonly #spending: Spending;
  #stop: StopReason | undefined;
  #lastAnswer: AssistantMessage | undefined;
  #turn = 0;
  /** What runs now: a model step or a tool step. */
  #work = new Subscription();
  #phase: 'idle' | 'model' | 'tools' = 'idle';
  /** Something of the present answer was shown. */
  #hasShown = false;
  /** What ends the run once its tools have answered. */
  #ending: End | undefined;
  #driving = false;
  #due = false;
  #deadline: Expiry | undefined;

  constructor(settings: AgentRunSettings, subscriber: Subscriber<AgentEvent>) {
    this.#settings = settings;
    this.#subscriber = subscriber;
    this.#spending = new Spending(settings.price);
    this.#tools = settings.toolsOf(this.#toolsStop.signal, () => this.#ending?.reason === 'time');
    this.#takenIds = new Set(settings.messages.flatMap((message) => toolCallsOf(message).map(({ id }) => id)));
  }

  begin(): void {
    const { messages: given, evidence, signal, limits, runtime } = this.#settings;
    const { timeMs } = limits;
    const { messages, repairs } = repairTranscript(given, evidence);
    this.#messages.push(...messages);
    for (const { callId } of repairs) this.#takenIds.add(callId);
    const cancel = (): void => this.#cutShort({ status: 'canceled' });
    this.#subscriber.add(() => {
      signal?.removeEventListener('abort', cancel);
      this.#deadline?.unsubscribe();
      this.#work.unsubscribe();
    });
    if (repairs.length > 0) this.#emit({ type: 'repaired', repairs });
    if (signal?.aborted === true) return this.#settle({ status: 'canceled' });
    const last = messages.at(-1);
    if (isAnswer(last)) {
      // A crash came after the answer was stored: models refuse to be asked after their own answer.
      this.#lastAnswer = last;
      return this.#settle({ status: 'completed' });
    }
    signal?.addEventListener('abort', cancel, { once: true });
    if (timeMs !== Infinity)
      this.#deadline = expireAfter(timeMs, runtime, () => this.#cutShort({ status: 'limit', reason: 'time' }));
    this.#advance();
  }

  #emit(event: AgentEvent): void {
    this.#subscriber.next(event);
  }

  /** Goes on with the next turn. What ends at once comes back here, and waits for the loop. */
  #advance(): void {
    this.#due = true;
    if (this.#driving) return;
    this.#driving = true;
    while (this.#due && !this.#subscriber.closed) {
      this.#due = false;
      this.#askModel();
    }
    this.#driving = false;
  }

  #askModel(): void {
    if (this.#turn >= this.#settings.limits.turns) return this.#settle(this.#usedUp());
    if (this.#spending.isOver(this.#settings.limits)) return this.#settle({ status: 'limit', reason: 'budget' });
    this.#turn++;
    this.#hasShown = false;
    this.#phase = 'model';
    this.#emit({ type: 'turn_started', turn: this.#turn });
    // A list of its own: what a model or a listener keeps of it does not grow.
    this.#follow(modelStep([...this.#messages], this.#settings.step), (event) => this.#onModelEvent(event));
  }

  /** Runs a step. One that ends at once may already have been followed by another. */
  #follow<E>(step$: Observable<E>, onEvent: (event: E) => void): void {
    if (this.#subscriber.closed || this.#phase === 'idle') return;
    const work = new Subscription();
    this.#work = work;
    const error = (thrown: unknown): void => this.#subscriber.error(thrown);
    work.add(step$.subscribe({ next: (event) => !work.closed && onEvent(event), error }));
  }

  #onModelEvent(event: ModelStepEvent): void {
    const turn = this.#turn;
    switch (event.type) {
      case 'text':
      case 'thinking':
        this.#hasShown = true;
        return this.#emit({ type: event.type, turn, text: event.text });
      case 'failed':
        this.#spending.charge(event.usage);
        this.#emit({ type: 'model_failed', turn, error: modelErrorReport(event.error) });
        this.#discard();
        // What broke off was paid for, too: it may have been the last that there was money for.
        if (this.#spending.isOver(this.#settings.limits)) this.#cutShort({ status: 'limit', reason: 'budget' });
        return;
      case 'gave_up':
        return this.#settle({ status: 'failed', reason: 'model_error', error: modelErrorReport(event.error) });
      case 'answered':
        return this.#onAnswer(event.builder);
    }
  }

  #discard(): void {
    if (this.#hasShown) this.#emit({ type: 'discarded', turn: this.#turn });
    this.#hasShown = false;
  }

  #onAnswer(builder: AnswerBuilder): void {
    this.#spending.charge(builder.usage);
    this.#stop = builder.stop;
    this.#hasShown = false;
    const { message, calls } = withUniqueIds(builder.message(), this.#takenIds, () => this.#settings.runtime.id());
    this.#phase = calls.length > 0 && builder.stop !== 'refusal' ? 'tools' : 'idle';
    this.#lastAnswer = message;
    this.#add(message);
    // A subscriber may have ended the run when it got that event.
    if (this.#subscriber.closed) return;
    if (this.#phase === 'tools') {
      return this.#follow(runTools(calls, this.#tools), (event) => this.#onToolEvent(event, calls));
    }
    if (calls.length > 0)
      this.#add({ role: 'tool', results: calls.map(({ call }) => lostResult(call, 'did_not_run')) });
    this.#emit({
      type: 'turn_settled',
      turn: this.#turn,
      status: 'completed',
      toolCalls: calls.length,
      executedTools: 0,
    });
    const end = this.#ending ?? endOf(builder.stop ?? 'other');
    if (end === undefined) return this.#advance();
    this.#settle(end);
  }

  #add(message: AssistantMessage | ToolMessage): void {
    this.#messages.push(message);
    this.#emit({ type: 'message', turn: this.#turn, message });
  }

  #onToolEvent(event: ToolStepEvent, calls: readonly StepCall[]): void {
    if (event.type === 'tools') return this.#emit({ type: 'tools', turn: this.#turn, event: event.event });
    const { answers } = event;
    this.#phase = 'idle';
    for (const answer of answers) this.#count(answer);
    const executedTools = answers.filter(({ executed }) => executed).length;
    const hasRun = answers.some(({ executed, replayed }) => executed || replayed);
    this.#add({ role: 'tool', results: answers.map(({ result }) => result) });
    this.#emit({
      type: 'turn_settled',
      turn: this.#turn,
      status: hasRun ? 'completed' : 'failed',
      toolCalls: calls.length,
      executedTools,
    });
    if (this.#ending === undefined) this.#advance();
    else this.#settle(this.#ending);
  }

  #count({ result, effect, kind, executed, replayed }: Answer): void {
    if (executed) this.#executed.push(result.callId);
    if (replayed) this.#replayed = true;
    if (kind !== undefined) this.#failureKinds.set(result.callId, kind);
    this.#calls.add(result.toolName, effect, kind !== undefined);
    this.#emit({ type: 'tool_result', turn: this.#turn, result, effect, ...(kind === undefined ? {} : { kind }) });
  }

  /** All turns were used: what they did decides whether that is a failure. */
  #usedUp(): End {
    const isIdle = this.#executed.length === 0 && !this.#replayed && this.#failureKinds.size > 0;
    return isIdle ? { status: 'failed', reason: 'no_tool_executed' } : { status: 'limit', reason: 'turns' };
  }

  /** The caller or the time ends the run. Running tools settle first, so that each call has its answer. */
  #cutShort(end: End): void {
    if (this.#subscriber.closed || this.#ending !== undefined) return;
    this.#ending = end;
    if (this.#phase === 'tools') return this.#toolsStop.abort();
    if (this.#phase === 'idle') return;
    this.#phase = 'idle';
    this.#work.unsubscribe();
    this.#discard();
    this.#settle(end);
  }

  #settle(end: End): void {
    if (this.#subscriber.closed) return;
    this.#phase = 'idle';
    this.#due = false;
    const messages = [...this.#messages];
    this.#emit({
      type: 'settled',
      result: {
        ...end,
        messages,
        text: textOf(this.#lastAnswer),
        turns: this.#turn,
        executedToolCallIds: this.#executed,
        toolFailureKinds: Object.fromEntries(this.#failureKinds),
        hadToolFailure: this.#failureKinds.size > 0,
        summary: runSummary({ ...end, turns: this.#turn }, this.#calls, this.#settings.limits),
        ...this.#spending.report,
        ...(this.#stop === undefined ? {} : { stopReason: this.#stop }),
      },
    });
    this.#subscriber.complete();
  }
}
