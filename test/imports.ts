import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** The test files that come to import one of these files of `test`, by whatever way; paths are those from the root. */
export function testsThatImport(root: string, wanted: readonly string[]): string[] {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => posix.join('test', path));
  const importsOf = new Map(
    files.map((path) => [
      path,
      [...readFileSync(join(root, path), 'utf8').matchAll(/from '(\.[^']+)'/g)].map(([, from = '']) =>
        posix.join(dirname(path), from),
      ),
    ]),
  );
  const found = new Set(wanted);
  // Grows while it is walked: who imports one of them is one of them.
  for (const one of found) for (const [path, imports] of importsOf) if (imports.includes(one)) found.add(path);
  return [...found].filter((path) => path.endsWith('.test.ts'));
}
