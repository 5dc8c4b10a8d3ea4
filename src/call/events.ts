import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { BreakerAtStart, CallTerms, ToolEvent, ToolInForce, TraceEvent } from '../contract/event.ts';
import type { Usage } from '../contract/gate/budget.ts';
import type { Mode } from '../contract/policy.ts';
import { given } from '../policy/check.ts';
import type { CallContext } from './context.ts';
import type { Call } from './request.ts';
import type { Trace, Unstamped } from '../layer/trace.ts';

type WithoutHeader<E> = E extends ToolEvent
  ? Omit<E, 'seq' | 'atMs' | 'source' | 'callId' | 'toolName' | 'turnId' | 'nodeId' | 'late'>
  : never;
/** An event of a call without the fields that say whose it is. */
export type EventBody = WithoutHeader<ToolEvent>;

/** An event of a call while it is made, in the order of its fields. */
interface CallEvent {
  seq: number;
  atMs: number;
  source: 'call';
  callId: string;
  toolName: string;
  turnId?: string;
  nodeId?: string;
  late?: true;
  type?: ToolEvent['type'];
  attempt?: number;
  dueAtMs?: number;
  durationMs?: number;
  result?: ToolResultEnvelope;
  toolCallId?: string;
  tags?: readonly string[];
  correlationId?: string;
  fromHook?: string;
  agentId?: string;
  workspaceId?: string;
  session?: string;
  tenant?: string;
  traceparent?: string;
  tracestate?: string;
  breaker?: BreakerAtStart;
  terms?: CallTerms;
  mode?: Exclude<Mode, 'on'>;
  verifies?: string;
  undoes?: string;
  tool?: ToolInForce;
  usage?: Usage;
  hooksMs?: number;
  input?: unknown;
}

/** What a call can be found by, as its caller named it. */
const NAMED = [
  'toolCallId',
  'correlationId',
  'fromHook',
  'agentId',
  'workspaceId',
  'session',
  'tenant',
  'traceparent',
  'tracestate',
  'verifies',
  'undoes',
] as const;

/** What a call asks for itself; a plain one asks for nothing, and nothing is made for it. */
const termsOf = (call: Call): CallTerms | undefined => {
  const { deadlineMs, retryBudget, hints, breakerHint, dedupeMode } = call;
  const optional = !call.required && call.nodeId === undefined;
  const keyed = dedupeMode !== 'disabled';
  const named = retryBudget ?? hints ?? breakerHint;
  if (deadlineMs === Infinity && named === undefined && !optional && !keyed) return undefined;
  return given({
    ...retryBudget,
    deadlineAtMs: deadlineMs === Infinity ? undefined : deadlineMs,
    timeoutMs: hints?.timeoutMs,
    retrySafe: hints?.expectedRetrySafe,
    safetyCritical: hints?.safetyCritical,
    breakerHint,
    keyed: keyed || undefined,
    bestEffort: dedupeMode === 'bestEffort' || undefined,
    optional: optional || undefined,
  });
};

/** A successful result as the trace gets it. */
const withoutOutput = (
  { callId, toolName }: { readonly callId: string; readonly toolName: string },
  { durationMs, attempts, status }: ToolResultEnvelope,
): ToolResultEnvelope => ({
  requestId: callId,
  fromCache: false,
  toolName,
  durationMs,
  attempts,
  status,
});

/** Emits a call's events to its caller's stream and to the trace. Where neither is subscribed to, no event is made. */
export class CallEvents {
  readonly #context: CallContext;
  /** The tool by whose name its events were found to hold no secret. */
  #safeAs: string | undefined;

  constructor(context: CallContext) {
    this.#context = context;
  }

  /**
   * @param breaker how that of its tool stands, if it has one
   * @param mode as the switches stand for its tool
   * @param tool its policy, where the trace knows nothing of it yet
   */
  started(breaker: BreakerAtStart | undefined, mode: Mode, tool: ToolInForce | undefined): void {
    if (!this.observed) return;
    const { call, layer, startedAtMs } = this.#context;
    const { captures, trace } = layer;
    const event = this.#event('call_started');
    let isSafe = true;
    for (const field of NAMED) {
      const given = call[field];
      if (given === undefined) continue;
      event[field] = given;
      isSafe &&= trace.redactor.isSafe(given);
    }
    if (call.tags !== undefined) event.tags = call.tags;
    if (breaker !== undefined) event.breaker = breaker;
    const terms = termsOf(call);
    if (terms !== undefined) event.terms = terms;
    if (mode !== 'on') event.mode = mode;
    if (tool !== undefined) event.tool = tool;
    if (captures) event.input = call.input;
    if (breaker !== undefined && breaker.key !== event.toolName) isSafe &&= trace.redactor.isSafe(breaker.key);
    if (captures || call.tags !== undefined || tool !== undefined || !isSafe) this.#publish(event, startedAtMs);
    else this.#tell(event, startedAtMs);
  }

