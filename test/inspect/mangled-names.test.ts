import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const sourcesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(join(root, folder, name), 'utf8'));

it('SEE-8 no name that the bundler shortens is one of an event, or of what the server answers', () => {
  const page = readFileSync(join(root, '.ci/page.ts'), 'utf8');
  const names = [...page.matchAll(/^ {4}'(\w+)',$/gm)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(40);
  const told = [
    ...sourcesIn('src/contract/event'),
    ...['envelope.ts', 'turn.ts', 'tool.ts', 'policy.ts'].map((name) =>
      readFileSync(join(root, 'src/contract', name), 'utf8'),
    ),
    /export interface ListView \{[^}]*\}/.exec(readFileSync(join(root, 'src/inspect/compare-view.ts'), 'utf8'))?.[0] ??
      '',
  ].join('\n');
  const members = new Set([...told.matchAll(/readonly (\w+)\??:/g)].map(([, name = '']) => name));
  expect(members.size).toBeGreaterThan(100);
  expect(names.filter((name) => members.has(name))).toEqual([]);
  // Tables that are asked by a text have its names for keys.
  const tables = [
    ...sourcesIn('src/inspect/page')
      .join('\n')
      .matchAll(/^export type (?:Tab|Filter|Connection) = (.*);$/gm),
  ];
  const keys = tables.flatMap(([, words = '']) => words.match(/\w+/g) ?? []);
  expect(keys.length).toBeGreaterThan(14);
  expect(names.filter((name) => ['lines', 'clock', 'lost', 'anew', 'end', ...keys].includes(name))).toEqual([]);
});
