import { fieldsOf, type Fields } from './blocks.ts';

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);

/** A toolset's own name is in its type: `browser_toolset_20260801`. A model that errs calls it by that. */
const TOOLSET = /^(\w+)_toolset_\d+$/;

const namesOf = ({ name, type }: Fields): readonly string[] => {
  const toolset = TOOLSET.exec(String(type))?.[1];
  return [...(typeof name === 'string' ? [name] : []), ...(toolset === undefined ? [] : [toolset])];
};

/** The tool that a change in mid-conversation adds: defined there, or named. */
const added = ({ type, tool }: Fields): readonly Fields[] => {
  if (type !== 'tool_addition') return [];
  const change = fieldsOf(tool);
  return [change, fieldsOf(change['definition'])];
};

/**
 * Names of the client's own tools: those in `tools`, and those that a message adds by `tool_addition`, also where a
 * summary stands for it.
 */
export function clientNames({ tools, messages }: Fields): readonly string[] {
  const blocks = listOf(messages).flatMap(({ content }) => listOf(content));
  const changes = blocks.flatMap((block) => [block, ...listOf(block['tool_changes'])]);
  return [...listOf(tools), ...changes.flatMap(added)].flatMap(namesOf);
}
