import type { LayerEvent, ToolEvent, ToolInForce, TraceEvent, TurnOwnEvent } from '../../contract/event.ts';
import { BreakerWatch } from './breaker-watch.ts';
import { RecentMap, OTHER_TOOL, type TraceSink } from '../sink.ts';
import { ANOTHER_KIND, FOUND, KINDS, type MeterName, type MeteredTool } from './tool-meters.ts';

/** One measurement: the values of the meter's labels in their order, and by how much it grows, or what was observed. */
export interface Measurement {
  readonly meter: MeterName;
  /** Absent for what is measured of turns. */
  readonly tool?: string;
  readonly labels: readonly string[];
  readonly value: number;
  /** The trace that the measured call belongs to, where that is known. */
  readonly traceparent?: string | undefined;
}

export interface MeasureOptions {
  /** Those that are counted by their names; what the layer says of one takes the place of what was given. */
  readonly tools: Map<string, MeteredTool>;
  /** Hears every measurement. */
  readonly measure: (measurement: Measurement) => void;
  /** Hears that so many more calls of a tool run now. */
  readonly running?: (tool: string, change: 1 | -1) => void;
  /** Asked when a call begins; by default the caller's own trace context is taken. */
  readonly traceparent?: ((callId: string) => string | undefined) | undefined;
}

export interface Measures extends TraceSink {
  readonly breakers: BreakerWatch;
  readonly storeAvailable: boolean;
}

interface KnownCall {
  readonly toolName: string;
  readonly scope: string;
  readonly traceparent: string | undefined;
}

/**
 * Calls in flight that are counted at a time: ten times as many as a sink keeps for anything else, since they are few
 * words each.
 */
const IN_FLIGHT_MAX = 100_000;
const TURNS_MAX = 10_000;

/** A tool as its layer says that it is guarded, defaults and what its code implies included. */
const inForce = ({ description }: MeteredTool, { name, effects, policy }: ToolInForce): MeteredTool => ({
  name,
  description,
  policy: { effects, dedupe: policy.dedupe, breaker: policy.breaker ?? false },
});

const kindOf = (kind: string): string => (KINDS.includes(kind) ? kind : ANOTHER_KIND);

/** What events say in numbers; names beyond `tools` count as `__other__`. The states of breakers are kept beside. */
export function measuresOf(options: MeasureOptions): Measures {
  return new Meters(options);
}

class Meters implements Measures {
  readonly breakers: BreakerWatch;
  storeAvailable = true;
  readonly #options: MeasureOptions;
  readonly #calls: RecentMap<KnownCall>;
  /** When turns began. */
  readonly #turns = new RecentMap<number>(TURNS_MAX);

  constructor(options: MeasureOptions) {
    this.#options = options;
    this.breakers = new BreakerWatch(options.tools);
    this.#calls = new RecentMap<KnownCall>(IN_FLIGHT_MAX, ({ toolName }) => options.running?.(toolName, -1));
  }

  next(event: TraceEvent): void {
    if (event.source === 'call') this.#ofCall(event);
    else if (event.source === 'turn') this.#ofTurn(event);
    else this.#ofLayer(event);
  }

