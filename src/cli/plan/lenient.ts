import { planFileSchema, type NodeEntry, type PlanFile, type ToolEntry } from '../../contract/formats/plan-file.ts';
import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { builtPlan } from './rules.ts';

type Entry = Readonly<Record<string, unknown>>;

const entryOf = (value: unknown): Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textsOf = (value: unknown): string[] => listOf(value).filter((item) => typeof item === 'string');

/**
 * A name that no plan can use: nothing is mistaken for it, and nothing is said of the place, where something is wrong
 * already.
 */
const nameless = (value: unknown, index: number): string => (typeof value === 'string' ? value : ` ${index}`);

const toolOf = (value: unknown, index: number): ToolEntry => {
  const { id, server, alternatives, circuit_breaker } = entryOf(value);
  const breaker = typeof circuit_breaker === 'object' && circuit_breaker !== null ? { circuit_breaker } : {};
  return {
    id: nameless(id, index),
    server: nameless(server, index),
    tool: '',
    alternatives: textsOf(alternatives),
    ...breaker,
  };
};

const nodeOf = (value: unknown, index: number): NodeEntry => {
  const { id, tool, needs, input, ...entry } = entryOf(value);
  return {
    id: nameless(id, index),
    tool: nameless(tool, index),
    needs: textsOf(needs),
    ...(typeof input === 'object' || typeof input === 'string' ? { input: input as Record<string, unknown> } : {}),
    ...('default' in entry ? { default: entry['default'] } : {}),
  };
};

const lenientPlan = (value: unknown): PlanFile => {
  const { servers, tools, turn } = entryOf(value);
  const names = Object.fromEntries(Object.keys(entryOf(servers)).map((name) => [name, {}]));
  return {
    servers: names,
    tools: listOf(tools).map(toolOf),
    turn: { nodes: listOf(entryOf(turn)['nodes']).map(nodeOf) },
  };
};

const begins = (path: Path, start: Path): boolean => start.every((step, index) => path[index] === step);

/**
 * What is wrong with names, references and circles of a plan whose shape is wrong, too: what has the wrong shape is
 * taken for something that would do.
 * @param wrong what was found wrong with the shape: nothing is said of those places a second time
 */
export function problemsBeside(value: unknown, wrong: readonly Problem[]): Problem[] {
  const file = lenientPlan(value);
  if (file.turn.nodes.length === 0) return [];
  const places = wrong.map(({ at }) => at);
  return builtPlan(file).problems.filter(({ at }) => !places.some((place) => begins(at, place) || begins(place, at)));
}

/** A tool of a plan file, and its place in the list. */
export interface PlacedTool {
  readonly entry: ToolEntry;
  readonly index: number;
}

/** The servers and tools of a plan that are well formed by themselves, whatever the rest is. */
export function soundParts(value: unknown): {
  readonly servers: Readonly<Record<string, ServerEntry>>;
  readonly tools: readonly PlacedTool[];
} {
  const { servers, tools } = entryOf(value);
  const turn = { nodes: [{ id: 'a', tool: 'a' }] };
  const named = Object.entries(entryOf(servers)).flatMap(([name, entry]) => {
    const { data } = planFileSchema.safeParse({ servers: { [name]: entry }, turn });
    return Object.entries(data?.servers ?? {});
  });
  const placed = listOf(tools).flatMap((entry, index) => {
    const { data } = planFileSchema.safeParse({ tools: [entry], turn });
    return (data?.tools ?? []).map((sound) => ({ entry: sound, index }));
  });
  return { servers: Object.fromEntries(named), tools: placed };
}
