import type { BreakerStateName } from '../contract/breaker-state.ts';
import { TOOL_ERROR_KIND_MEANINGS } from '../contract/error-kind.ts';
import type { DedupeStep, ShadowAct, ToolEvent } from '../contract/event.ts';
import type { BreakerOptions, DedupePolicy, Effects } from '../contract/policy.ts';
import { DEDUPE_DEFAULTS } from '../policy/profile.ts';
import { Kept, OTHER_TOOL, type TraceSink } from './sink.ts';

/** A tool as a sink has to know it: those made with `tool()` fit, a name alone will do. */
export interface MeteredTool {
  readonly name: string;
  readonly policy?: { readonly effects?: Effects; readonly dedupe?: DedupePolicy; readonly breaker?: BreakerOptions | false };
}

/** What is counted or measured of tools (CLAW 1.6). Each label has a closed set of values. */
export interface Meter {
  readonly kind: 'counter' | 'histogram';
  readonly help: string;
  readonly labels: Readonly<Record<string, readonly string[]>>;
}

export const BREAKER_STATES: readonly BreakerStateName[] = ['closed', 'open', 'half_open', 'forced_open', 'disabled'];
const ANOTHER = '_OTHER';
const KINDS: readonly string[] = [...Object.keys(TOOL_ERROR_KIND_MEANINGS), ANOTHER];
const STATUSES: readonly string[] = ['success', 'error', 'retriable_error', 'retry_exhausted', 'circuit_open', 'timeout'];
const STEPS: readonly DedupeStep[] = ['claimed', 'taken_over', 'waiting', 'replayed', 'conflict', 'busy', 'lease_lost', 'recorded', 'released', 'superseded', 'unrecorded', 'unprotected'];
const ACTS: readonly ShadowAct[] = ['replay', 'wait', 'reject', 'retry', 'time_out'];

export type MeterName =
  | 'tool_calls_total'
  | 'tool_call_duration_seconds'
  | 'tool_retry_attempts_total'
  | 'tool_errors_total'
  | 'tool_idempotency_hits_total'
  | 'tool_dedupe_steps_total'
  | 'tool_circuit_breaker_transitions_total'
  | 'tool_shadow_decisions_total';

export const METERS: Readonly<Record<MeterName, Meter>> = {
  tool_calls_total: {
    kind: 'counter',
    help: 'Calls that ended, by status and by what they were part of: a turn, a session, or neither.',
    labels: { status: [...STATUSES, 'abandoned'], scope: ['turn', 'session', 'global'] },
  },
  tool_call_duration_seconds: { kind: 'histogram', help: 'How long calls took, retries and waits included.', labels: { status: STATUSES } },
  tool_retry_attempts_total: { kind: 'counter', help: 'Retries that were decided, by the kind of failure; a first attempt is none.', labels: { reason: KINDS } },
  tool_errors_total: { kind: 'counter', help: 'Failed attempts and refused calls, by the kind of failure.', labels: { error_type: KINDS } },
  tool_idempotency_hits_total: { kind: 'counter', help: 'Calls whose key was known: the same call ran (inflight), had ended (done, failed), or was another (conflict).', labels: { state: ['inflight', 'done', 'failed', 'conflict'] } },
  tool_dedupe_steps_total: { kind: 'counter', help: 'What happened about idempotency keys.', labels: { step: STEPS } },
  tool_circuit_breaker_transitions_total: { kind: 'counter', help: 'Changes of circuit breakers.', labels: { from_state: BREAKER_STATES, to_state: BREAKER_STATES } },
  tool_shadow_decisions_total: { kind: 'counter', help: 'What the layer would have done to calls in shadow mode.', labels: { would: ACTS } },
};

/** How long the store keeps what it knows of a tool, in seconds, by state. */
export function timesToLive({ policy }: MeteredTool): Readonly<Record<'done' | 'failed' | 'inflight', number>> {
  const { doneTtlMs = DEDUPE_DEFAULTS.doneTtlMs, failedTtlMs = DEDUPE_DEFAULTS.failedTtlMs, leaseMs = DEDUPE_DEFAULTS.leaseMs } = policy?.dedupe ?? {};
  return { done: doneTtlMs / 1000, failed: failedTtlMs / 1000, inflight: leaseMs / 1000 };
}

