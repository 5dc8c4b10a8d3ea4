import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, type ViteUserConfig } from 'vitest/config';
import { plants } from './laws/planted.ts';
import { leftOut } from './left-out.ts';

const source = (path: string): string => fileURLToPath(new URL(`../src/${path}`, import.meta.url));

const root = fileURLToPath(new URL('..', import.meta.url));

/** Tests import the package as its users do. */
const config: ViteUserConfig = {
  root,
  plugins: [plants()],
  resolve: {
    alias: [
      { find: /^spillway$/, replacement: source('index.ts') },
      { find: /^spillway\/(testing|agent|simulate|fleet)$/, replacement: source('$1/index.ts') },
      { find: /^spillway\/(mini|policy|contract|operate|inspect)$/, replacement: source('$1.ts') },
      {
        find: /^spillway\/((?:sinks|providers|stores|adapters|agent|fleet|gateway)\/.+)$/,
        replacement: source('$1.ts'),
      },
    ],
  },
  // Generous: real servers and compilers run in some tests, and a machine may be busy.
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...leftOut(root)],
    passWithNoTests: false,
    // Half of the time is spent waiting for processes and servers, and the default is one worker on two cores.
    maxWorkers: 2 * availableParallelism(),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
};
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
