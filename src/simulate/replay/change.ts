import type { PolicyFile } from '../../contract/formats/policy-file.ts';
import type { PolicyInForce, ToolInForce } from '../../contract/event.ts';
import type { ToolPolicy } from '../../contract/policy.ts';
import { choices } from '../../inspect/choices.ts';
import { retryBudgetOf } from '../../policy/retry/budget.ts';
import { createRegistry } from '../../layer/registry.ts';
import { SimulationInputError, budgetOf, toolPolicyOf } from '../policy-file.ts';
import { policyOf, type LayerPolicies } from './policies.ts';

/** What a value for one option of a policy looks like. */
const EXAMPLES: Readonly<Record<string, string>> = {
  retry: 'retry.maxAttempts=2',
  breaker: 'breaker.cooldownMs=1000',
};

const OPTIONS = [
  'timeoutMs',
  'idleTimeoutMs',
  'retry',
  'breaker',
  'alternatives',
  'effects',
  'classification',
  'enforcesKey',
  'safetyCritical',
  'cost',
  'dedupe',
  'mode',
];

/** A tool under a changed policy: what the change leaves out stays. */
const changedTool = (tool: ToolInForce, { retry, breaker, effects, mode, ...rest }: ToolPolicy): ToolInForce => {
  const { breaker: before, ...policy } = tool.policy;
  const after = breaker === false ? undefined : breaker === undefined ? before : { ...before, ...breaker };
  // Only what was given: the rest of a changed policy is the recorded one.
  const changed: PolicyInForce = {
    ...policy,
    ...(rest as Partial<PolicyInForce>),
    retry: { ...policy.retry, ...retry },
  };
  return {
    ...tool,
    ...(effects === undefined ? {} : { effects }),
    ...(mode === undefined ? {} : { mode }),
    policy: after === undefined ? changed : { ...changed, breaker: after },
  };
};

/** Whether a layer could have these policies; says what is wrong in the layer's own words. */
const checked = (policies: LayerPolicies): LayerPolicies => {
  try {
    const tools = policies.tools.map((tool) => ({ name: tool.name, policy: policyOf(tool), execute: () => undefined }));
    createRegistry(tools, { profile: 'interactive', defaults: {}, breakerKey: undefined });
    return policies;
  } catch (error) {
    if (error instanceof RangeError) throw new SimulationInputError(error.message, { cause: error });
    throw error;
  }
};

const named = ({ tools }: LayerPolicies): string[] => tools.map(({ name }) => name);

/**
 * The policies that a file makes of others. What it leaves out stays as it was.
 * @throws SimulationInputError for a tool that is not there, or an option out of its range
 */
export function withPolicyFile(policies: LayerPolicies, file: PolicyFile): LayerPolicies {
  const { retry_budget, defaults, tools = {} } = file;
  const unknown = Object.keys(tools).find((name) => !policies.tools.some((tool) => tool.name === name));
  if (unknown !== undefined)
    throw new SimulationInputError(`there is no tool ${JSON.stringify(unknown)}; ${choices(unknown, named(policies))}`);
  const budget = retry_budget === undefined ? policies.retryBudget : asBudget(budgetOf(retry_budget));
  return checked({
    retryBudget: budget,
    tools: policies.tools.map((tool) => {
      const own = tools[tool.name];
      const shared = defaults === undefined ? tool : changedTool(tool, toolPolicyOf(defaults));
      return own === undefined ? shared : changedTool(shared, toolPolicyOf(own));
    }),
  });
}

const asBudget = (options: ReturnType<typeof budgetOf>): LayerPolicies['retryBudget'] =>
  options === false ? undefined : retryBudgetOf(options);

