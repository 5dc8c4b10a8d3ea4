import type { NeedsApproval } from '../contract/gate/approval.ts';
import type {
  BreakerOptions,
  ClassificationOverrides,
  DedupePolicy,
  Effects,
  Mode,
  ProfileName,
  RetryPolicy,
  ToolPolicy,
} from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { AnyTool } from '../contract/tool.ts';
import { retryPolicy } from '../policy/retry/backoff.ts';
import { breakerSettings } from '../policy/breaker/settings.ts';
import { given } from '../policy/check.ts';
import { ATTEMPT_TIMEOUT_MS, DEDUPE_DEFAULTS, RETRY_PROFILES, breakerProfile } from '../policy/profile.ts';
import { presumedOf } from './foreign.ts';
import { compensationOf, isUndone, type Undoing } from './settle/compensation.ts';
import { about, approvalRuleOf, checkPolicy } from './tool-policy.ts';
import { isVerifiable, settleWarning, verificationOf, type Verification } from './settle/verification.ts';

/** A tool with every part of its policy decided. */
export interface GuardedTool {
  readonly tool: AnyTool;
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number | undefined;
  readonly retry: RetryPolicy;
  readonly breaker: BreakerOptions | undefined;
  /** The name of the breaker that it shares, its own by default. */
  readonly breakerName: string;
  /** Those that are there at the moment: a provider's can go. */
  readonly alternatives: readonly string[];
  readonly effects: Effects;
  readonly classification: ClassificationOverrides;
  readonly enforcesKey: boolean;
  readonly safetyCritical: boolean;
  /** What says that a person has to approve its calls; `undefined` where nobody has to. */
  readonly needsApproval: NeedsApproval | undefined;
  readonly cost: number;
  readonly dedupe: Required<DedupePolicy>;
  readonly mode: Mode | undefined;
  /** A model is shown what the tool itself says of a failure. */
  readonly showsErrors: boolean;
  /** How it is found out whether an uncertain call took effect, where that can be. */
  readonly verify: Verification | undefined;
  /** How what a call did is undone; `false` where there is nothing to undo, `undefined` where it cannot be. */
  readonly compensate: Undoing | false | undefined;
  /** The tool with nothing around it, for calls that go straight through. */
  readonly bare: () => GuardedTool;
}

export interface Registry {
  get(toolName: string): GuardedTool | undefined;
  readonly names: readonly string[];
  /** The guarded form of a tool that a plan brought along, registered or not. */
  of(tool: AnyTool): GuardedTool;
  /** What was noticed while tools were registered, a sentence each. */
  readonly warnings: readonly string[];
}

/** What decides the policies of a layer's tools beside themselves. */
export interface Surroundings {
  readonly profile: ProfileName;
  readonly defaults: ToolPolicy;
  readonly breakerKey: ((tool: AnyTool) => string) | undefined;
  /** Somebody can be asked to approve calls. */
  readonly hasApprovals?: boolean;
}

/**
 * Half-open must outlast a probe that uses all of its own time, or a slow and healthy tool would never close its
 * breaker.
 */
const outlasting = (breaker: BreakerOptions, timeoutMs: number): BreakerOptions => {
  const { halfOpenTimeoutMs } = breakerSettings(breaker);
  return breaker.halfOpenTimeoutMs === undefined && halfOpenTimeoutMs <= timeoutMs
    ? { ...breaker, halfOpenTimeoutMs: timeoutMs + 1_000 }
    : breaker;
};

/** One attempt, however long it takes, and whatever it gives. */
const bareOf = (guarded: GuardedTool): GuardedTool => {
  const { output: _, ...tool } = guarded.tool;
  return {
    ...guarded,
    // Called as a method of the tool itself, as anyone would.
    tool: { ...tool, execute: (input, context) => guarded.tool.execute(input, context) },
    timeoutMs: Infinity,
    idleTimeoutMs: undefined,
    retry: { ...guarded.retry, maxAttempts: 1 },
    breaker: undefined,
    alternatives: [],
    classification: {},
    verify: undefined,
  };
};

