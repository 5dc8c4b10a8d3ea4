import type { Approvals } from './gate/approvals.ts';
import type { Budget } from './gate/budget.ts';
import type { HostPart } from './contract/event.ts';
import type { Hooks } from './contract/hooks.ts';
import type { Mode, ProfileName, RetryBudgetOptions, ToolPolicy } from './contract/policy.ts';
import type { ToolProvider } from './contract/provider.ts';
import type { Runtime } from './contract/runtime.ts';
import type { DedupeStore } from './contract/store.ts';
import type { AnyTool, TraceContextSource } from './contract/tool.ts';
import type { ErrorHandlerOptions } from './layer/error-handler.ts';
import type { Around } from './layer/services.ts';
import { checkKeys, checkOneOf } from './policy/check.ts';
import type { CaptureOptions, RedactOptions } from './policy/redact/values.ts';

/** What a layer is made of. Times are milliseconds. */
export interface SpillwayOptions extends ErrorHandlerOptions {
  /** Tools that calls can name. Default: none. */
  readonly tools?: readonly AnyTool[];
  /**
   * Places where more tools come from, each looked up in what its provider lists at the moment; `close()` closes them.
   */
  readonly providers?: readonly ToolProvider[];
  /** `interactive` (default): 5 attempts within 2 s. `resilient`: 4 attempts with full jitter within 30 s. */
  readonly profile?: ProfileName;
  /** A policy for all tools: it fills in what a tool's own policy leaves out. Default: the profile alone. */
  readonly defaults?: ToolPolicy;
  /**
   * The name of the breaker that guards a tool, so that tools of one server can share one: `({ dependency, name }) =>
   * dependency ?? name`. By default each tool has its own. Tenants are kept apart all the same; `circuitBreakerHint` of
   * a call goes before it.
   */
  readonly breakerKey?: (tool: AnyTool) => string;
  /** Breakers kept at a time; the one used longest ago makes room, which the trace tells. Default 10,000. */
  readonly maxBreakers?: number;
  /**
   * Retries that all calls share: by default 20 % of the calls of the last 10 s plus 10 a second. `false`: no limit.
   */
  readonly retryBudget?: RetryBudgetOptions | false;
  /**
   * Where calls with an idempotency key are remembered. By default the memory of this process; `spillway/stores/sqlite`
   * and `spillway/stores/redis` outlive it.
   */
  readonly store?: DedupeStore;
  /**
   * Breakers are shared with all processes of the store: what one opens is open for all, for as long, and all together
   * make the probes. Costs a question to the store for each attempt. While the store gives no answer each process goes
   * by its own. In a bundle it needs a `store`, and one that is neither SQLite's nor Redis' has to come through
   * `acrossProcesses` of `spillway/operate`. Default false.
   */
  readonly shareBreakers?: boolean;
  /** How long an answer of the store is waited for; then it is lost, and `store_changed` says so. Default 5,000. */
  readonly storeTimeoutMs?: number;
  /** Functions of the host's that are asked before each call and attempt. Default: none. */
  readonly hooks?: Hooks;
  /** How long a hook may take before it blocks its call. Default 15,000. */
  readonly hookTimeoutMs?: number;
  /**
   * Who approves the calls of tools with `needsApproval`: `createApprovals` of `spillway/gates` makes it. It holds in
   * every mode. Default: nobody, and such calls are refused.
   */
  readonly approvals?: Approvals;
  /**
   * What calls may use, per turn, session or tenant: `createBudget` of `spillway/gates` makes it. It holds in every
   * mode. Default: no limit.
   */
  readonly budget?: Budget;
  /** Secrets that are taken out of everything `trace$` shows, beside what looks like one. */
  readonly redact?: RedactOptions;
  /** Parts of inputs and outputs that `trace$` may show, by tool and dotted path. By default none. */
  readonly capture?: CaptureOptions;
  /**
   * Runs each attempt's `execute` in surroundings of the host's: `(callId, attempt, run) => sink.run(callId, run)`
   * makes a tool's own OpenTelemetry spans children of its attempt. Gives what `run` gives.
   */
  readonly around?: Around;
  /**
   * Gives the W3C trace context of each attempt, which the tool has as `context.traceContext`, a server over MCP in
   * `_meta` and one over REST in its headers, so that what they do comes under that attempt: `otel.carrier` of
   * `openTelemetrySink`. Where it gives none, throws, or is left out, attempts go on from what the caller gave.
   */
  readonly traceContext?: TraceContextSource;
  /**
   * `on` (default). `shadow`: every tool runs as if there were no layer, and the trace tells what the layer would have
   * done. `off`: straight through.
   */
  readonly mode?: Mode;
  /** Time, chance and ids. Default: `liveRuntime`, the machine's own. Tests give `virtualRuntime` or `runtimeOn`. */
  readonly runtime?: Runtime;
}

const OPTION_KEYS = [
  'tools',
  'providers',
  'profile',
  'defaults',
  'breakerKey',
  'maxBreakers',
  'retryBudget',
  'runtime',
  'errorHandler',
  'errorHandlerTimeoutMs',
  'guidance',
  'experience',
  'store',
  'storeTimeoutMs',
  'shareBreakers',
  'hooks',
  'hookTimeoutMs',
  'approvals',
  'budget',
  'mode',
  'redact',
  'capture',
  'around',
  'traceContext',
];

const HOST_PARTS = ['hooks', 'errorHandler', 'guidance', 'experience', 'approvals', 'budget'] as const;

/** What decides beside the policies, as the trace names it. */
export const hostOf = (options: SpillwayOptions): HostPart[] => [
  ...HOST_PARTS.filter((part) => options[part] !== undefined),
  ...(options.shareBreakers === true ? (['sharedBreakers'] as const) : []),
];

/** @throws RangeError for an option that there is not, or a value that it cannot have */
export const checkOptions = (options: SpillwayOptions): void => {
  checkKeys('createSpillway', options, OPTION_KEYS);
  const { tools = [], providers = [], profile = 'interactive', mode = 'on' } = options;
  checkOneOf('profile', profile, ['interactive', 'resilient']);
  checkOneOf('mode', mode, ['on', 'shadow', 'off']);
  for (const [name, list] of Object.entries({ tools, providers }))
    if (!Array.isArray(list)) throw new RangeError(`${name} must be a list, not ${typeof list}`);
};
