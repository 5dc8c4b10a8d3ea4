import { plain } from './plain.ts';

/** A field of an event that came from a file, where it may be anything: a line of at most so many characters. */
export function lineOf(value: unknown, max = 1_024): string {
  if (typeof value !== 'string') return '';
  const line = plain(value);
  // Where it is cut may be in the middle of a pair.
  return line.length > max ? `${line.slice(0, max).toWellFormed()}…` : line;
}

/** Words of ours around fields of an event from a file, which may be anything: what is no text is left out. */
export function sentence(words: TemplateStringsArray, ...fields: readonly unknown[]): string {
  return String.raw({ raw: words }, ...fields.map((field) => (typeof field === 'number' ? field : lineOf(field))));
}

/** A word of ours in an event that came from a file: as it is where it is one, and a harmless line where it is not. */
export function wordOf<T extends string>(value: T): T {
  return lineOf(value, 64) as T;
}

/** What a tool reports of its progress: its words, or else its numbers. */
export function progressOf(report: unknown): string {
  const { message, progress, total } = (report ?? {}) as Readonly<Record<string, unknown>>;
  const said = lineOf(message, 4_096);
  if (said !== '') return said;
  return `${typeof progress === 'number' ? progress : ''}${typeof total === 'number' ? `/${total}` : ''}`;
}

/** Milliseconds for a person: `12 ms`, `1.24 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A count with its noun: `1 attempt`, `2 attempts`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
