import type { HostPart, PolicyInForce, ToolInForce } from '../contract/event.ts';
import type { BreakerOptions, RetryBudgetOptions } from '../contract/policy.ts';
import { VERSION } from '../contract/version.ts';
import { breakerSettings } from '../policy/breaker/settings.ts';
import { given } from '../policy/check.ts';
import type { GuardedTool, Registry } from './registry.ts';
import type { Switches } from './switches.ts';
import { STAMP, type Unstamped } from './trace.ts';

/** What is off is `Infinity`, and would be `null` in JSON, which reads as unknown. */
const breakerInForce = (options: BreakerOptions): BreakerOptions =>
  Object.fromEntries(Object.entries(breakerSettings(options)).filter(([, value]) => value !== Infinity));

/** Copied: whoever hears of it may change what it hears, and not the policy. */
const policyInForce = (guarded: GuardedTool): PolicyInForce => {
  const { timeoutMs, idleTimeoutMs, retry, breaker, alternatives, classification, dedupe } = guarded;
  const { enforcesKey, safetyCritical, cost } = guarded;
  return given({
    timeoutMs,
    idleTimeoutMs,
    retry: { ...retry },
    breaker: breaker && breakerInForce(breaker),
    alternatives: [...alternatives],
    classification: { ...classification },
    enforcesKey,
    safetyCritical,
    cost,
    dedupe: { ...dedupe, volatile: [...dedupe.volatile] },
  });
};

const toolInForce = (guarded: GuardedTool, switches: Switches): ToolInForce => {
  const { tool, effects, isPresumed, mode, breaker, breakerName } = guarded;
  return given({
    name: tool.name,
    effects,
    presumed: isPresumed || undefined,
    mode: switches.modeOf(mode),
    policy: policyInForce(guarded),
    breakerKey: breaker && breakerName,
    dependency: tool.dependency,
  });
};

/** What of a layer is the same for all of its tools. */
export interface LayerTerms {
  readonly retryBudget: Required<RetryBudgetOptions> | undefined;
  readonly host: readonly HostPart[];
}

/** The policies of a layer, as its trace tells them. */
export class PoliciesInForce {
  readonly #registry: Registry;
  readonly #switches: Switches;
  readonly #terms: LayerTerms;
  /** Whose policies the last one who began to listen has heard of; by their own parts, as a call's tool is a copy. */
  #told: WeakSet<object> | undefined;

  constructor(registry: Registry, switches: Switches, terms: LayerTerms) {
    this.#registry = registry;
    this.#switches = switches;
    this.#terms = terms;
  }

  /** What a trace begins with, for one who begins to listen: the policies of the tools that are there now. */
  layerStarted(): Unstamped {
    const { retryBudget, host } = this.#terms;
    this.#told = new WeakSet();
    return {
      ...STAMP,
      source: 'layer',
      type: 'layer_started',
      version: VERSION,
      tools: this.#listed(),
      ...given({ retryBudget: retryBudget && { ...retryBudget } }),
      host: [...host],
    };
  }

  /** The policy of a tool that no trace tells of yet; `undefined` where it does, and where there is none. */
  introduce(guarded: GuardedTool): ToolInForce | undefined {
    if (this.#told === undefined || this.#told.has(guarded.dedupe)) return undefined;
    try {
      return this.#tell(guarded);
    } catch {
      // A provider whose list cannot be read ends nobody's call.
      return undefined;
    }
  }

  #tell(guarded: GuardedTool): ToolInForce {
    const tool = toolInForce(guarded, this.#switches);
    this.#told?.add(guarded.dedupe);
    return tool;
  }

  #listed(): ToolInForce[] {
    try {
      const { names } = this.#registry;
      return names.flatMap((name) => this.#registry.get(name) ?? []).map((guarded) => this.#tell(guarded));
    } catch {
      // A provider whose list cannot be read takes nobody's trace away.
      return [];
    }
  }
}
