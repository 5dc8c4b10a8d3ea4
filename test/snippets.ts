import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './pages.ts';

/** A piece of code that a page or a docstring shows. */
export interface Snippet {
  readonly file: string;
  /** Of its first line in the file. */
  readonly line: number;
  readonly code: string;
}

/** The pieces of a file, from the root, that are a pattern's first group. */
export const cut = (file: string, pattern: RegExp, clean: (code: string) => string = (code) => code): Snippet[] => {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: text.slice(0, match.index + match[0].indexOf('\n') + 1).split('\n').length,
    code: clean(match[1] ?? ''),
  }));
};

/** What a pattern's first group found, everywhere. */
export const matches = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((match) => match[1] ?? '');
