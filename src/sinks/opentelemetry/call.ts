import type { DedupeStep, LayerEvent, ToolEvent } from '../../contract/event.ts';
import {
  STATUS_ERROR,
  type OtelApi,
  type OtelAttributes,
  type OtelContext,
  type OtelLink,
  type OtelSpan,
  type OtelTracer,
} from './api.ts';

/** How spans are made and named. */
export interface SpanTerms {
  readonly api: OtelApi;
  readonly tracer: OtelTracer;
  readonly attempts: 'always' | 'onRetry' | 'never';
  /** CLAW's names beside OpenTelemetry's. */
  readonly claw: boolean;
}

type Started = Extract<ToolEvent, { type: 'call_started' }>;
type Of<T extends ToolEvent['type']> = Extract<ToolEvent, { type: T }>;

export type BreakerChangedEvent = Extract<LayerEvent, { type: 'breaker_changed' }>;

/** The event that spans and logs have of it. */
export const BREAKER_CHANGED = 'spillway.circuit_breaker.changed';

export const breakerAttributes = ({
  toolName,
  scope,
  from,
  to,
}: Pick<BreakerChangedEvent, 'toolName' | 'scope' | 'from' | 'to'>): OtelAttributes => ({
  'spillway.breaker.name': toolName,
  ...(scope === '' ? {} : { 'spillway.breaker.scope': scope }),
  'spillway.breaker.from_state': from,
  'spillway.breaker.to_state': to,
});

/** Steps that change how the call ends; the others repeat what its attempts say. */
const STEPS: readonly DedupeStep[] = [
  'taken_over',
  'waiting',
  'replayed',
  'conflict',
  'busy',
  'lease_lost',
  'superseded',
  'unrecorded',
  'unprotected',
];

/** Where a call belongs, and what its tool is. */
export interface CallPlace {
  readonly parent: OtelContext;
  readonly links: OtelLink[];
  /** The nodes of its plan that it needed. */
  readonly needs: readonly string[];
  /** Of the tool, and of who runs the turn. */
  readonly attributes: OtelAttributes;
}

/** What is known when a call begins: a sampler decides by it. */
const attributesOf = (
  { toolName, callId, toolCallId, turnId, nodeId, correlationId, tags, fromHook, agentId, workspaceId }: Started,
  { needs, attributes }: CallPlace,
): OtelAttributes => ({
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': toolName,
  ...attributes,
  'spillway.call.id': callId,
  ...(toolCallId === undefined ? {} : { 'gen_ai.tool.call.id': toolCallId }),
  ...(turnId === undefined ? {} : { 'spillway.turn.id': turnId }),
  ...(nodeId === undefined ? {} : { 'spillway.node.id': nodeId }),
  ...(needs.length === 0 ? {} : { 'spillway.call.depends_on': [...needs] }),
  ...(correlationId === undefined ? {} : { 'spillway.correlation_id': correlationId }),
  ...(fromHook === undefined ? {} : { 'spillway.from_hook': fromHook }),
  ...(agentId === undefined ? {} : { 'gen_ai.agent.id': agentId }),
  ...(workspaceId === undefined ? {} : { 'spillway.workspace_id': workspaceId }),
  ...(tags === undefined ? {} : { 'spillway.tags': [...tags] }),
});

/** What a span says of something that may happen once in a call. */
const markOf = (
  event: Extract<ToolEvent, { type: 'approval' | 'hook' | 'verified' | 'shadow' | 'escalated' }>,
): OtelAttributes => {
  if (event.type === 'approval') return { 'spillway.approval': event.step };
  if (event.type === 'hook') return { 'spillway.hook': event.hook, 'spillway.hook.outcome': event.outcome };
  if (event.type === 'verified') return { 'spillway.verified': event.finding };
  return event.type === 'shadow'
    ? { [`spillway.shadow.${event.would}`]: event.reason }
    : { 'spillway.escalated': true };
};

