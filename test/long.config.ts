import type { ViteUserConfig } from 'vitest/config';
import { longTests } from './long.ts';
import all, { projects } from './vitest.config.ts';

/** The tests that take long: real frameworks, engines and browsers, kills, and thousands of scenarios. */
const config: ViteUserConfig = {
  ...all,
  test: { ...all.test, projects: projects(longTests(all.root ?? '.')) },
};
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
