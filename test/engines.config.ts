import type { ViteUserConfig } from 'vitest/config';
import { ENGINE_TESTS } from './long.ts';
import all, { projects } from './vitest.config.ts';

/** The suite that an engine of fleets has to pass, on each engine. */
const config: ViteUserConfig = { ...all, test: { ...all.test, projects: projects(ENGINE_TESTS), maxWorkers: 1 } };
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