/** The span of one call, and below it one for each attempt: siblings, since each is given its parent. */
export class CallSpan {
  readonly #terms: SpanTerms;
  readonly #span: OtelSpan;
  readonly #context: OtelContext;
  readonly #links = new Set<string>();
  /** The attempt that runs; its span comes at its end when nobody wants one of a first attempt that succeeds. */
  #attempt:
    | { readonly startedAtMs: number; readonly number: number; readonly attributes: OtelAttributes; span?: OtelSpan }
    | undefined;
  #retry: Of<'decision'> | undefined;
  #over = false;
  /** The name of the breaker that guards it, which tools may share. */
  readonly #breakerKey: string;
  readonly #tenant: string;

  constructor(terms: SpanTerms, event: Started, place: CallPlace) {
    const { parent, links } = place;
    this.#terms = terms;
    this.#breakerKey = event.breaker?.key ?? event.toolName;
    this.#tenant = event.tenant ?? '';
    const name = terms.claw ? 'tool_execution' : `execute_tool ${event.toolName}`;
    const attributes = { ...attributesOf(event, place), ...(terms.claw ? { 'tool.name': event.toolName } : {}) };
    this.#span = terms.tracer.startSpan(name, { startTime: event.atMs, attributes, links }, parent);
    this.#context = terms.api.trace.setSpan(parent, this.#span);
  }

  get span(): OtelSpan {
    return this.#span;
  }

  /** Whether it has ended, attempt and all. */
  get over(): boolean {
    return this.#over && this.#attempt === undefined;
  }

  /** What a tool's own spans belong under now. */
  get context(): OtelContext {
    const span = this.#attempt?.span;
    return span === undefined ? this.#context : this.#terms.api.trace.setSpan(this.#context, span);
  }

  /** That of an attempt; the call's own where that attempt has none, or another one runs. */
  spanOf(attempt: number): OtelSpan {
    return this.#attempt?.number === attempt ? this.currentSpan : this.#span;
  }

  get currentSpan(): OtelSpan {
    return this.#attempt?.span ?? this.#span;
  }

