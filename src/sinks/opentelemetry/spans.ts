import type { LayerEvent, ToolEvent, TraceEvent, TurnOwnEvent } from '../../contract/event.ts';
import {
  SEVERITY,
  STATUS_ERROR,
  fromTraceparent,
  type OtelAttributes,
  type OtelContext,
  type OtelLink,
  type OtelLogger,
  type OtelSpan,
  type OtelSpanContext,
} from './api.ts';
import { BREAKER_CHANGED, CallSpan, breakerAttributes, type SpanTerms } from './call.ts';
import type { ToolFacts } from './tools.ts';
import { RecentMap, type TraceSink } from '../sink.ts';

export interface SpansOptions {
  readonly terms: SpanTerms;
  readonly facts: ToolFacts;
  /** What runs the turns. */
  readonly agentName: string | undefined;
  /** Told of breakers that change. */
  readonly logger: OtelLogger | undefined;
}

interface TurnSpan {
  readonly span: OtelSpan;
  readonly context: OtelContext;
  readonly needs: ReadonlyMap<string, readonly string[]>;
  /** The spans of its calls, by node. */
  readonly calls: Map<string, OtelSpanContext>;
}

type CallStarted = Extract<ToolEvent, { type: 'call_started' }>;
type TurnStarted = Extract<TurnOwnEvent, { type: 'turn_started' }>;
type TurnMoved = Extract<TurnOwnEvent, { type: 'turn_moved' }>;

/** Turns at a time. */
const TURNS_MAX = 1_000;
/** Nodes that a turn's span names as unfinished, undone, or staying. */
const UNFINISHED_MAX = 100;

/** What is known of a turn, or of a part of one, when it begins here. */
const startOf = (event: TurnStarted | TurnMoved): OtelAttributes =>
  event.type === 'turn_started'
    ? { 'spillway.turn.nodes': event.nodes.length }
    : {
        'spillway.turn.moved_from': event.from,
        'spillway.turn.moved_to': event.to,
        'spillway.turn.moved_after_ms': event.afterMs,
        ...(event.ranMs === undefined ? {} : { 'spillway.turn.moved_at_ms': event.ranMs }),
      };

/** The spans of turns and calls that run. */
export class Spans implements TraceSink {
  readonly #terms: SpanTerms;
  readonly #facts: ToolFacts;
  readonly #agentName: string | undefined;
  readonly #agent: OtelAttributes;
  readonly #logger: OtelLogger | undefined;
  readonly #calls = new RecentMap<CallSpan>(undefined, (call) => call.forget());
  readonly #turns = new RecentMap<TurnSpan>(TURNS_MAX, ({ span }) => span.end());
  /** The spans of calls that others may have to be linked to, also after they ended. */
  readonly #leaders = new RecentMap<OtelSpanContext>();

  constructor({ terms, facts, agentName, logger }: SpansOptions) {
    this.#terms = terms;
    this.#facts = facts;
    this.#agentName = agentName;
    this.#agent = agentName === undefined ? {} : { 'gen_ai.agent.name': agentName };
    this.#logger = logger;
  }

  next(event: TraceEvent): void {
    if (event.source === 'call') this.#ofCall(event);
    else if (event.source === 'turn') this.#ofTurn(event);
    else this.#ofLayer(event);
  }

  /** A call that runs. */
  call(callId: string): CallSpan | undefined {
    return this.#calls.get(callId);
  }

