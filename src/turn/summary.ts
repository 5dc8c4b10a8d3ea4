import type { NodeResult, NodeState } from '../contract/turn.ts';

/** Names in one sentence before it says how many more there are. */
const NAMES_MAX = 5;

/** Parts of a sentence, all of them. */
const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

const joined = (names: readonly string[], redact: (name: string) => string): string => {
  const shown =
    names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX - 1), `${names.length - NAMES_MAX + 1} more`] : names;
  const worded = shown.map((name) => redact(name).replaceAll('_', ' '));
  return listed(worded);
};

const VERBS: ReadonlyArray<readonly [NodeState, string]> = [
  ['timed_out', 'timed out'],
  ['failed', 'failed'],
  ['skipped', 'skipped'],
  ['canceled', 'canceled'],
  ['compensated', 'undone'],
  ['compensation_failed', 'could not be undone'],
];

const PASSIVE: ReadonlySet<NodeState> = new Set<NodeState>(['skipped', 'canceled', 'compensated']);

const wordedVerb = (state: NodeState, verb: string, count: number): string =>
  PASSIVE.has(state) ? `${count > 1 ? 'were' : 'was'} ${verb}` : verb;

/**
 * One sentence for a person (R-4.5): `Completed flight search, but hotel search timed out`.
 * Nodes go by their tools' names; by their own ids where one tool serves several.
 *
 * @param redact takes secrets out of a name, before it is put into words
 */
export function summarize(nodes: readonly NodeResult[], redact: (name: string) => string): string {
  if (nodes.length === 0) return 'There was nothing to do';
  const byTool = new Set(nodes.map(({ toolName }) => toolName)).size === nodes.length;
  const names = (state: NodeState): string[] =>
    nodes.filter((node) => node.state === state).map(({ id, toolName }) => (byTool ? toolName : id));
  const done = names('succeeded');
  const defaulted = names('defaulted');
  const parts = VERBS.flatMap(([state, verb]) => {
    const of = names(state);
    return of.length === 0 ? [] : [`${joined(of, redact)} ${wordedVerb(state, verb, of.length)}`];
  });
  if (defaulted.length > 0) parts.push(`${joined(defaulted, redact)} used a default`);
  const completed = done.length === 0 ? 'Completed nothing' : `Completed ${joined(done, redact)}`;
  return parts.length === 0 ? completed : `${completed}, but ${listed(parts)}`;
}
