import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { ToolResultStatus } from '../../contract/envelope.ts';
import { TOOL_ERROR_KIND_MEANINGS } from '../../contract/error-kind.ts';
import type { ApprovalStep, DedupeStep, ShadowAct } from '../../contract/event.ts';
import type { BudgetPer, BudgetUnit } from '../../contract/gate/budget.ts';
import type { BreakerOptions, DedupePolicy, Effects } from '../../contract/policy.ts';
import type { VerifyFinding } from '../../contract/settle/verify.ts';
import type { NodeState, TurnStatus } from '../../contract/turn.ts';
import { DEDUPE_DEFAULTS } from '../../policy/profile.ts';
import { cleaned } from '../sink.ts';

/** What a sink needs of a tool: what `tool()` makes fits, and so does an object with a name alone. */
export interface MeteredTool {
  /** The name by which calls name the tool. */
  readonly name: string;
  /** Put on spans as `gen_ai.tool.description`. */
  readonly description?: string | undefined;
  /** What of the tool's policy decides which series it has. */
  readonly policy?: {
    /** What the tool does to the world. */
    readonly effects?: Effects;
    /** How long its records live, and in which scope. */
    readonly dedupe?: DedupePolicy;
    /** The options of its breaker; `false`: it has none. */
    readonly breaker?: BreakerOptions | false;
  };
}

