import { visible } from './invisible.ts';
import { literal, searched, withoutKnown } from './text.ts';

/**
 * Makes a function that takes values out of a text, with the tokens they stand in, however they are written, and
 * nothing else: what else looks like a secret may be meant for a person or a model to use. Terminal sequences and
 * invisible characters go with them: one within a value would hide it. A text without any is given back as it is.
 */
export const withoutSecrets = (secrets: readonly string[]): ((text: string) => string) => {
  const known = literal(secrets);
  if (known === undefined) return (text) => text;
  return (text) => {
    const seen = visible(text);
    const clean = searched(seen, (part) => withoutKnown(part, known));
    return clean === seen ? text : clean;
  };
};

/** A value as JSON has it, with each of its texts and names as they may be shown; the same where they are all. */
export const deeply = (value: unknown, shown: (text: string) => string): unknown => {
  if (typeof value === 'string') return shown(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => deeply(item, shown));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const entries = Object.entries(value);
  const clean = entries.map(([key, item]) => [shown(key), deeply(item, shown)] as const);
  return clean.every(([key, item], index) => key === entries[index]?.[0] && item === entries[index]?.[1])
    ? value
    : Object.fromEntries(clean);
};