/** The same tool under the same policy, with another `execute`: for one call. */
export function executedBy(guarded: GuardedTool, execute: AnyTool['execute']): GuardedTool {
  const own: GuardedTool = { ...guarded, tool: { ...guarded.tool, execute }, bare: () => bareOf(own) };
  return own;
}

/**
 * Only what acts can be in doubt, or undone: a tool with a `verify` or `compensate` that says nothing else of itself is
 * `mutating`.
 */
const effectsOf = (tool: AnyTool, own: ToolPolicy): ToolPolicy => {
  if (!isVerifiable(tool, own) && !isUndone(tool, own)) return {};
  if (own.effects === 'read')
    throw new RangeError(
      "effects is 'read' beside a verify or compensate: what only reads is never in doubt; remove one of them",
    );
  return { effects: 'mutating' };
};

const guard = (
  tool: AnyTool,
  { profile, defaults, breakerKey }: Surroundings,
  isThere: (toolName: string) => boolean,
): GuardedTool =>
  about(tool.name, () => {
    if (typeof tool.execute !== 'function')
      throw new RangeError(`execute must be a function, not ${typeof tool.execute}`);
    const own = given(tool.policy);
    checkPolicy(own);
    const policy = { ...presumedOf(tool), ...given(defaults), ...own, ...effectsOf(tool, own) };
    const { alternatives = [] } = policy;
    const { timeoutMs = ATTEMPT_TIMEOUT_MS, idleTimeoutMs } = policy;
    const shared = defaults.breaker === false ? {} : given(defaults.breaker);
    const breaker =
      policy.breaker === false
        ? undefined
        : outlasting({ ...breakerProfile(profile, policy.effects), ...shared, ...given(policy.breaker) }, timeoutMs);
    const breakerName = breakerKey === undefined ? tool.name : breakerKey(tool);
    if (typeof breakerName !== 'string' || breakerName === '')
      throw new RangeError(`breakerKey must give a string that is not empty, not ${String(breakerName)}`);
    const volatile = [
      ...DEDUPE_DEFAULTS.volatile,
      ...(defaults.dedupe?.volatile ?? []),
      ...(own.dedupe?.volatile ?? []),
    ];
    const dedupe = { ...DEDUPE_DEFAULTS, ...given(defaults.dedupe), ...given(own.dedupe), volatile };
    // What all of a tenant share must say of itself that it only reads.
    if (dedupe.scope === 'global' && policy.effects !== 'read')
      throw new RangeError(
        "dedupe.scope 'global' is for tools that declare effects: 'read'; others keep the scope 'session'",
      );
    const guarded: GuardedTool = {
      tool,
      timeoutMs,
      idleTimeoutMs,
      retry: retryPolicy({ ...given(defaults.retry), ...given(own.retry) }, RETRY_PROFILES[profile]),
      breaker,
      breakerName,
      get alternatives() {
        return alternatives.length === 0 ? alternatives : alternatives.filter(isThere);
      },
      effects: policy.effects ?? 'read',
      classification: { ...defaults.classification, ...own.classification },
      enforcesKey: policy.enforcesKey ?? false,
      safetyCritical: policy.safetyCritical ?? false,
      needsApproval: approvalRuleOf('a tool', tool.needsApproval, policy.needsApproval),
      cost: policy.cost ?? 0,
      dedupe,
      mode: policy.mode,
      showsErrors: policy.show === 'errors',
      verify: verificationOf(tool, own.verify, defaults.verify),
      compensate: compensationOf(tool, own.compensate),
      bare: () => (bare ??= bareOf(guarded)),
    };
    let bare: GuardedTool | undefined;
    return guarded;
  });

const timeoutWarnings = ({ tool, timeoutMs, retry }: GuardedTool): string[] =>
  retry.maxAttempts > 1 && timeoutMs >= retry.maxTotalTimeMs
    ? [
        `tool ${tool.name}: a timeout is never retried, since timeoutMs (${timeoutMs}) is not below retry.maxTotalTimeMs (${retry.maxTotalTimeMs})`,
      ]
    : [];

/**
 * A tool that says nothing of itself counts as one that only reads, which is not so of every tool that says nothing
 * (R-2.5).
 */