  #parentOf({ traceparent, tracestate }: Pick<CallStarted, 'traceparent' | 'tracestate'>): OtelContext {
    const { api } = this.#terms;
    const active = api.context.active();
    const remote = traceparent === undefined ? undefined : fromTraceparent(traceparent);
    if (remote === undefined) return active;
    const traceState = tracestate === undefined ? undefined : api.createTraceState?.(tracestate);
    return api.trace.setSpanContext(active, traceState === undefined ? remote : { ...remote, traceState });
  }

  #begin(event: CallStarted): void {
    const { callId, nodeId, turnId, toolName } = event;
    const turn = turnId === undefined ? undefined : this.#turns.get(turnId);
    const needs = (nodeId === undefined ? undefined : turn?.needs.get(nodeId)) ?? [];
    const links = needs.flatMap((need): OtelLink[] => {
      const context = turn?.calls.get(need);
      if (context === undefined) return [];
      return [{ context, attributes: { 'spillway.link': 'needs', 'spillway.node.id': need } }];
    });
    const attributes = { ...this.#facts.of(toolName), ...(turn === undefined ? {} : this.#agent) };
    const parent = turn?.context ?? this.#parentOf(event);
    const call = new CallSpan(this.#terms, event, { parent, links, needs, attributes });
    this.#calls.take(callId)?.forget();
    this.#calls.set(callId, call);
    this.#leaders.set(callId, call.span.spanContext());
    if (nodeId !== undefined) turn?.calls.set(nodeId, call.span.spanContext());
  }

  #ofCall(event: ToolEvent): void {
    if (event.type === 'call_started') return this.#begin(event);
    const call = this.#calls.get(event.callId);
    if (call === undefined) return;
    const leaderId = event.type === 'dedupe' ? event.leaderCallId : undefined;
    const leader = leaderId === undefined ? undefined : this.#leaders.get(leaderId);
    const attributes = { 'spillway.link': 'dedupe_leader' };
    call.next(event, leader === undefined ? undefined : { context: leader, attributes });
    if (call.over) this.#calls.take(event.callId);
  }

  /** The span of a turn, or of the part of it that comes after a seam: of one trace, if the turn was given one. */
  #beginTurn(event: TurnStarted | TurnMoved): void {
    const { turnId, atMs } = event;
    const { api, tracer } = this.#terms;
    this.#turns.take(turnId)?.span.end(atMs);
    const parent = this.#parentOf(event);
    const operation = 'invoke_workflow';
    const own = { 'spillway.turn.id': turnId, ...startOf(event) };
    const attributes = { 'gen_ai.operation.name': operation, ...this.#agent, ...own };
    const name = this.#agentName === undefined ? operation : `${operation} ${this.#agentName}`;
    const span = tracer.startSpan(name, { startTime: atMs, attributes }, parent);
    const needs = new Map(event.type === 'turn_moved' ? [] : event.nodes.map((node) => [node.id, node.needs]));
    this.#turns.set(turnId, { span, context: api.trace.setSpan(parent, span), needs, calls: new Map() });
  }

  #endTurn(turnId: string, atMs: number, status: string, failed?: string): void {
    const span = this.#turns.take(turnId)?.span;
    const error = failed === undefined ? {} : { 'error.type': status };
    span?.setAttributes({ 'spillway.turn.status': status, ...error });
    if (failed !== undefined) span?.setStatus({ code: STATUS_ERROR, message: failed });
    span?.end(atMs);
  }

  #ofTurn(event: TurnOwnEvent): void {
    const { turnId, atMs } = event;
    switch (event.type) {
      case 'turn_started':
      case 'turn_moved':
        return this.#beginTurn(event);
      case 'deadline': {
        const unfinished = event.unfinished.slice(0, UNFINISHED_MAX);
        this.#turns.get(turnId)?.span.setAttributes({ 'spillway.turn.unfinished': unfinished });
        return undefined;
      }
      case 'turn_left':
      case 'abandoned':
        return this.#endTurn(turnId, atMs, event.type === 'turn_left' ? 'left' : 'abandoned');
      case 'settled': {
        const { status, summary } = event.result;
        return this.#endTurn(turnId, atMs, status, status === 'failed' || status === 'escalated' ? summary : undefined);
      }
      case 'compensation_settled': {
        const { compensated, stays } = event.compensation;
        this.#turns.get(turnId)?.span.setAttributes({
          'spillway.turn.compensated': compensated.slice(0, UNFINISHED_MAX),
          'spillway.turn.stays': stays.slice(0, UNFINISHED_MAX).map(({ id }) => id),
        });
        return undefined;
      }
      case 'compensation_started':
      case 'node_verified':
      case 'node_compensated':
      case 'node_started':
      case 'node_settled':
      case 'escalated':
        return undefined;
    }
  }

  #ofLayer(event: LayerEvent): void {
    if (event.type !== 'breaker_changed') return;
    for (const call of this.#calls.values()) call.breakerChanged(event);
    const severityText = event.to === 'open' || event.to === 'forced_open' ? 'WARN' : 'INFO';
    const attributes = breakerAttributes(event);
    const { message: body } = event;
    const severityNumber = SEVERITY[severityText];
    this.#logger?.emit({ eventName: BREAKER_CHANGED, severityNumber, severityText, body, attributes });
  }
}
