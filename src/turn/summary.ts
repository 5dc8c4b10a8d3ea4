import type { NodeResult, NodeState } from '../contract/turn.ts';

/** Names in one sentence before it says how many more there are. */
const NAMES_MAX = 5;

const spaced = ({ id, toolName }: NodeResult, by: 'id' | 'toolName'): string => (by === 'id' ? id : toolName).replaceAll('_', ' ');

const joined = (names: readonly string[]): string => {
  const shown = names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX - 1), `${names.length - NAMES_MAX + 1} more`] : names;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
};

const VERBS: ReadonlyArray<readonly [NodeState, string]> = [
  ['timed_out', 'timed out'],
  ['failed', 'failed'],
  ['skipped', 'skipped'],
  ['canceled', 'canceled'],
];

const wordedVerb = (state: NodeState, verb: string, count: number): string => (state === 'skipped' || state === 'canceled' ? `${count > 1 ? 'were' : 'was'} ${verb}` : verb);

/**
 * One sentence for a person (R-4.5): `Completed flight search, but hotel search timed out`.
 * Nodes go by their tools' names; by their own ids where one tool serves several.
 */
export function summarize(nodes: readonly NodeResult[]): string {
  const by = new Set(nodes.map(({ toolName }) => toolName)).size === nodes.length ? 'toolName' : 'id';
  const names = (state: NodeState): string[] => nodes.filter((node) => node.state === state).map((node) => spaced(node, by));
  const done = [...names('succeeded')];
  const defaulted = names('defaulted');
  const parts = VERBS.flatMap(([state, verb]) => {
    const of = names(state);
    return of.length === 0 ? [] : [`${joined(of)} ${wordedVerb(state, verb, of.length)}`];
  });
  if (defaulted.length > 0) parts.push(`${joined(defaulted)} used a default`);
  if (nodes.length === 0) return 'There was nothing to do';
  const completed = done.length === 0 ? 'Completed nothing' : `Completed ${joined(done)}`;
  return parts.length === 0 ? completed : `${completed}, but ${joined(parts)}`;
}
