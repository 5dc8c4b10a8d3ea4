import type { ViteUserConfig } from 'vitest/config';
import all, { projects } from './vitest.config.ts';

const folders = ['policy', 'operators', 'call', 'turn', 'layer', 'spec'];

/** What needs neither a process, a server nor thousands of scenarios: to be run at each change. */
const config: ViteUserConfig = {
  ...all,
  test: {
    ...all.test,
    projects: projects(
      folders.map((folder) => `test/${folder}/**/*.test.ts`),
      [
        'test/call/idempotency-{killed,leases,life,redis-faults,races}.test.ts',
        'test/call/real-time.test.ts',
        'test/policy/key-property.test.ts',
        'test/layer/shared-breakers-redis.test.ts',
        'test/turn/scale.test.ts',
        'test/spec/tr-02*',
        'test/spec/*redis*',
      ],
    ),
  },
};
// Vite reads the default export.
// oxlint-disable-next-line import/no-default-export
export default config;
