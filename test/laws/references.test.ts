import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const folder = join(import.meta.dirname, 'reference');
const references = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const);

/** Pure functions that the specification itself says decide: the delays, R-3.1 the reducer and its settings. */
const POLICIES = ['retry/backoff', 'breaker/reducer', 'breaker/settings'].map(
  (name) => `../../../src/policy/${name}.ts`,
);

it('a reference is RxJS, each other, and no more of the engine than the policies that the specification names', () => {
  const imported = references.flatMap(([name, text]) =>
    [...text.matchAll(/^import (type )?[^;]*? from '([^']+)';/gm)].map(([, type, from = '']) => ({ name, type, from })),
  );
  const foreign = imported.filter(
    ({ type, from }) => type === undefined && from !== 'rxjs' && !from.startsWith('./') && !POLICIES.includes(from),
  );
  expect(imported.length).toBeGreaterThan(10);
  expect(foreign).toStrictEqual([]);
});

it('a reference can be read at a sitting: 80 lines of code', () => {
  const code = (text: string): number => text.split('\n').filter((line) => !/^\s*(?:$|\/\/|\/?\*)/.test(line)).length;
  expect(
    references.filter(([, text]) => code(text) > 80).map(([name, text]) => `${name}: ${code(text)}`),
  ).toStrictEqual([]);
});
