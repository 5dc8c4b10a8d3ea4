import type { HostPart, PolicyInForce, ToolInForce } from '../contract/event.ts';
import type { BreakerOptions, RetryBudgetOptions } from '../contract/policy.ts';
import { VERSION } from '../contract/version.ts';
import { breakerSettings } from '../policy/breaker/settings.ts';
import type { GuardedTool, Registry } from './registry.ts';
import type { Switches } from './switches.ts';
import { STAMP, type Unstamped } from './trace.ts';

/** What is off is `Infinity`, and would be `null` in JSON, which reads as unknown. */
const breakerInForce = (options: BreakerOptions): BreakerOptions =>
  Object.fromEntries(Object.entries(breakerSettings(options)).filter(([, value]) => value !== Infinity));

/** Copied: whoever hears of it may change what it hears, and not the policy. */
const policyInForce = ({
  timeoutMs,
  idleTimeoutMs,
  retry,
  breaker,
  alternatives,
  classification,
  enforcesKey,
  safetyCritical,
  cost,
  dedupe,
}: GuardedTool): PolicyInForce => ({
  timeoutMs,
  ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
  retry: { ...retry },
  ...(breaker === undefined ? {} : { breaker: breakerInForce(breaker) }),
  alternatives: [...alternatives],
  classification: { ...classification },
  enforcesKey,
  safetyCritical,
  cost,
  dedupe: { ...dedupe, volatile: [...dedupe.volatile] },
});

const toolInForce = (guarded: GuardedTool, switches: Switches): ToolInForce => ({
  name: guarded.tool.name,
  effects: guarded.effects,
  mode: switches.modeOf(guarded.mode),
  policy: policyInForce(guarded),
  ...(guarded.breaker === undefined ? {} : { breakerKey: guarded.breakerName }),
  ...(guarded.tool.dependency === undefined ? {} : { dependency: guarded.tool.dependency }),
});

const toolsInForce = (registry: Registry, switches: Switches): ToolInForce[] => {
  try {
    const { names } = registry;
    return names.flatMap((name) => {
      const guarded = registry.get(name);
      return guarded === undefined ? [] : [toolInForce(guarded, switches)];
    });
  } catch {
    // A provider whose list cannot be read takes nobody's trace away.
    return [];
  }
};

/** What of a layer is the same for all of its tools. */
export interface LayerTerms {
  readonly retryBudget: Required<RetryBudgetOptions> | undefined;
  readonly host: readonly HostPart[];
}

/** What a trace begins with, for one who begins to listen: the policies of the tools that are there now. */
export const layerStarted = (registry: Registry, switches: Switches, { retryBudget, host }: LayerTerms): Unstamped => ({
  ...STAMP,
  source: 'layer',
  type: 'layer_started',
  version: VERSION,
  tools: toolsInForce(registry, switches),
  ...(retryBudget === undefined ? {} : { retryBudget: { ...retryBudget } }),
  host: [...host],
});
