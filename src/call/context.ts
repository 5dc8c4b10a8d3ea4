import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { RetryRecord } from '../contract/envelope.ts';
import type { ToolEvent } from '../contract/event.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { Preparation } from '../contract/hooks.ts';
import type { Mode } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { VerifyFinding } from '../contract/settle/verify.ts';
import type { DedupeExecution } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Breaker } from '../operators/breaker/breaker.ts';
import type { Lease } from '../operators/dedupe/lease.ts';
import type { StopWatch } from '../operators/work/stop-watch.ts';
import type { FailedRecording } from '../policy/key/recording.ts';
import { CallEvents, type EventBody } from './events.ts';
import { PREPARING, SETTLED, reduceCall, type CallState } from './state.ts';
import type { Layer } from '../layer/services.ts';
import type { Ending } from './cancellation.ts';
import type { HeldTime } from '../layer/gate-port.ts';
import type { GuardedTool } from '../layer/registry.ts';
import type { RunningCall } from '../layer/running-calls.ts';
import type { ShadowWatch } from './shadow.ts';
import type { Call } from './request.ts';
import type { CallOutcome, History } from './result.ts';
import type { CallJournal } from './undo-log.ts';

/** What the calls of one turn have in common; a call of its own has a site of its own. */
export interface CallSite {
  readonly runtime: Runtime;
  readonly turnId?: string;
  /** The turn's deadline, monotonic. The turn keeps it; the call only decides by it. */
  readonly deadlineMs: number;
  /** The turn's time, where it stands still while a person is waited for: then this has its deadline. */
  readonly time?: HeldTime | undefined;
  readonly signal?: AbortSignal;
  /** Of a turn that outlives its process: what it came to elsewhere, and whose it is now. */
  readonly journal?: TurnJournal;
  /** What is kept of the calls of a turn, so that what they did can be undone. */
  readonly undoLog?: CallJournal;
  /** What it retries is not counted against the layer's budget: an undoing is not given up for lack of it. */
  readonly unbudgeted?: true;
  /** Called with each event of the call, beside the trace. */
  readonly report?: (event: ToolEvent) => void;
}

/** What is known of the tool that a call tries. */
export interface ToolInUse {
  readonly guarded: GuardedTool;
  readonly breaker: Breaker | undefined;
  readonly breakerState: BreakerStateName;
  readonly ownAttempts: number;
  /** The work of the present attempt, where it may be asked whether that goes on. */
  readonly work: StopWatch | undefined;
}

/** Attempts that a record in the store tells of, the last ones. */
const ATTEMPTS_KEPT = 20;
const NO_RETRIES: readonly RetryRecord[] = [];

/** One call: where it happens, what it has done so far, and its events. */
export class CallContext implements RunningCall {
  next: RunningCall | undefined;
  previous: RunningCall | undefined;
  readonly layer: Layer;
  readonly site: CallSite;
  /** As it was asked for, or as a hook prepared it. */
  call: Call;
  readonly startedAtMs: number;
  /** Physical executions, those of alternatives included. */
  attempts = 0;
  /** Its tool ran. */
  executed = false;
  /** It may have taken effect already, whatever becomes of it. */
  uncertain = false;
  /** Set by the turn when it has settled without this call. */
  late = false;
  /** It has settled or was abandoned, and emits no more events. */
  ended = false;
  /** The tool in use. */
  toolName: string;
  /** The claim of its key, while it holds one: each attempt needs it to be valid. */
  lease: Lease | undefined;
  /** It goes on in the place of an earlier call under its key, which may have taken effect. */
  tookOver = false;
  /** Goes straight through to the tool: nothing is decided about its failure. */
  bare = false;
  /** Its idempotency key, given or computed, else its id; `resourceKey` is what a resource is told. */
  callKey: string;
  /** Its hooks were asked about an attempt; for how long in all it waited for answers, and since when for this one. */
  hooked = false;
  hooksMs = 0;
  hookedAtMs: number | undefined;
  /** What was found out of its last attempt in doubt. */
  verified: VerifyFinding | undefined;
  /** Why what its own tool did has no record under its key, once that is known. */
  unkept: FailedRecording | undefined;
  /** How it was ended from outside, once that has happened. */
  concluded: CallOutcome | undefined;
  /** In shadow mode: what the layer would have done. */
  shadow: ShadowWatch | undefined;
  /** The tool that was asked for, once it is found. */
  resolved: GuardedTool | undefined;
  /** As the switches stood when it was told to begin. */
  mode: Mode | undefined;
  /** The input as that tool's schema gives it. */
  input: unknown;
  #state: CallState = PREPARING;
  /** Its caller has its outcome, or has gone. */
  isDelivered = false;
  /** The attempts at the tool in use. */
  toolInUse: ToolInUse | undefined;
  #isGone = false;
  #hasLeft = false;
  /** Its turn goes on elsewhere. */
  isHandedOver = false;
  #ending: ToolExecutionError | undefined;
  #endedBy: ((ending: ToolExecutionError) => void) | undefined;
  /** Emits its events. */
  readonly events: CallEvents = new CallEvents(this);
  #retriedBy: RetryRecord[] | undefined;
  #attempts: Array<DedupeExecution['attempts'][number]> | undefined;

  constructor(layer: Layer, site: CallSite, call: Call) {
    this.layer = layer;
    this.site = site;
    this.call = call;
    this.toolName = call.toolName;
    this.callKey = call.idempotencyKey ?? call.callId;
    this.startedAtMs = site.runtime.now();
  }

  get state(): CallState {
    return this.#state;
  }

  advance(next: CallState): void {
    this.#state = reduceCall(this.#state, next);
  }

