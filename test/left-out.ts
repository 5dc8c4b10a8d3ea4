import { spawnSync } from 'node:child_process';
import { testsThatImport } from './imports.ts';

/** What tests run for real and npm cannot install, by the file of ours that starts it. */
const PROGRAMS = [
  { program: 'redis-server', debian: 'redis-server', startedBy: 'test/stores/redis/server.ts' },
  { program: 'promtool', debian: 'prometheus', startedBy: 'test/sinks/promtool.ts' },
  { program: 'chromium', debian: 'chromium', startedBy: 'test/inspect/browser.ts' },
  { program: 'prometheus', debian: 'prometheus', startedBy: 'test/sinks/prometheus-server.ts' },
] as const;

const isMissing = (program: string): boolean =>
  spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined;

/**
 * The test files that need a program which this machine lacks: they are left out, and that is said. Never in CI, where
 * a test that does not run is a failure: `.ci/run` installs the programs.
 */
export function leftOut(root: string): string[] {
  if (process.env['CI'] !== undefined) return [];
  const missing = PROGRAMS.filter(({ program }) => isMissing(program));
  if (missing.length === 0) return [];
  const tests = testsThatImport(
    root,
    missing.map(({ startedBy }) => startedBy),
  );
  const names = missing.map(({ program, debian }) => `${program} (apt-get install ${debian})`).join(' and ');
  process.stderr.write(
    `\n${tests.length} test files are left out, since this machine lacks ${names}:\n${tests.map((path) => `  ${path}\n`).join('')}\n`,
  );
  return tests;
}