/** How full the store is. */
export interface StoreFill {
  readonly records?: number;
  /** By tool, where somebody counts them. */
  readonly byTool?: Readonly<Record<string, number>>;
}

/** How a layer stands, as `spillway.inspect()` says. */
export interface LayerState {
  readonly breakers?: ReadonlyArray<{ readonly toolName: string; readonly state: { readonly type: BreakerStateName } }>;
  readonly store?: StoreFill;
}
export type Inspect = () => LayerState | undefined | PromiseLike<LayerState | undefined>;

/** The sizes of a store, of all of it and of the tools that are known. */
export function storeSizes(fill: StoreFill | undefined, tools: ReadonlyMap<string, MeteredTool>): ReadonlyArray<{ readonly labels: Readonly<Record<'tool' | 'scope', string>>; readonly records: number }> {
  const { records, byTool = {} } = fill ?? {};
  const counted = Object.entries(byTool).filter(([name]) => tools.has(name));
  const sizes = counted.map(([name, count]) => ({ labels: { tool: name, scope: tools.get(name)?.policy?.dedupe?.scope ?? 'session' }, records: count }));
  return [...(records === undefined ? [] : [{ labels: { tool: '__all__', scope: 'all' }, records }]), ...sizes].filter((size) => Number.isFinite(size.records));
}

/** @throws RangeError for what is no tool */
export function meteredTools(tools: ReadonlyArray<string | MeteredTool>): ReadonlyMap<string, MeteredTool> {
  if (!Array.isArray(tools)) throw new RangeError(`tools must be a list of tools or their names, not ${typeof tools}`);
  const described = (tools as ReadonlyArray<string | MeteredTool>).map((tool) => (typeof tool === 'string' ? { name: tool } : tool));
  for (const tool of described) if (typeof tool?.name !== 'string' || tool.name === '') throw new RangeError('tools must be tools with a name, or names');
  return new Map(described.map((tool) => [tool.name, tool]));
}

/** Breakers that are not closed, at a time and beyond what anyone looks at. */
const SCOPES_MAX = 10_000;
/** Worst first: a tool is in the worst state of its breakers. */
const WORST: readonly BreakerStateName[] = ['forced_open', 'open', 'half_open', 'disabled'];

/** The states of breakers, as far as events tell: a tool has one for each tenant. */
export class BreakerWatch {
  readonly #tools: ReadonlyMap<string, MeteredTool>;
  /** Those that are not as they began. */
  readonly #changed = new Map<string, Map<string, BreakerStateName>>();
  #kept = 0;

  constructor(tools: ReadonlyMap<string, MeteredTool>) {
    this.#tools = tools;
  }

  set(toolName: string, scope: string, state: BreakerStateName): void {
    const scopes = this.#changed.get(toolName) ?? new Map<string, BreakerStateName>();
    if (scopes.delete(scope)) this.#kept--;
    if (state !== this.#initial(toolName) && this.#kept < SCOPES_MAX) {
      scopes.set(scope, state);
      this.#kept++;
    }
    if (scopes.size > 0) this.#changed.set(toolName, scopes);
    else this.#changed.delete(toolName);
  }

