import type { NodeEntry, PlanFile, ToolEntry } from '../../contract/formats/plan-file.ts';
import type { BreakerPolicyEntry } from '../../contract/formats/policy-entry.ts';
import type { Plan, PlanNode } from '../../contract/turn.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { breakerSettings } from '../../policy/breaker/settings.ts';
import { compensationOf } from '../../layer/settle/compensation.ts';
import { verificationOf } from '../../layer/settle/verification.ts';
import { breakerOf, settlingOf } from '../../policy/entry.ts';
import { PlanError, plan } from '../../turn/plan.ts';
import { madeOf } from '../../fleet/from-results.ts';
import { inputTemplate, type InputTemplate } from './references.ts';
import { choices } from '../show/text.ts';

/** What options of a breaker must be to each other, in the file's spelling. */
const breakerProblem = (entry: BreakerPolicyEntry): string | undefined => {
  try {
    breakerSettings(breakerOf(entry));
    return undefined;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return error.message.replaceAll(/[a-z]+[A-Z]\w*/g, (word) =>
      word.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    );
  }
};

const problemIn = (check: () => unknown): string | undefined => {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return error.message;
  }
};

/** Paths and references of a verification and an undoing that cannot be read. */
const settlingProblems = (entry: ToolEntry): ReadonlyArray<readonly ['verify' | 'compensate', string]> => {
  const { verify, compensate } = settlingOf(entry);
  const tool = { name: entry.id, execute: () => undefined };
  const looked = problemIn(() => verificationOf(tool, verify, undefined));
  const undone = problemIn(() => compensationOf(tool, compensate));
  return [
    ...(looked === undefined ? [] : [['verify', looked] as const]),
    ...(undone === undefined ? [] : [['compensate', undone] as const]),
  ];
};

type CheckTool = (id: string, at: Path) => void;

const checkNodeTools = (nodes: readonly NodeEntry[], checkTool: CheckTool): void =>
  nodes.forEach(({ tool, compensate = false }, index) => {
    checkTool(tool, ['turn', 'nodes', index, 'tool']);
    if (compensate !== false) checkTool(compensate.tool, ['turn', 'nodes', index, 'compensate', 'tool']);
  });

const settlingOfTool = (entry: ToolEntry, at: Path, checkTool: CheckTool): Problem[] => {
  const { verify, compensate = false } = entry;
  if (verify !== undefined) checkTool(verify.tool, [...at, 'verify', 'tool']);
  if (compensate !== false) checkTool(compensate.tool, [...at, 'compensate', 'tool']);
  return settlingProblems(entry).map(([key, message]) => ({ message, at: [...at, key] }));
};

/** What the schema cannot say: names that must exist, and be there once. */
const checkNames = ({ servers = {}, tools = [], turn }: PlanFile): Problem[] => {
  const problems: Problem[] = [];
  const serverNames = Object.keys(servers);
  const toolIds = new Set(tools.map(({ id }) => id));
  const checkTool = (id: string, at: Path): void => {
    if (toolIds.has(id)) return;
    const [server, ...rest] = id.split('.');
    if (rest.length > 0 && server !== undefined && Object.hasOwn(servers, server)) return;
    const where = serverNames.join(', ') || 'this file: it has none';
    problems.push({
      message: `there is no tool ${id}; ${choices(id, [...toolIds])} (or <server>.<tool>, with a server of ${where})`,
      at,
    });
  };
  const firstAt = new Map<string, number>();
  tools.forEach(({ id, server, alternatives = [], circuit_breaker = false }, index) => {
    const breaker = circuit_breaker === false ? undefined : breakerProblem(circuit_breaker);
    if (breaker !== undefined) problems.push({ message: breaker, at: ['tools', index, 'circuit_breaker'] });
    const first = firstAt.get(id);
    if (first !== undefined)
      problems.push({
        message: `tools[${first}] has the id ${id} already; give one of them another`,
        at: ['tools', index, 'id'],
      });
    else firstAt.set(id, index);
    if (!Object.hasOwn(servers, server))
      problems.push({
        message: `there is no server ${server}; ${choices(server, serverNames)}`,
        at: ['tools', index, 'server'],
      });
    alternatives.forEach((alternative, place) => {
      const at = ['tools', index, 'alternatives', place];
      if (alternative === id) problems.push({ message: `${id} cannot be its own alternative; name another tool`, at });
      else checkTool(alternative, at);
    });
  });
  tools.forEach((entry, index) => problems.push(...settlingOfTool(entry, ['tools', index], checkTool)));
  checkNodeTools(turn.nodes, checkTool);
  return problems;
};

