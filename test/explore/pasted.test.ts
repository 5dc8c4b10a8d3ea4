import { join } from 'node:path';
import { exploreFaults } from 'spillway/testing/explore';
import { expect, it } from 'vitest';
import { ranTests } from '../made-tests.ts';
import { PLANTED } from './planted.ts';

/** Where the pasted tests find the plan and its tools. */
const planFile = (bugs: readonly number[], isBug: boolean): Record<string, string> =>
  Object.fromEntries(
    bugs.map((index) => [
      `plan-${index}.ts`,
      `import { PLANTED } from ${JSON.stringify(join(import.meta.dirname, 'planted.ts'))};
export const { plan, tools } = PLANTED[${index}]!.made(${isBug});\n`,
    ]),
  );

it('XPL-3 a test of a finding fails as pasted, and passes once the bug is mended', { timeout: 300_000 }, async () => {
  const tests: Record<string, string> = {};
  const bugs = [...PLANTED.keys()];
  const played: string[] = [];
  for (const index of bugs) {
    const { finds, node, made } =
      PLANTED[index] ??
      (() => {
        throw new Error('there is none');
      })();
    const { plan, tools, options } = made(true);
    const { findings } = await exploreFaults(plan, tools, { ...options, maxFindings: 100 });
    const found = findings.find((one) => one.kind === finds && one.node === node);
    tests[`bug-${index}`] = (found?.test ?? '').replace('./plan.ts', `./plan-${index}.ts`);
    if (found !== undefined && 'code' in found.marbleTest) played.push(found.marbleTest.code);
  }
  expect(ranTests(tests, planFile(bugs, true)).failed.length).toBe(bugs.length);
  expect(ranTests(tests, planFile(bugs, false)).passed.length).toBe(bugs.length);
  // The inspector's own tests play what happened, so they pass as they are; what was verified or undone it cannot play.
  expect(played.length).toBeGreaterThan(2);
  const plays = Object.fromEntries(played.map((code, index) => [`played-${index}`, code]));
  expect(ranTests(plays).passed.length).toBe(played.length);
});