  next(event: ToolEvent, leader: OtelLink | undefined): void {
    switch (event.type) {
      case 'attempt_started':
        return this.#begin(event);
      case 'attempt_succeeded':
        return this.#endAttempt(event.atMs);
      case 'attempt_failed':
        return this.#endAttempt(
          event.atMs,
          { 'error.type': event.error.kind, ...this.#breaker(event.breakerState) },
          event.error.message,
        );
      case 'attempt_canceled':
        return this.#endAttempt(event.atMs, { 'spillway.attempt.canceled': true });
      case 'decision':
        this.#retry = event.strategy === 'retry' ? event : undefined;
        return this.#set({
          'spillway.decision': event.strategy,
          'spillway.decision.code': event.code,
          ...this.#breaker(event.breakerState),
        });
      case 'dedupe':
        return this.#dedupe(event, leader);
      case 'alternative_used':
        return this.#set({ 'spillway.alternative.from': event.from, 'spillway.alternative.tool': event.toolName });
      case 'rejected':
        return this.#set({ 'spillway.rejected': event.error.kind, ...this.#breaker(event.breakerState) });
      case 'hook':
      case 'approval':
      case 'verified':
      case 'shadow':
      case 'escalated':
        return this.#set(markOf(event));
      case 'abandoned':
        this.#set({ 'spillway.status': 'abandoned' });
        return this.end(event.atMs);
      case 'settled':
        return this.#settle(event);
      case 'call_started':
      case 'progress':
        return undefined;
    }
  }

  /** A breaker has changed: of interest to a call that it guards. */
  breakerChanged({ toolName, scope, from, to, atMs }: BreakerChangedEvent): void {
    if (this.#over || toolName !== this.#breakerKey || scope !== this.#tenant) return;
    this.#span.addEvent(BREAKER_CHANGED, breakerAttributes({ toolName, scope, from, to }), atMs);
  }

  /** Ends what has not ended. */
  end(atMs?: number): void {
    this.#delay(atMs);
    if (!this.#over) this.#span.end(atMs);
    this.#over = true;
  }

  /** It is forgotten: nothing of it stays open. */
  forget(): void {
    this.end();
    this.#attempt?.span?.end();
  }

  /** A span takes nothing more once it has ended. */
  #set(attributes: OtelAttributes): void {
    if (!this.#over) this.#span.setAttributes(attributes);
  }

  #breaker(state: string | undefined): OtelAttributes {
    if (state === undefined) return {};
    return { 'spillway.breaker.state': state, ...(this.#terms.claw ? { 'breaker.state': state } : {}) };
  }

  #begin({ attempt, atMs, toolName }: Of<'attempt_started'>): void {
    const { attempts, claw } = this.#terms;
    this.#attempt?.span?.end(atMs);
    this.#delay(atMs);
    const retry = this.#retry;
    this.#retry = undefined;
    const attributes: OtelAttributes = {
      'gen_ai.tool.name': toolName,
      'spillway.attempt': attempt,
      ...(attempt > 1 ? { 'spillway.resend_count': attempt - 1 } : {}),
      ...(retry === undefined
        ? {}
        : { 'spillway.retry.delay_ms': retry.delayMs ?? 0, 'spillway.retry.reason': retry.error.kind }),
      ...(claw ? { 'tool.name': toolName, 'retry.attempt': attempt } : {}),
    };
    this.#attempt = { startedAtMs: atMs, number: attempt, attributes };
    if (attempts === 'always' || (attempts === 'onRetry' && attempt > 1))
      this.#attempt.span = this.#attemptSpan(this.#attempt);
  }

  #attemptSpan({
    startedAtMs,
    attributes,
  }: {
    readonly startedAtMs: number;
    readonly attributes: OtelAttributes;
  }): OtelSpan {
    const name = String(attributes['gen_ai.tool.name']);
    // The parent is said: after a retry's timer the active context is that of the attempt before.
    return this.#terms.tracer.startSpan(`attempt ${name}`, { startTime: startedAtMs, attributes }, this.#context);
  }

  #endAttempt(atMs: number, attributes: OtelAttributes = {}, message?: string): void {
    const attempt = this.#attempt;
    this.#attempt = undefined;
    if (attempt === undefined || this.#terms.attempts === 'never') return;
    const span = attempt.span ?? (message === undefined ? undefined : this.#attemptSpan(attempt));
    span?.setAttributes(attributes);
    if (message !== undefined) span?.setStatus({ code: STATUS_ERROR, message });
    span?.end(atMs);
  }

  /** The wait before a retry has a span of its own in CLAW's words. */
  #delay(atMs: number | undefined): void {
    const { claw, tracer } = this.#terms;
    if (!claw || this.#retry === undefined || this.#over) return;
    const { delayMs = 0, error, attempt } = this.#retry;
    const attributes = {
      'spillway.retry.delay_ms': delayMs,
      'spillway.retry.reason': error.kind,
      'retry.attempt': attempt,
    };
    tracer.startSpan('retry_delay', { startTime: this.#retry.atMs, attributes }, this.#context).end(atMs);
  }

  #dedupe({ step, keyFingerprint, leaderCallId, ageMs }: Of<'dedupe'>, leader: OtelLink | undefined): void {
    if (this.#terms.claw) this.#set({ 'idempotency.key': keyFingerprint });
    if (STEPS.includes(step)) this.#set({ 'spillway.dedupe.step': step });
    if (ageMs !== undefined) this.#set({ 'spillway.dedupe.age_ms': ageMs });
    if (leaderCallId === undefined || this.#links.has(leaderCallId)) return;
    this.#links.add(leaderCallId);
    this.#set({ 'spillway.dedupe.leader_call_id': leaderCallId });
    if (leader !== undefined && !this.#over) this.#span.addLink(leader);
  }

  #settle({ result, atMs }: Of<'settled'>): void {
    const { status, attempts, fromCache, error } = result;
    this.#set({ 'spillway.status': status, 'spillway.attempts': attempts, 'spillway.from_cache': fromCache });
    // What was retried and then succeeded is no error of the call.
    if (error !== undefined && !this.#over) {
      this.#span.setAttributes({ 'error.type': error.code });
      this.#span.setStatus({ code: STATUS_ERROR, message: error.message });
    }
    this.end(atMs);
  }
}