  #hear(tool: ToolInForce): void {
    const known = this.#options.tools.get(tool.name);
    if (known !== undefined) this.#options.tools.set(tool.name, inForce(known, tool));
  }

  #nameOf(toolName: string): string {
    return this.#options.tools.has(toolName) ? toolName : OTHER_TOOL;
  }

  #known(event: ToolEvent): KnownCall {
    const started = event.type === 'call_started' ? event : undefined;
    const scope = started?.session === undefined ? 'global' : 'session';
    return {
      toolName: this.#nameOf(event.toolName),
      scope: event.turnId === undefined ? scope : 'turn',
      traceparent: started === undefined ? undefined : this.#traceparentOf(started),
    };
  }

  #traceparentOf({ callId, traceparent }: Extract<ToolEvent, { type: 'call_started' }>): string | undefined {
    return this.#options.traceparent?.(callId) ?? traceparent;
  }

  #begin(event: ToolEvent): void {
    const before = this.#calls.take(event.callId);
    if (before !== undefined) this.#options.running?.(before.toolName, -1);
    const call = this.#known(event);
    this.#calls.set(event.callId, call);
    this.#options.running?.(call.toolName, 1);
  }

  /** The tool that was asked for, whichever answered. */
  #end(event: ToolEvent): KnownCall {
    const call = this.#calls.take(event.callId);
    if (call !== undefined) this.#options.running?.(call.toolName, -1);
    return call ?? this.#known(event);
  }

  /** Of the tool in use: an alternative's failures are its own. */
  #count(event: ToolEvent, meter: MeterName, label: string): void {
    const traceparent = this.#calls.get(event.callId)?.traceparent;
    this.#options.measure({ meter, tool: this.#nameOf(event.toolName), labels: [label], value: 1, traceparent });
  }

  #ofCall(event: ToolEvent): void {
    switch (event.type) {
      case 'call_started':
        if (event.tool !== undefined) this.#hear(event.tool);
        return this.#begin(event);
      case 'attempt_failed':
      case 'rejected':
        return this.#count(event, 'tool_errors_total', kindOf(event.error.kind));
      case 'decision':
        if (event.strategy === 'retry') this.#count(event, 'tool_retry_attempts_total', kindOf(event.error.kind));
        return undefined;
      case 'dedupe':
        if (event.step === 'busy') this.#count(event, 'tool_idempotency_hits_total', 'inflight');
        if (event.step === 'conflict') this.#count(event, 'tool_idempotency_hits_total', 'conflict');
        return this.#count(event, 'tool_dedupe_steps_total', event.step);
      case 'verified':
        return this.#count(event, 'tool_verifications_total', FOUND[event.finding]);
      case 'approval':
        return this.#count(event, 'tool_approvals_total', event.step);
      case 'shadow':
        return this.#count(event, 'tool_shadow_decisions_total', event.would);
      case 'abandoned': {
        const { toolName: tool, scope, traceparent } = this.#end(event);
        const labels = ['abandoned', scope];
        return this.#options.measure({ meter: 'tool_calls_total', tool, labels, value: 1, traceparent });
      }
      case 'settled':
        return this.#settled(event);
      case 'hook':
      case 'attempt_started':
      case 'progress':
      case 'attempt_succeeded':
      case 'attempt_canceled':
      case 'escalated':
      case 'alternative_used':
        return undefined;
    }
  }

  #settled(event: Extract<ToolEvent, { type: 'settled' }>): void {
    const { toolName: tool, scope, traceparent } = this.#end(event);
    const { status, durationMs, fromCache, cache } = event.result;
    const { measure } = this.#options;
    measure({ meter: 'tool_calls_total', tool, labels: [status, scope], value: 1, traceparent });
    const value = durationMs / 1000;
    measure({ meter: 'tool_call_duration_seconds', tool, labels: [status], value, traceparent });
    if (!fromCache) return;
    const ended = status === 'success' ? 'done' : 'failed';
    const labels = [cache?.matchedOn === 'inflight' ? 'inflight' : ended];
    measure({ meter: 'tool_idempotency_hits_total', tool, labels, value: 1, traceparent });
  }

  #ofTurn(event: TurnOwnEvent): void {
    if (event.type === 'turn_started') return this.#turns.set(event.turnId, event.atMs);
    // Of one that goes on here it is known how long it has run already; of one that goes on elsewhere nothing is
    // counted.
    if (event.type === 'turn_moved' && event.ranMs !== undefined)
      return this.#turns.set(event.turnId, event.atMs - event.ranMs);
    if (event.type === 'turn_left') return void this.#turns.take(event.turnId);
    if (event.type !== 'abandoned' && event.type !== 'settled') return undefined;
    const startedAtMs = this.#turns.take(event.turnId);
    const { measure } = this.#options;
    const status = event.type === 'settled' ? event.result.status : 'abandoned';
    measure({ meter: 'turns_total', labels: [status], value: 1 });
    if (event.type === 'abandoned') return undefined;
    if (startedAtMs !== undefined) {
      measure({ meter: 'turn_duration_seconds', labels: [status], value: (event.atMs - startedAtMs) / 1000 });
    }
    const { nodes } = event.result;
    for (const { state } of nodes) measure({ meter: 'turn_nodes_total', labels: [state], value: 1 });
    const harvested = nodes.filter(({ state }) => state === 'succeeded' || state === 'defaulted').length;
    const value = nodes.length === 0 ? 1 : harvested / nodes.length;
    return measure({ meter: 'turn_harvested_ratio', labels: [], value });
  }

  #ofLayer(event: LayerEvent): void {
    if (event.type === 'layer_started') for (const tool of event.tools) this.#hear(tool);
    if (event.type === 'budget') {
      const meter = event.step === 'warned' ? 'budget_warnings_total' : 'budget_refusals_total';
      return this.#options.measure({ meter, labels: [event.per, event.unit], value: 1 });
    }
    if (event.type === 'store_changed') {
      if (event.state === 'lost' || event.state === 'back') this.storeAvailable = event.state === 'back';
      return;
    }
    if (event.type !== 'breaker_changed' && event.type !== 'breaker_evicted') return;
    const tool = this.#nameOf(event.toolName);
    if (event.type === 'breaker_evicted') return this.breakers.forget(tool, event);
    this.breakers.set(tool, event, event.to);
    const labels = [event.from, event.to];
    this.#options.measure({ meter: 'tool_circuit_breaker_transitions_total', tool, labels, value: 1 });
  }
}
