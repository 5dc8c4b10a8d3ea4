import { join } from 'node:path';
import type { AnyTool } from 'spillway';
import { exploreFaults, type World } from 'spillway/testing/explore';
import { expect, it } from 'vitest';
import { loadPlan } from '../../src/cli/plan/file.ts';
import { startServers } from '../../src/cli/plan/servers.ts';
import { bindTools, usedTools } from '../../src/cli/plan/tools.ts';
import { liveRuntime } from '../../src/runtime.ts';

/** What the demo's servers answer, in virtual time. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  flight_search: { temperature: 33, conditions: 'Cloudy', humidity: 82 },
  seat_map: 'The sum of 12 and 30 is 42.',
};
const SLOW_MS: Readonly<Record<string, number>> = { activity_search: 60_000 };

/** The demo's tools, with their policies and without the faults that it plays. */
const demoTools = async (path: string) => {
  const loaded = await loadPlan(path);
  const used = usedTools(loaded.file);
  const servers = await startServers([...new Set(used.map(({ server }) => server))], loaded, liveRuntime);
  try {
    const plain = used.map(({ entry, ...tool }) => {
      const { faults: _, ...rest } = entry ?? {};
      return entry === undefined ? tool : { ...tool, entry: rest as typeof entry };
    });
    return { plan: loaded.plan, tools: bindTools(plain, servers.providers, liveRuntime).tools };
  } finally {
    await servers.close();
  }
};

it('XPL-2 the plan of the demo', { timeout: 300_000 }, async () => {
  const { plan, tools } = await demoTools(join(import.meta.dirname, '../../src/cli/demo/plan.yaml'));
  const modelled = (world: World): readonly AnyTool[] =>
    tools.map(({ name, policy = {} }): AnyTool => ({
      name,
      policy,
      execute: async () => {
        await world.sleep(SLOW_MS[name] ?? 20);
        return ANSWERS[name] ?? name;
      },
    }));
  const { findings, explored } = await exploreFaults(plan, modelled);
  expect(explored).toBeGreaterThan(400);
  expect(findings.map(({ message }) => message)).toEqual([]);
});