  /** @param dueAtMs when it is cut off; `Infinity` without a limit */
  attemptStarted(atMs: number, dueAtMs: number): void {
    if (this.#context.ended || !this.observed) return;
    const event = this.#event('attempt_started');
    event.attempt = this.#context.attempts;
    if (dueAtMs !== Infinity) event.dueAtMs = dueAtMs;
    this.#tell(event, atMs);
  }

  /** @param own how many attempts at the tool in use that took */
  attemptSucceeded(durationMs: number, own: number, atMs: number, usage?: Usage): void {
    if (this.#context.ended || !this.observed) return;
    if (own > 1)
      return this.emit(
        {
          type: 'attempt_succeeded',
          attempt: this.#context.attempts,
          durationMs,
          message: `Tool succeeded on retry ${own}`,
          ...(usage === undefined ? undefined : { usage }),
        },
        atMs,
      );
    const event = this.#event('attempt_succeeded');
    event.attempt = this.#context.attempts;
    event.durationMs = durationMs;
    if (usage !== undefined) event.usage = usage;
    this.#tell(event, atMs);
  }

  settled(result: ToolResultEnvelope): void {
    if (this.#context.ended || !this.observed) return;
    const { error, fromCache, retriedBy, recorded, verified } = result;
    const isPlain =
      error === undefined && !fromCache && retriedBy === undefined && recorded === undefined && verified === undefined;
    const { hooksMs: answeredMs, hookedAtMs, site } = this.#context;
    // One that was asked when the call was ended is waited for no longer.
    const hooksMs = hookedAtMs === undefined ? answeredMs : answeredMs + site.runtime.now() - hookedAtMs;
    const waited = hooksMs > 0 ? { hooksMs } : undefined;
    if (!isPlain || this.#context.layer.captures || this.#report !== undefined)
      return this.emit({ type: 'settled', result, ...waited });
    const event = this.#event('settled');
    event.result = withoutOutput(event, result);
    if (waited !== undefined) event.hooksMs = hooksMs;
    // Nothing came between, neither a hook nor a store: its time was just taken.
    const atOnce = this.#context.layer.hooks === undefined && this.#context.call.dedupeMode === 'disabled';
    this.#tell(event, atOnce ? this.#context.startedAtMs + result.durationMs : undefined);
  }

  /** Whether anyone gets its events. */
  get observed(): boolean {
    return this.#context.site.report !== undefined || this.#context.layer.trace.observed;
  }

  /** Who gets its events beside the trace: nobody once the turn has settled without this call. */
  get #report(): ((event: TraceEvent) => void) | undefined {
    return this.#context.late ? undefined : (this.#context.site.report as ((event: TraceEvent) => void) | undefined);
  }

  /**
   * Emits an event to the caller's stream and the trace; does nothing where neither is subscribed to.
   * @param atMs now, from one who has just read the clock
   */
  emit(body: EventBody, atMs?: number): void {
    if (this.#context.ended || !this.observed) return;
    this.#publish(Object.assign(this.#event(body.type), body), atMs);
  }

  /**
   * Emits an event that holds only numbers, our own words and the call's names: if those names are safe, so is the
   * event.
   */
  #tell(event: CallEvent, atMs?: number): void {
    const { trace } = this.#context.layer;
    this.#publish(event, atMs, trace.observed && this.#isSafe(trace));
  }

  #publish(event: object, atMs?: number, safe?: boolean): void {
    this.#context.layer.trace.publish(event as Unstamped, this.#report, atMs, safe);
  }

  #isSafe({ redactor, trustsIds }: Trace): boolean {
    if (this.#safeAs === this.#context.toolName) return true;
    const { callId, foreignId, nodeId } = this.#context.call;
    const { turnId } = this.#context.site;
    if (!redactor.isSafe(this.#context.toolName) || (nodeId !== undefined && !redactor.isSafe(nodeId))) return false;
    if (turnId !== undefined && !trustsIds && !redactor.isSafe(turnId)) return false;
    const safe = (trustsIds && foreignId === undefined) || redactor.isSafe(callId);
    if (safe) this.#safeAs = this.#context.toolName;
    return safe;
  }

  /** Begins an event of the call. The places of its number and its time are there: it is made once, and not copied. */
  #event(type: ToolEvent['type']): CallEvent {
    const { nodeId } = this.#context.call;
    const { turnId } = this.#context.site;
    const event: CallEvent = {
      seq: 0,
      atMs: 0,
      source: 'call',
      callId: this.#context.call.callId,
      toolName: this.#context.toolName,
    };
    if (turnId !== undefined && nodeId !== undefined) {
      event.turnId = turnId;
      event.nodeId = nodeId;
    }
    if (this.#context.late) event.late = true;
    event.type = type;
    return event;
  }
}
