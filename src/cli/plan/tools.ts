import type { FaultsEntry, PlanFile, ToolEntry } from '../../contract/formats/plan-file.ts';
import type { ToolPolicy } from '../../contract/policy.ts';
import type { ToolProvider } from '../../contract/provider.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { breakerOf, camelKeys, retryOf, settlingOf } from '../../policy/entry.ts';
import { withFaults } from '../../testing/faults.ts';
import { choices } from '../show/text.ts';

/** The policy that an entry of a plan file gives its tool. */
export const policyOf = ({
  id: _,
  server: _server,
  tool: _tool,
  faults: _faults,
  retry_policy,
  circuit_breaker,
  verify,
  compensate,
  ...entry
}: ToolEntry): ToolPolicy => ({
  ...camelKeys(entry),
  ...(retry_policy === undefined ? {} : { retry: retryOf(retry_policy) }),
  ...settlingOf({ ...(verify === undefined ? {} : { verify }), ...(compensate === undefined ? {} : { compensate }) }),
  ...(circuit_breaker === undefined ? {} : { breaker: circuit_breaker === false ? false : breakerOf(circuit_breaker) }),
});

const faulty = (tool: AnyTool, faults: FaultsEntry | undefined, runtime: Runtime): AnyTool =>
  faults === undefined ? tool : withFaults(tool, camelKeys(faults), runtime);

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
  const queue: { readonly id: string; readonly at: Path }[] = turn.nodes.map(({ tool }, index) => ({
    id: tool,
    at: ['turn', 'nodes', index, 'tool'],
  }));
  turn.nodes.forEach(({ compensate }, index) => {
    if (compensate !== undefined && compensate !== false)
      queue.push({ id: compensate.tool, at: ['turn', 'nodes', index, 'compensate', 'tool'] });
  });
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
    const { verify, compensate = false } = entry;
    if (verify !== undefined) queue.push({ id: verify.tool, at: ['tools', index, 'verify', 'tool'] });
    if (compensate !== false) queue.push({ id: compensate.tool, at: ['tools', index, 'compensate', 'tool'] });
    (entry.alternatives ?? []).forEach((alternative, place) =>
      queue.push({ id: alternative, at: ['tools', index, 'alternatives', place] }),
    );
  }
  return [...used.values()];
}

/**
 * Joins the tools of a plan with those that its servers have, and puts policies and faults on them.
 * What a server does not have is a problem.
 */
export function bindTools(
  used: readonly UsedTool[],
  providers: ReadonlyMap<string, ToolProvider>,
  runtime: Runtime,
): { readonly tools: AnyTool[]; readonly problems: Problem[] } {
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