  forget(toolName: string, scope: string): void {
    this.set(toolName, scope, this.#initial(toolName));
  }

  /** @param listed how the breakers stand now, where that is known: of one whose cooldown passes without traffic no event tells */
  stateOf(toolName: string, listed?: LayerState['breakers']): BreakerStateName {
    const own = listed?.filter((breaker) => (this.#tools.has(breaker.toolName) ? breaker.toolName : OTHER_TOOL) === toolName).map(({ state }) => state.type);
    const states = new Set(own ?? this.#changed.get(toolName)?.values());
    return WORST.find((state) => states.has(state)) ?? states.values().next().value ?? this.#initial(toolName);
  }

  #initial(toolName: string): BreakerStateName {
    const breaker = this.#tools.get(toolName)?.policy?.breaker;
    return breaker === false ? 'disabled' : (breaker?.initialState ?? 'closed');
  }
}

/** Hears every measurement: the values of the meter's labels in their order, and by how much it grows, or what was observed. */
export type Measure = (meter: MeterName, tool: string, labels: readonly string[], value: number) => void;

interface KnownCall {
  readonly toolName: string;
  readonly scope: string;
}

const kindOf = (kind: string): string => (KINDS.includes(kind) ? kind : ANOTHER);

/** What events say in numbers, told to `measure`; names beyond `tools` count as `__other__`. The states of breakers are kept beside. */
export function toolMeasures(tools: ReadonlyMap<string, MeteredTool>, measure: Measure): TraceSink & { readonly breakers: BreakerWatch; readonly storeAvailable: boolean } {
  const calls = new Kept<KnownCall>();
  const breakers = new BreakerWatch(tools);
  let storeAvailable = true;
  const nameOf = (toolName: string): string => (tools.has(toolName) ? toolName : OTHER_TOOL);
  const begun = ({ toolName, turnId, ...event }: ToolEvent): KnownCall => {
    const session = event.type === 'call_started' ? event.session : undefined;
    return { toolName: nameOf(toolName), scope: turnId === undefined ? (session === undefined ? 'global' : 'session') : 'turn' };
  };
  /** The tool that was asked for, whichever answered. */
  const ended = (event: ToolEvent): KnownCall => calls.take(event.callId) ?? begun(event);

  const ofCall = (event: ToolEvent): void => {
    const tool = nameOf(event.toolName);
    switch (event.type) {
      case 'call_started':
        return calls.set(event.callId, begun(event));
      case 'attempt_failed':
      case 'rejected':
        return measure('tool_errors_total', tool, [kindOf(event.error.kind)], 1);
      case 'decision':
        return event.strategy === 'retry' ? measure('tool_retry_attempts_total', tool, [kindOf(event.error.kind)], 1) : undefined;
      case 'dedupe':
        if (event.step === 'busy') measure('tool_idempotency_hits_total', tool, ['inflight'], 1);
        if (event.step === 'conflict') measure('tool_idempotency_hits_total', tool, ['conflict'], 1);
        return measure('tool_dedupe_steps_total', tool, [event.step], 1);
      case 'shadow':
        return measure('tool_shadow_decisions_total', tool, [event.would], 1);
      case 'abandoned': {
        const { toolName, scope } = ended(event);
        return measure('tool_calls_total', toolName, ['abandoned', scope], 1);
      }
      case 'settled': {
        const { toolName, scope } = ended(event);
        const { status, durationMs, fromCache, cache } = event.result;
        measure('tool_calls_total', toolName, [status, scope], 1);
        measure('tool_call_duration_seconds', toolName, [status], durationMs / 1000);
        if (fromCache) measure('tool_idempotency_hits_total', toolName, [cache?.matchedOn === 'inflight' ? 'inflight' : status === 'success' ? 'done' : 'failed'], 1);
        return undefined;
      }
      case 'hook':
      case 'attempt_started':
      case 'progress':
      case 'attempt_succeeded':
      case 'attempt_canceled':
      case 'escalated':
      case 'alternative_used':
        return undefined;
    }
  };
  return {
    breakers,
    get storeAvailable() {
      return storeAvailable;
    },
    next: (event) => {
      if (event.source === 'call') return ofCall(event);
      if (event.source !== 'layer') return;
      if (event.type === 'store_changed') {
        if (event.state === 'lost' || event.state === 'back') storeAvailable = event.state === 'back';
        return;
      }
      const tool = nameOf(event.toolName);
      if (event.type === 'breaker_evicted') return breakers.forget(tool, event.scope);
      breakers.set(tool, event.scope, event.to);
      measure('tool_circuit_breaker_transitions_total', tool, [event.from, event.to], 1);
    },
  };
}