const effectsWarnings = ({ tool }: GuardedTool, defaults: ToolPolicy): string[] => {
  if (
    (tool.policy?.effects ?? defaults.effects) !== undefined ||
    isVerifiable(tool, tool.policy ?? {}) ||
    isUndone(tool, tool.policy ?? {})
  )
    return [];
  const counts = 'it declares no effects and counts as read';
  const so = 'so it is run again after a failure even if it may have taken effect';
  return [`tool ${tool.name}: ${counts}, ${so}; give its policy effects: 'read' or effects: 'mutating'`];
};

/** What `warnings` says of a tool, a sentence each. */
const warningsOf = (guarded: GuardedTool, { defaults, hasApprovals = false }: Surroundings): string[] => [
  ...(guarded.needsApproval === undefined || hasApprovals
    ? []
    : [`tool ${guarded.tool.name}: its calls need approval, and are all refused; give createSpillway approvals`]),
  ...timeoutWarnings(guarded),
  ...effectsWarnings(guarded, defaults),
  ...settleWarning(guarded.tool, guarded.verify, guarded.enforcesKey),
];

/** A provider's tools by name, for the list that it has now: another list is another object. */
const listIndex = (): ((tools: readonly AnyTool[]) => ReadonlyMap<string, AnyTool>) => {
  const known = new WeakMap<readonly AnyTool[], ReadonlyMap<string, AnyTool>>();
  return (tools) => {
    const found = known.get(tools);
    if (found !== undefined) return found;
    const named = new Map(tools.map((tool) => [tool.name, tool]));
    known.set(tools, named);
    return named;
  };
};

/**
 * The tools of a layer, each guarded as its policy, the layer's defaults and the profile say.
 *
 * @param providers whose lists may change: a tool is looked up in the list of the moment
 * @throws RangeError for a name used twice, an alternative that does not exist, or an option out of its range
 */
export function createRegistry(
  tools: readonly AnyTool[],
  around: Surroundings,
  providers: readonly ToolProvider[] = [],
): Registry {
  const surroundings = { ...around, defaults: given(around.defaults) };
  checkPolicy(surroundings.defaults);
  const own = new Map<string, GuardedTool>();
  const others = new WeakMap<AnyTool, GuardedTool>();
  const indexOf = listIndex();
  const of = (tool: AnyTool): GuardedTool => {
    const registered = own.get(tool.name);
    const known = registered?.tool === tool ? registered : others.get(tool);
    if (known !== undefined) return known;
    const guarded = guard(tool, surroundings, (toolName) => get(toolName) !== undefined);
    others.set(tool, guarded);
    return guarded;
  };
  const get = (toolName: string): GuardedTool | undefined => {
    const registered = own.get(toolName);
    if (registered !== undefined) return registered;
    for (const provider of providers) {
      const tool = indexOf(provider.tools).get(toolName);
      if (tool === undefined) continue;
      try {
        return of(tool);
      } catch {
        // Listed later, and such as would not have been taken at first: a call may not throw for it.
        return undefined;
      }
    }
    return undefined;
  };
  const first = new Map<string, GuardedTool>();
  const register = (tool: AnyTool): GuardedTool => {
    if (typeof tool?.name !== 'string' || tool.name === '')
      throw new RangeError('each tool must be an object with a name and an execute function; tool() makes one');
    if (first.has(tool.name))
      throw new RangeError(`tool ${tool.name} is registered twice; give one of them another name`);
    const guarded = of(tool);
    first.set(tool.name, guarded);
    return guarded;
  };
  for (const guarded of tools.map(register)) own.set(guarded.tool.name, guarded);
  for (const provider of providers) provider.tools.forEach(register);
  for (const { tool } of first.values()) {
    for (const name of tool.policy?.alternatives ?? surroundings.defaults.alternatives ?? []) {
      if (!first.has(name)) throw new RangeError(`tool ${tool.name}: its alternative ${name} is not a registered tool`);
      if (name === tool.name) throw new RangeError(`tool ${tool.name} cannot be its own alternative`);
    }
  }
  return {
    warnings: [...first.values()].flatMap((guarded) => warningsOf(guarded, surroundings)),
    get,
    get names() {
      return [...new Set([...own.keys(), ...providers.flatMap((provider) => provider.tools.map(({ name }) => name))])];
    },
    of,
  };
}