  /** Nothing new is begun for it: it has settled, or was ended from outside. */
  get isOver(): boolean {
    return this.#ending !== undefined || this.#isGone || this.#state.phase === 'settled';
  }

  /** How it was ended from outside, if it was. */
  get ending(): ToolExecutionError | undefined {
    return this.#ending;
  }

  /** Its caller has gone, and it goes on for others that wait for the same key. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Its caller has gone: nothing new is begun, unless it goes on. */
  leave(): void {
    this.#isGone = !this.#hasLeft;
  }

  /** It goes on without its caller, until it is ended or nobody waits for it any more. */
  goOn(ended: (ending: ToolExecutionError) => void): void {
    this.#hasLeft = true;
    this.#isGone = false;
    this.#ending = undefined;
    this.#endedBy = ended;
  }

  /** It is over, for its caller and for those who waited for its key. */
  close(): void {
    this.layer.running.delete(this);
    this.advance(SETTLED);
    this.ended = true;
  }

  /** Nobody waits for its key any more. */
  desert(): void {
    if (this.#hasLeft) this.end({ kind: 'canceled', message: 'Nobody waits for the call any more' });
  }

  /** Ends it from outside; the first ending counts. */
  end({ kind, message, cause }: Ending): void {
    if (this.isOver) return;
    if (this.isHandedOver) this.lease?.stop();
    const uncertain = this.uncertain || (this.#state.phase === 'attempting' && this.#state.live);
    this.#ending = new ToolExecutionError(kind, message, { executed: this.executed, uncertain, cause });
    this.#endedBy?.(this.#ending);
  }

  /** Calls back when it is ended from outside; at once where that has happened. */
  onEnd(ended: (ending: ToolExecutionError) => void): void {
    if (this.#ending !== undefined) return ended(this.#ending);
    this.#endedBy = ended;
  }

  cancel(message: string = 'The caller canceled the call'): void {
    this.end({ kind: 'canceled', message });
  }

  /** The deadline of its turn has passed. */
  expire(): void {
    this.end({ kind: 'deadline_exceeded', message: 'The deadline of the turn passed' });
  }

  /** The turn has settled without it: it goes on, and only the trace gets its events. */
  detach(): void {
    const { phase } = this.#state;
    // One that has not begun to run, since it waits for its key or for a hook, would begin when the turn is over.
    if (phase === 'preparing' || phase === 'acquiring') this.expire();
    else this.late = true;
  }

  /**
   * Its turn goes on elsewhere: a tool that runs may end, and is recorded if the key is still its own; nothing more is
   * begun. The key is left as it stands, for whoever has the turn now.
   */
  handOver(): void {
    this.isHandedOver = true;
    this.late = true;
    if (this.#state.phase !== 'concluding' && this.runs === undefined) this.cancel();
  }

  /** The tool that runs now. */
  get runs(): GuardedTool | undefined {
    return this.#state.phase === 'attempting' && this.#state.live ? this.toolInUse?.guarded : undefined;
  }

  /** Until the call's or its turn's deadline. */
  get remainingMs(): number {
    const { runtime, time, deadlineMs } = this.site;
    const endMs = Math.min(this.call.deadlineMs, time?.endMs ?? deadlineMs);
    return endMs === Infinity ? Infinity : endMs - runtime.now();
  }

  get history(): History {
    return this.historyAt(this.site.runtime.now());
  }

  historyAt(atMs: number): History {
    return {
      requestId: this.call.callId,
      toolName: this.toolName,
      durationMs: Math.max(0, atMs - this.startedAtMs),
      attempts: this.attempts,
      retriedBy: this.#retriedBy ?? NO_RETRIES,
      verified: this.verified,
    };
  }

  recordRetry(record: RetryRecord): void {
    (this.#retriedBy ??= []).push(record);
  }

  /** Takes what a hook changed. The caller's own key goes before the hook's. */
  prepare({ idempotencyKey, ...changes }: Preparation): void {
    const { call } = this;
    const keyed = idempotencyKey !== undefined && call.idempotencyKey === undefined;
    // An envelope says by itself whether it is deduped; the short form is once it has a key.
    const dedupeMode = keyed && call.toolNamespace === undefined ? 'enforced' : call.dedupeMode;
    this.call = {
      ...call,
      ...('input' in changes ? { input: changes.input } : {}),
      ...(keyed ? { idempotencyKey, dedupeMode } : {}),
    };
    this.callKey = this.call.idempotencyKey ?? call.callId;
  }

  /** From now on it is the tool's own call: hints about how to guard it do not count. */
  goBare(): void {
    const { hints: _, ...call } = this.call;
    this.call = call;
    this.bare = true;
  }

  /** Notes an attempt that ended, for the store; without a claim nobody asks. */
  recordAttempt(durationMs: number, failure?: { readonly retriable: boolean; readonly errorCode: string }): void {
    if (this.lease === undefined) return;
    const finishedAtMs = this.site.runtime.wallNow();
    const end =
      failure === undefined
        ? { status: 'success' as const, retriable: false }
        : { status: 'error' as const, ...failure };
    (this.#attempts ??= []).push({ startedAtMs: Math.max(0, finishedAtMs - durationMs), finishedAtMs, ...end });
  }

  get execution(): DedupeExecution | undefined {
    return this.#attempts === undefined
      ? undefined
      : { attemptCount: this.attempts, attempts: this.#attempts.slice(-ATTEMPTS_KEPT) };
  }

  /** Whether anyone gets its events. */
  get observed(): boolean {
    return this.events.observed;
  }

  /** To the caller's stream and the trace, where they are subscribed to. `atMs`: from who has just read the clock. */
  emit(body: EventBody, atMs?: number): void {
    this.events.emit(body, atMs);
  }
}