/** What is counted or measured. Each label has a closed set of values, so that the number of series is known. */
export interface Meter {
  readonly kind: 'counter' | 'histogram';
  readonly help: string;
  /** As OpenTelemetry writes units: `s`, or what is counted in braces. */
  readonly unit: string;
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** The upper edges of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

export const BREAKER_STATES: readonly BreakerStateName[] = ['closed', 'open', 'half_open', 'forced_open', 'disabled'];
/** A kind of failure that is none of the contract's. */
export const ANOTHER_KIND = '_OTHER';
export const KINDS: readonly string[] = [...Object.keys(TOOL_ERROR_KIND_MEANINGS), ANOTHER_KIND];

/** The keys of a record: a member that is added to the union is missed by the compiler where the record is written. */
const all = <K extends string>(members: Readonly<Record<K, true>>): readonly K[] => Object.keys(members) as K[];
const STATUSES = all<ToolResultStatus>({
  success: true,
  error: true,
  retriable_error: true,
  retry_exhausted: true,
  circuit_open: true,
  timeout: true,
});
const STEPS = all<DedupeStep>({
  claimed: true,
  taken_over: true,
  waiting: true,
  replayed: true,
  conflict: true,
  busy: true,
  lease_lost: true,
  recorded: true,
  released: true,
  superseded: true,
  unrecorded: true,
  unprotected: true,
});
const ACTS = all<ShadowAct>({ replay: true, wait: true, reject: true, retry: true, time_out: true });
const APPROVAL_STEPS = all<ApprovalStep>({ asked: true, approved: true, denied: true, expired: true, withdrawn: true });
const PER = all<BudgetPer>({ turn: true, session: true, tenant: true });
const UNITS = all<BudgetUnit>({ calls: true, usd: true, tokens: true });
/** As the label has it: `unknown` means a tool that nobody knows. */
export const FOUND: Readonly<Record<VerifyFinding, string>> = {
  done: 'done',
  not_done: 'not_done',
  unknown: 'in_doubt',
};
const TURN_STATUSES = all<TurnStatus>({ completed: true, partial: true, escalated: true, failed: true });
const NODE_STATES = all<NodeState>({
  succeeded: true,
  failed: true,
  skipped: true,
  defaulted: true,
  timed_out: true,
  canceled: true,
  compensated: true,
  compensation_failed: true,
});

/** Seconds. 2.5 is CLAW's alert threshold: a quantile is only exact on a bucket's edge. */
const CALL_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds. 300 is a turn's default limit. */
const TURN_BUCKETS: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const SHARE_BUCKETS: readonly number[] = [0, 0.25, 0.5, 0.75, 0.9, 0.99, 1];

export type ToolMeterName =
  | 'tool_calls_total'
  | 'tool_call_duration_seconds'
  | 'tool_retry_attempts_total'
  | 'tool_errors_total'
  | 'tool_idempotency_hits_total'
  | 'tool_dedupe_steps_total'
  | 'tool_circuit_breaker_transitions_total'
  | 'tool_verifications_total'
  | 'tool_approvals_total'
  | 'tool_shadow_decisions_total';
export type TurnMeterName =
  | 'turns_total'
  | 'turn_duration_seconds'
  | 'turn_harvested_ratio'
  | 'turn_nodes_total'
  | 'budget_warnings_total'
  | 'budget_refusals_total';
export type MeterName = ToolMeterName | TurnMeterName;

/** What is measured of each tool (CLAW 1.6). */
export const TOOL_METERS: Readonly<Record<ToolMeterName, Meter>> = {
  tool_calls_total: {
    kind: 'counter',
    help: 'Calls that ended, by status and by what they were part of: a turn, a session, or neither.',
    unit: '{call}',
    labels: { status: [...STATUSES, 'abandoned'], scope: ['turn', 'session', 'global'] },
  },
  tool_call_duration_seconds: {
    kind: 'histogram',
    help: 'How long calls took, retries and waits included.',
    unit: 's',
    labels: { status: STATUSES },
    buckets: CALL_BUCKETS,
  },
  tool_retry_attempts_total: {
    kind: 'counter',
    help: 'Retries that were decided, by the kind of failure; a first attempt is none.',
    unit: '{retry}',
    labels: { reason: KINDS },
  },
  tool_errors_total: {
    kind: 'counter',
    help: 'Failed attempts and refused calls, by the kind of failure.',
    unit: '{error}',
    labels: { error_type: KINDS },
  },
  tool_idempotency_hits_total: {
    kind: 'counter',
    help: 'Calls whose key was known: the same call ran (inflight), had ended (done, failed), or was another (conflict).',
    unit: '{call}',
    labels: { state: ['inflight', 'done', 'failed', 'conflict'] },
  },
  tool_dedupe_steps_total: {
    kind: 'counter',
    help: 'What happened about idempotency keys.',
    unit: '{step}',
    labels: { step: STEPS },
  },
  tool_circuit_breaker_transitions_total: {
    kind: 'counter',
    help: 'Changes of circuit breakers.',
    unit: '{transition}',
    labels: { from_state: BREAKER_STATES, to_state: BREAKER_STATES },
  },
  tool_verifications_total: {
    kind: 'counter',
    help: 'Uncertain attempts that were looked into, by what was found: done, not done, or still in doubt.',
    unit: '{verification}',
    labels: { finding: Object.values(FOUND) },
  },
  tool_approvals_total: {
    kind: 'counter',
    help: 'Questions to people whether a call may run, by what became of them; each is asked first.',
    unit: '{approval}',
    labels: { step: APPROVAL_STEPS },
  },
  tool_shadow_decisions_total: {
    kind: 'counter',
    help: 'What the layer would have done to calls in shadow mode.',
    unit: '{decision}',
    labels: { would: ACTS },
  },
};

/** What is measured of turns and budgets, whatever their tools. */
export const TURN_METERS: Readonly<Record<TurnMeterName, Meter>> = {
  turns_total: {
    kind: 'counter',
    help: 'Turns that ended, by status.',
    unit: '{turn}',
    labels: { status: [...TURN_STATUSES, 'abandoned'] },
  },
  turn_duration_seconds: {
    kind: 'histogram',
    help: 'How long turns took until they settled.',
    unit: 's',
    labels: { status: TURN_STATUSES },
    buckets: TURN_BUCKETS,
  },
  turn_harvested_ratio: {
    kind: 'histogram',
    help: 'Which share of its nodes a turn that settled has a value of: of those that succeeded, or had a default.',
    unit: '1',
    labels: {},
    buckets: SHARE_BUCKETS,
  },
  turn_nodes_total: {
    kind: 'counter',
    help: 'Nodes of turns that settled, by how they ended.',
    unit: '{node}',
    labels: { state: NODE_STATES },
  },
  budget_warnings_total: {
    kind: 'counter',
    help: 'Budgets that came to 80 % or beyond, by whose they are and what is short; each is told once.',
    unit: '{budget}',
    labels: { per: PER, unit: UNITS },
  },
  budget_refusals_total: {
    kind: 'counter',
    help: 'Attempts that were refused since too little was left of a budget.',
    unit: '{attempt}',
    labels: { per: PER, unit: UNITS },
  },
};

/** Values of labels that go together; of the states of a breaker only those that are a change. */
export const combinations = (labels: Meter['labels']): string[][] =>
  Object.values(labels)
    .reduce<string[][]>((rows, values) => rows.flatMap((row) => values.map((value) => [...row, value])), [[]])
    .filter((row) => !('from_state' in labels) || row[0] !== row[1]);

/** How long the store keeps what it knows of a tool, in seconds, by state. */
export function timesToLive({ policy }: MeteredTool): Readonly<Record<'done' | 'failed' | 'inflight', number>> {
  const { dedupe = {} } = policy ?? {};
  const { doneTtlMs = DEDUPE_DEFAULTS.doneTtlMs, failedTtlMs = DEDUPE_DEFAULTS.failedTtlMs } = dedupe;
  const { leaseMs = DEDUPE_DEFAULTS.leaseMs } = dedupe;
  return { done: doneTtlMs / 1000, failed: failedTtlMs / 1000, inflight: leaseMs / 1000 };
}

/** How full the store is. */
export interface StoreFill {
  /** How many records there are; absent where the store does not know. */
  readonly records?: number;
  /** How many of them belong to each tool, where the store counts them. */
  readonly byTool?: Readonly<Record<string, number>>;
}

/** A breaker as it stands. */
export interface ListedBreaker {
  /** The tool's name, or the name that tools share a breaker by. */
  readonly toolName: string;
  /** Its state; more members than this one do no harm. */
  readonly state: {
    /** The state's name. */
    readonly type: BreakerStateName;
  };
}

/** How a layer stands, as `spillway.inspect()` says. */
export interface LayerState {
  /** The breakers that were used so far; absent where they are not known. */
  readonly breakers?: readonly ListedBreaker[];
  /** How full the store is; absent without a store, or where it does not answer. */
  readonly store?: StoreFill;
  /** How many retries the budget allows now; absent when there is no budget. */
  readonly retriesLeft?: number;
  /** How many trace events were lost because a subscriber threw. */
  readonly droppedEvents?: number;
}
/** Gives the state of a layer, at once or later; `undefined` where it is not known, as where it throws. */
export type Inspect = () => LayerState | undefined | PromiseLike<LayerState | undefined>;

export interface StoreSize {
  readonly labels: Readonly<Record<'tool' | 'scope', string>>;
  readonly records: number;
}

/** The sizes of a store, of all of it and of the tools that are known. */
export function* storeSizes(
  fill: StoreFill | undefined,
  tools: ReadonlyMap<string, MeteredTool>,
): Generator<StoreSize> {
  const { records, byTool = {} } = fill ?? {};
  if (Number.isFinite(records)) yield { labels: { tool: '__all__', scope: 'all' }, records: records ?? 0 };
  for (const name of Object.keys(byTool)) {
    const tool = tools.get(name);
    const count = byTool[name];
    if (tool === undefined || !Number.isFinite(count)) continue;
    yield { labels: { tool: name, scope: tool.policy?.dedupe?.scope ?? 'session' }, records: count ?? 0 };
  }
}

/** @throws RangeError for what is no tool */
export function meteredTools(tools: ReadonlyArray<string | MeteredTool>): Map<string, MeteredTool> {
  if (!Array.isArray(tools)) throw new RangeError(`tools must be a list of tools or their names, not ${typeof tools}`);
  const described = tools.map((tool: string | MeteredTool) => (typeof tool === 'string' ? { name: tool } : tool));
  for (const tool of described) {
    if (typeof tool?.name !== 'string' || tool.name === '')
      throw new RangeError('tools must be tools with a name, or names');
  }
  return new Map(described.map((tool) => [cleaned(tool.name), tool]));
}
