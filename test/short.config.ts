import type { ViteUserConfig } from 'vitest/config';
import { ENGINE_TESTS, longTests } from './long.ts';
import all, { projects } from './vitest.config.ts';

/** What a change is to pass before it is shown to others: all tests but those that take long. */
const config: ViteUserConfig = {
  ...all,
  test: { ...all.test, projects: projects(['test/**/*.test.ts'], [...longTests(all.root ?? '.'), ...ENGINE_TESTS]) },
};
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
