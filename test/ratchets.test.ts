import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ratchets } from './ratchets.ts';

/** A file is one concept that can be read in one go. */
const MAX_LINES = 300;
const MAX_COLUMNS = 120;

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const code = ['src', 'test', 'benchmarks', '.ci'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path}`),
);

describe('limits', () => {
  it('has no file over 300 lines, but for those that were longer when they were formatted', () => {
    const long = Object.fromEntries(
      code
        .map((path) => [path, read(path).trimEnd().split('\n').length] as const)
        .filter(([, lines]) => lines > MAX_LINES),
    );
    const grown = Object.entries(long).filter(([path, lines]) => lines > (ratchets.longFiles[path] ?? 0));
    expect(grown, 'a file is one concept: move the second one to a file of its own').toEqual([]);
    const loose = Object.entries(ratchets.longFiles).filter(([path, lines]) => lines > (long[path] ?? 0));
    expect(loose, 'these have become shorter: write their new length into test/ratchets.ts, or take them out').toEqual(
      [],
    );
  });

  it('has no line over 120 columns, but for texts that nothing can wrap', () => {
    const long = Object.fromEntries(
      ['src', 'test', 'benchmarks', '.ci'].map((folder) => [
        folder,
        code
          .filter((path) => path.startsWith(`${folder}/`))
          .flatMap((path) => read(path).split('\n'))
          .filter((line) => line.length > MAX_COLUMNS).length,
      ]),
    );
    const grown = Object.entries(long).filter(([folder, lines]) => lines > (ratchets.longLines[folder] ?? 0));
    expect(grown, 'wrap the new ones').toEqual([]);
  });
});
