import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';

const root = join(import.meta.dirname, '..');

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly assertionResults: ReadonlyArray<{ readonly status: string }>;
  }>;
}

/**
 * Runs tests as a project of its own has them; gives the names of the files, by what became of them.
 *
 * @param files the tests, by name
 * @param others files that they import, by name with its ending
 */
export function ranTests(
  files: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>> = {},
): { readonly passed: string[]; readonly failed: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-marbles-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    writeFileSync(
      join(folder, 'vitest.config.mjs'),
      `import all from ${JSON.stringify(join(root, 'test/vitest.config.ts'))};
const test = { include: ['*.test.ts'], testTimeout: 60_000, isolate: false };
export default { ...all, root: ${JSON.stringify(folder)}, plugins: [], test };\n`,
    );
    for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.ts`), code);
    for (const [name, code] of Object.entries(others)) writeFileSync(join(folder, name), code);
    const report = join(folder, 'report.json');
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const args = [
      vitest,
      'run',
      '--config',
      join(folder, 'vitest.config.mjs'),
      '--reporter=json',
      `--outputFile=${report}`,
    ];
    const { stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', input: '' });
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    expect(testResults.length, stderr).toBe(Object.keys(files).length);
    const names = (status: string): string[] =>
      testResults
        .filter(({ assertionResults: all }) => all.length === 1 && all[0]?.status === status)
        .map(({ name }) => name.replace(/^.*[/\\](.*)\.test\.ts$/, '$1'));
    return { passed: names('passed'), failed: names('failed') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