const checkReferences = (nodes: readonly NodeEntry[], templates: readonly InputTemplate[]): Problem[] => {
  const ids = new Set(nodes.map(({ id }) => id));
  return nodes.flatMap(({ id, needs = [] }, index) => {
    const input: Path = ['turn', 'nodes', index, 'input'];
    const { references, problems } = templates[index] ?? inputTemplate(undefined);
    const unmet = references.filter(({ reference }) => !needs.includes(reference.node));
    return [
      ...problems.map(({ message, at }) => ({ message, at: [...input, ...at] })),
      ...unmet.map(({ reference: { node, text }, at }) => {
        const remedy =
          node === id
            ? 'a node cannot refer to itself'
            : ids.has(node)
              ? `add ${node} to the needs of ${id}`
              : `there is no node ${node}; ${choices(node, [...ids])} Write $\${ for a plain \${`;
        return { message: `${text} refers to what ${id} does not need: ${remedy}`, at: [...input, ...at] };
      }),
    ];
  });
};

const planNode = (
  { id, tool, needs, optional, ...entry }: NodeEntry,
  { references, fill, data }: InputTemplate,
): PlanNode => ({
  id,
  tool,
  // Without an input, a tool is called with no arguments, which over MCP is an empty mapping.
  input: references.length === 0 ? (fill({}) ?? {}) : madeOf((values) => fill(values), data),
  ...(needs === undefined ? {} : { needs }),
  ...(optional === undefined ? {} : { optional }),
  ...('default' in entry ? { default: entry.default } : {}),
  ...(entry.compensate === undefined ? {} : { compensate: entry.compensate }),
  ...(entry.needs_approval === undefined ? {} : { needsApproval: entry.needs_approval }),
});

/** Where a plan's rule was broken: at the node, and there at what the rule is about. */
const placeOf = ({ rule, nodes: [first, second] }: PlanError, nodes: readonly NodeEntry[]): Path => {
  const at = (index: number, key: 'id' | 'needs' | 'default', other?: string): Path => {
    const place = other === undefined ? -1 : (nodes[index]?.needs ?? []).indexOf(other);
    return ['turn', 'nodes', index, key, ...(place === -1 ? [] : [place])];
  };
  if (rule === 'duplicate_id')
    return at(
      nodes.findLastIndex(({ id }) => id === first),
      'id',
    );
  // The id may be there twice.
  if (rule === 'default_without_needs')
    return at(
      nodes.findIndex((node) => node.id === first && 'default' in node && (node.needs ?? []).length === 0),
      'default',
    );
  const index = nodes.findIndex(({ id }) => id === first);
  return index === -1 ? ['turn', 'nodes'] : at(index, 'needs', second ?? first);
};

/** A rule of plans that a file breaks, and the same nodes without what breaks it. */
interface BrokenRule {
  readonly problem: Problem;
  readonly mended?: readonly NodeEntry[];
}

/** Nodes without the key, or the entry of a list, that a path names. */
const without = (nodes: readonly NodeEntry[], [, , index, key, place]: Path): readonly NodeEntry[] | undefined => {
  const node = nodes[Number(index)];
  if (node === undefined || (key !== 'needs' && key !== 'default' && key !== 'id')) return undefined;
  const { default: byDefault, ...rest } = node;
  const kept = { ...rest, ...('default' in node && key !== 'default' ? { default: byDefault } : {}) };
  // An id that nobody else can have.
  if (key === 'id') return nodes.with(Number(index), { ...kept, id: ` ${index}` });
  return nodes.with(
    Number(index),
    key === 'needs' ? { ...kept, needs: (kept.needs ?? []).filter((_, at) => at !== place) } : kept,
  );
};

const buildPlan = (
  { timeout_ms, on_deadline, concurrency, on_failure }: PlanFile['turn'],
  nodes: readonly NodeEntry[],
  templates: readonly InputTemplate[],
): Plan | BrokenRule => {
  try {
    return plan.from(
      nodes.map((node, index) => planNode(node, templates[index] ?? inputTemplate(undefined))),
      {
        ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
        ...(on_deadline === undefined ? {} : { onDeadline: on_deadline }),
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(on_failure === undefined ? {} : { onFailure: on_failure }),
      },
    );
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    const problem = { message: error.message, at: placeOf(error, nodes) };
    const mended = without(nodes, problem.at);
    return { problem, ...(mended === undefined ? {} : { mended }) };
  }
};

/** A plan that breaks this many rules is not read to its end by anybody. */
const RULES_MAX = 50;

/** The plan of a file, and all that its schema could not say of it. */
export function builtPlan(file: PlanFile): { readonly plan?: Plan; readonly problems: readonly Problem[] } {
  const templates = file.turn.nodes.map(({ input }) => inputTemplate(input));
  const others = [...checkNames(file), ...checkReferences(file.turn.nodes, templates)];
  const broken: Problem[] = [];
  let nodes: readonly NodeEntry[] = file.turn.nodes;
  while (broken.length < RULES_MAX) {
    const built = buildPlan(file.turn, nodes, templates);
    if (!('problem' in built))
      return broken.length + others.length === 0 ? { plan: built, problems: [] } : { problems: [...broken, ...others] };
    // A rule of the plan is named first: it may be what made a reference wrong.
    broken.push(built.problem);
    const at = JSON.stringify(built.problem.at);
    if (
      built.mended === undefined ||
      broken.slice(0, -1).some((before) => JSON.stringify(before.at) === at && before.message === built.problem.message)
    )
      break;
    nodes = built.mended;
  }
  return { problems: [...broken, ...others] };
}
