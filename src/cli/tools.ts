import type { BreakerEntry, FaultsEntry, PlanFile, RetryEntry, ToolEntry } from '../contract/plan-file.ts';
import type { BreakerOptions, RetryPolicy, ToolPolicy } from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { AnyTool } from '../contract/tool.ts';
import { withFaults } from '../providers/faults.ts';
import type { Path } from './references.ts';
import { choices } from './text.ts';
import type { Problem } from './yaml.ts';

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
type CamelKeys<T> = { [K in keyof T as Camel<K & string>]: T[K] };

const camelKeys = <T extends object>(entry: T): CamelKeys<T> =>
  // Key by key what the type says.
  Object.fromEntries(Object.entries(entry).map(([key, value]) => [key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()), value as unknown])) as CamelKeys<T>;

const retryOf = ({ strategy, ...entry }: RetryEntry): Partial<RetryPolicy> => ({
  ...camelKeys(entry),
  // The seeds' word for it.
  ...(strategy === undefined ? {} : { strategy: strategy === 'exponential_backoff' ? 'exponential' : strategy }),
});

const orInfinity = (value: number | 'off'): number => (value === 'off' ? Infinity : value);

/** The options of a breaker that a plan file spells in the seeds' words. */
export const breakerOf = ({ timeout_ms, failure_threshold, failure_rate, ...entry }: BreakerEntry): BreakerOptions => ({
  ...camelKeys(entry),
  ...(timeout_ms === undefined ? {} : { cooldownMs: timeout_ms }),
  ...(failure_threshold === undefined ? {} : { failureThreshold: orInfinity(failure_threshold) }),
  ...(failure_rate === undefined ? {} : { failureRate: orInfinity(failure_rate) }),
});

const policyOf = ({ id: _, server: _server, tool: _tool, faults: _faults, retry_policy, circuit_breaker, ...entry }: ToolEntry): ToolPolicy => ({
  ...camelKeys(entry),
  ...(retry_policy === undefined ? {} : { retry: retryOf(retry_policy) }),
  ...(circuit_breaker === undefined ? {} : { breaker: circuit_breaker === false ? false : breakerOf(circuit_breaker) }),
});

const faulty = (tool: AnyTool, faults: FaultsEntry | undefined, runtime: Runtime): AnyTool => (faults === undefined ? tool : withFaults(tool, camelKeys(faults), runtime));

/** A tool that a plan uses, at a server of it. */
export interface UsedTool {
  readonly id: string;
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  readonly entry?: ToolEntry;
  /** Where the plan names it. */
  readonly at: Path;
}

/** The tools that the nodes of a plan use, alternatives included, each once. */
export function usedTools({ tools = [], turn }: PlanFile): UsedTool[] {
  const entries = new Map(tools.map((entry, index) => [entry.id, { entry, index }]));
  const used = new Map<string, UsedTool>();
  const queue: { readonly id: string; readonly at: Path }[] = turn.nodes.map(({ tool }, index) => ({ id: tool, at: ['turn', 'nodes', index, 'tool'] }));
  // Grows while it is walked: alternatives of alternatives.
  for (const { id, at } of queue) {
    if (used.has(id)) continue;
    const known = entries.get(id);
    if (known === undefined) {
      const [server = '', ...rest] = id.split('.');
      used.set(id, { id, server, tool: rest.join('.'), at });
      continue;
    }
    const { entry, index } = known;
    used.set(id, { id, server: entry.server, tool: entry.tool, entry, at: ['tools', index, 'tool'] });
    (entry.alternatives ?? []).forEach((alternative, place) => queue.push({ id: alternative, at: ['tools', index, 'alternatives', place] }));
  }
  return [...used.values()];
}

/**
 * Joins the tools of a plan with those that its servers have, and puts policies and faults on them.
 * What a server does not have is a problem.
 */
export function bindTools(used: readonly UsedTool[], providers: ReadonlyMap<string, ToolProvider>, runtime: Runtime): { readonly tools: AnyTool[]; readonly problems: Problem[] } {
  const problems: Problem[] = [];
  const tools = used.flatMap(({ id, server, tool, entry, at }) => {
    const offered = providers.get(server)?.tools ?? [];
    const found = offered.find(({ name }) => name === `${server}.${tool}`);
    if (found === undefined) {
      const names = offered.map(({ name }) => name.slice(server.length + 1));
      problems.push({ message: `the server ${server} has no tool ${tool}; ${choices(tool, names)}`, at });
      return [];
    }
    const policy = { ...found.policy, ...(entry === undefined ? {} : policyOf(entry)) };
    return [faulty({ ...found, name: id, policy }, entry?.faults, runtime)];
  });
  return { tools, problems };
}
