import type { BreakerOptions, ClassificationOverrides, Effects, ProfileName, RetryPolicy, ToolPolicy } from '../contract/policy.ts';
import type { AnyTool } from '../contract/tool.ts';
import { retryPolicy } from '../policy/backoff.ts';
import { breakerSettings } from '../policy/breaker-settings.ts';
import { checkKeys, checkNumber, number, positiveDuration } from '../policy/check.ts';
import { ATTEMPT_TIMEOUT_MS, RETRY_PROFILES, breakerProfile } from '../policy/profile.ts';

/** A tool with every part of its policy decided. */
export interface GuardedTool {
  readonly tool: AnyTool;
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  readonly breaker: BreakerOptions | undefined;
  readonly alternatives: readonly string[];
  readonly effects: Effects;
  readonly classification: ClassificationOverrides;
  readonly enforcesKey: boolean;
  readonly safetyCritical: boolean;
  readonly cost: number;
}

export interface Registry {
  get(toolName: string): GuardedTool | undefined;
  /** The guarded form of a tool that a plan brought along, registered or not. */
  of(tool: AnyTool): GuardedTool;
  /** What was noticed while tools were registered, a sentence each. */
  readonly warnings: readonly string[];
}

const POLICY_KEYS = ['timeoutMs', 'idleTimeoutMs', 'retry', 'breaker', 'alternatives', 'effects', 'classification', 'enforcesKey', 'safetyCritical', 'cost'];

/** Runs a check, and says whose options it was about when it fails. */
const about = <T>(toolName: string, check: () => T): T => {
  try {
    return check();
  } catch (error) {
    throw error instanceof RangeError ? new RangeError(`tool ${toolName}: ${error.message}`) : error;
  }
};

const guard = (tool: AnyTool, profile: ProfileName, defaults: ToolPolicy): GuardedTool =>
  about(tool.name, () => {
    const own = tool.policy ?? {};
    checkKeys('a tool policy', own, POLICY_KEYS);
    const policy = { ...defaults, ...own };
    const { timeoutMs = ATTEMPT_TIMEOUT_MS, idleTimeoutMs } = policy;
    checkNumber('timeoutMs', timeoutMs, positiveDuration);
    if (policy.cost !== undefined) checkNumber('cost', policy.cost, number(0, Number.MAX_VALUE));
    if (idleTimeoutMs !== undefined) checkNumber('idleTimeoutMs', idleTimeoutMs, positiveDuration);
    const breaker = policy.breaker === false ? undefined : { ...breakerProfile(profile, policy.effects), ...(defaults.breaker === false ? {} : defaults.breaker), ...policy.breaker };
    if (breaker !== undefined) breakerSettings(breaker);
    return {
      tool,
      timeoutMs,
      idleTimeoutMs,
      retry: retryPolicy({ ...defaults.retry, ...own.retry }, RETRY_PROFILES[profile]),
      breaker,
      alternatives: policy.alternatives ?? [],
      effects: policy.effects ?? 'read',
      classification: { ...defaults.classification, ...own.classification },
      enforcesKey: policy.enforcesKey ?? false,
      safetyCritical: policy.safetyCritical ?? false,
      cost: policy.cost ?? 0,
    };
  });

const warningsOf = ({ tool, timeoutMs, retry }: GuardedTool): string[] =>
  retry.maxAttempts > 1 && timeoutMs >= retry.maxTotalTimeMs
    ? [`tool ${tool.name}: a timeout is never retried, since timeoutMs (${timeoutMs}) is not below retry.maxTotalTimeMs (${retry.maxTotalTimeMs})`]
    : [];

/**
 * The tools of a layer, each guarded as its policy, the layer's defaults and the profile say.
 * @throws RangeError for a name used twice, an alternative that does not exist, or an option out of its range
 */
export function createRegistry(tools: readonly AnyTool[], profile: ProfileName, defaults: ToolPolicy): Registry {
  const byName = new Map<string, GuardedTool>();
  const strangers = new WeakMap<AnyTool, GuardedTool>();
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new RangeError(`tool ${tool.name} is registered twice; give one of them another name`);
    byName.set(tool.name, guard(tool, profile, defaults));
  }
  for (const { tool, alternatives } of byName.values()) {
    for (const name of alternatives) {
      if (!byName.has(name)) throw new RangeError(`tool ${tool.name}: its alternative ${name} is not a registered tool`);
      if (name === tool.name) throw new RangeError(`tool ${tool.name} cannot be its own alternative`);
    }
  }
  return {
    warnings: [...byName.values()].flatMap(warningsOf),
    get: (toolName) => byName.get(toolName),
    of: (tool) => {
      const registered = byName.get(tool.name);
      const known = registered?.tool === tool ? registered : strangers.get(tool);
      if (known !== undefined) return known;
      const guarded = guard(tool, profile, defaults);
      strangers.set(tool, guarded);
      return guarded;
    },
  };
}
