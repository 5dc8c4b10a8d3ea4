import { readFileSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, type ViteUserConfig } from 'vitest/config';
import { plants } from './laws/planted.ts';
import { leftOut } from './left-out.ts';

const source = (path: string): string => fileURLToPath(new URL(`../src/${path}`, import.meta.url));

const root = fileURLToPath(new URL('..', import.meta.url));

// What workers, and the hundreds of processes that tests start, load is compiled once: that halves a command's start.
process.env['NODE_COMPILE_CACHE'] ??= `${root}/node_modules/.cache/node`;

/** Whether a test file puts something else in a module's place, or sets what a process has once. */
const isAlone = (file: string): boolean => /^vi\.mock\(|\.setGlobal\w+\(/m.test(readFileSync(file, 'utf8'));

/**
 * Test files that share their workers, and with them the loaded library: to load it for each file anew took half of the
 * time. Those that change what all share have a worker each.
 */
export const projects = (
  include: readonly string[],
  exclude: readonly string[] = [],
): NonNullable<NonNullable<ViteUserConfig['test']>['projects']> => {
  const out = [...configDefaults.exclude, ...leftOut(root), ...exclude];
  const alone = globSync(include, { cwd: root }).filter((file) => isAlone(`${root}/${file}`));
  return [
    { extends: true, test: { name: 'shared', isolate: false, include: [...include], exclude: [...out, ...alone] } },
    { extends: true, test: { name: 'alone', include: alone, exclude: out } },
  ];
};

/** Tests import the package as its users do. */
const config: ViteUserConfig = {
  root,
  plugins: [plants()],
  resolve: {
    alias: [
      { find: /^spillway$/, replacement: source('index.ts') },
      { find: /^spillway\/testing\/explore$/, replacement: source('explore/index.ts') },
      { find: /^spillway\/testing\/matchers$/, replacement: source('explore/matchers.ts') },
      { find: /^spillway\/(testing|agent|simulate|fleet)$/, replacement: source('$1/index.ts') },
      {
        find: /^spillway\/(mini|policy|contract|operate|inspect|gates)$/,
        replacement: source('$1.ts'),
      },
      {
        find: /^spillway\/((?:sinks|providers|stores|adapters|agent|fleet|gateway)\/.+)$/,
        replacement: source('$1.ts'),
      },
    ],
  },
  // Generous: real servers and compilers run in some tests, and a machine may be busy.
  test: {
    projects: projects(['test/**/*.test.ts']),
    passWithNoTests: false,
    // Half of the time is spent waiting for processes and servers, and the default is one worker on two cores.
    maxWorkers: 2 * availableParallelism(),
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // What is waited for comes when it comes: its default of a second is short beside busy loops.
    expect: { poll: { timeout: 60_000 } },
  },
};
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