const valueOf = (text: string): unknown => {
  if (text === 'off') return Infinity;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

/** `retry.maxAttempts` and a value as an object. */
const nested = (path: readonly string[], value: unknown): Record<string, unknown> => {
  const [first = '', ...rest] = path;
  return { [first]: rest.length === 0 ? value : nested(rest, value) };
};

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Options that hold options: spread into a policy, anything else would change nothing, and say so to nobody. */
const checkNested = (option: string, value: unknown): void => {
  const fits = isObject(value) || (option === 'breaker' && value === false);
  if (['retry', 'breaker', 'classification', 'dedupe'].includes(option) && !fits)
    throw new SimulationInputError(
      `${option} takes ${option === 'breaker' ? 'off, or ' : ''}one of its options, such as ` +
        (EXAMPLES[option] ?? `${option}.NAME=VALUE`),
    );
};

/** What a layer's own checks leave to its types: a value that was read from text has none. */
const checkKind = (option: string, value: unknown): void => {
  if (['enforcesKey', 'safetyCritical'].includes(option) && typeof value !== 'boolean')
    throw new SimulationInputError(`${option} takes true or false, not ${JSON.stringify(value)}`);
  const isList = Array.isArray(value) && value.every((name) => typeof name === 'string');
  if (option === 'alternatives' && !isList)
    throw new SimulationInputError(
      `alternatives takes a list of tools, such as alternatives=["backup"], not ${JSON.stringify(value)}`,
    );
};

const setBudget = (policies: LayerPolicies, key: string | undefined, value: unknown): LayerPolicies => {
  if (key === undefined && (value === Infinity || value === false)) return { ...policies, retryBudget: undefined };
  if (key === undefined)
    throw new SimulationInputError('retryBudget takes off, or one of its options: retryBudget.ratio=0.1');
  try {
    return { ...policies, retryBudget: retryBudgetOf({ ...policies.retryBudget, [key]: value }) };
  } catch (error) {
    throw new SimulationInputError(error instanceof Error ? error.message : String(error), { cause: error });
  }
};

/** A tool's name and what follows it: names can hold dots, and the longest that there is counts. */
const targetOf = (policies: LayerPolicies, path: string): readonly [ReadonlySet<string>, string] | undefined => {
  if (path.startsWith('*.')) return [new Set(policies.tools.map(({ name }) => name)), path.slice(2)];
  const names = policies.tools.map(({ name }) => name).filter((name) => path.startsWith(`${name}.`));
  const longest = names.toSorted((a, b) => b.length - a.length)[0];
  return longest === undefined ? undefined : [new Set([longest]), path.slice(longest.length + 1)];
};

/** Whether the later of two paths sets what the earlier one has set: itself, a part of it, or the whole. */
const undoes = (later: string, earlier: string): boolean => {
  const [a, b] = [later, earlier].map((path) => `${path}.`) as [string, string];
  // All tools after one of them; one after all is an exception.
  return a.startsWith(b) || b.startsWith(a) || (a.startsWith('*.') && b.includes(a.slice(1)));
};

const pathOf = (setting: string): string => setting.slice(0, Math.max(0, setting.indexOf('=')));

/**
 * The policies with options set: `pay.retry.maxAttempts=2`, `*.timeoutMs=500` for all tools, `retryBudget=off`.
 * @throws SimulationInputError for what cannot be set so, and for what another setting sets as well
 */
export function withSettings(policies: LayerPolicies, settings: readonly string[]): LayerPolicies {
  for (const [index, setting] of settings.entries()) {
    const other = settings.slice(0, index).find((earlier) => undoes(pathOf(setting), pathOf(earlier)));
    if (other !== undefined)
      throw new SimulationInputError(
        `${JSON.stringify(other)} and ${JSON.stringify(setting)} set the same; leave one of them out`,
      );
  }
  return settings.reduce(withSetting, policies);
}

const withSetting = (policies: LayerPolicies, setting: string): LayerPolicies => {
  const split = setting.indexOf('=');
  if (split < 1) throw new SimulationInputError(`${JSON.stringify(setting)} sets nothing; write TOOL.OPTION=VALUE`);
  const path = setting.slice(0, split);
  const value = valueOf(setting.slice(split + 1));
  if (path === 'retryBudget' || path.startsWith('retryBudget.')) {
    const [, ...keys] = path.split('.');
    return setBudget(policies, keys.length === 0 ? undefined : keys.join('.'), value);
  }
  const [tools, option] = targetOf(policies, path) ?? [];
  if (tools === undefined || option === undefined) {
    const there = choices(path.split('.')[0] ?? '', [...named(policies), 'retryBudget']);
    throw new SimulationInputError(`${JSON.stringify(path)} is of no tool; ${there}`);
  }
  const [first = ''] = option.split('.');
  if (!OPTIONS.includes(first))
    throw new SimulationInputError(`there is no option ${JSON.stringify(first)}; ${choices(first, OPTIONS)}`);
  const off = option === 'breaker' && value === Infinity ? false : value;
  checkNested(option, off);
  checkKind(option, off);
  // Checked as a whole below, by what checks a layer's own tools.
  const change = nested(option.split('.'), off) as ToolPolicy;
  return checked({
    ...policies,
    tools: policies.tools.map((tool) => (tools.has(tool.name) ? changedTool(tool, change) : tool)),
  });
};
