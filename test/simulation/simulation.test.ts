import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { placesOf } from '../code-edit.ts';
import { runBatch, type BatchReport } from './batch.ts';
import { SOMETIMES, runsTwice, scenarioOf, type ScenarioName } from './findings.ts';
import { simulateKeys } from './idempotency/simulate.ts';
import { PLANTS } from './plant.ts';
import { simulate } from './simulate.ts';

const run = promisify(execFile);
const inProcess = async (seeds: number): Promise<BatchReport> => {
  const { stdout } = await run(process.execPath, [
    `${import.meta.dirname}/run.ts`,
    '--json',
    '--threads',
    '1',
    '--seeds',
    String(seeds),
    '--from',
    '900',
  ]);
  return JSON.parse(stdout) as BatchReport;
};

describe('planted bugs', () => {
  it.each(Object.entries(PLANTS))('%s: its text stands once in the source', (_name, plant) => {
    for (const { file, find } of plant.and === undefined ? [plant] : [plant, plant.and]) {
      const source = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8');
      expect([file, placesOf(source, find)]).toEqual([file, 1]);
    }
  });
});

describe('simulation', () => {
  it('every invariant holds in 1,000 runs', async () => {
    const { failed } = await runBatch({ from: 1, count: 1_000, step: 1 });
    expect(failed).toStrictEqual([]);
  });

  it.each([
    [23_670, 'R-4.6 an answer that came between two stalls, after its deadline was found to have passed, is late'],
    [77_790, 'R-4.6 an answer that came between two stalls, without an earlier one, is late'],
    [178_435, 'R-4.6 an answer that came between two stalls, as a probe, is late'],
    [227_361, 'R-6.3 a rule takes the retry that another forces against the evidence, and leaves no way'],
    [526_063, 'R-18.6 whoever tells of a turn again names the same person for what stays'],
    [963_888, 'R-9.6 the lease of a dead process with a slow clock has passed by that of a store that failed over'],
    [45_871, 'R-3.5 half-open’s deadline is counted from its beginning where its last probe is older'],
  ])('seed %i: %s', async (seed) => {
    expect((await simulate(seed)).violations).toStrictEqual([]);
  });

  it('IDEM-1 to 8 every invariant holds in 300 runs under keys', async () => {
    const { failed, seeds } = await runBatch({ from: 1, count: 300, step: 1, scenario: 'idempotency' });
    expect(failed).toStrictEqual([]);
    expect(seeds).toBe(300);
  });

  it.each(['recovery', 'switches', 'hedge', 'breakers', 'fleet', 'settle'] as const)(
    'every invariant of %s holds in 150 runs',
    async (scenario) => {
      const { failed, seeds } = await runBatch({ from: 1, count: 150, step: 1, scenario });
      expect(failed).toStrictEqual([]);
      expect(seeds).toBe(150);
    },
  );

  it('DET-1 seeds of each scenario run twice, one in a hundred', () => {
    const seeds = Array.from({ length: 20_000 }, (_, index) => index + 1);
    for (const scenario of Object.keys(SOMETIMES) as ScenarioName[]) {
      const own = seeds.filter((seed) => scenarioOf(seed) === scenario);
      const share = own.filter(runsTwice).length / own.length;
      expect(share, scenario).toBeGreaterThan(0.009);
      expect(share, scenario).toBeLessThan(0.011);
    }
  });

  it('DET-1 the same seed gives the same trace, twice in a process and across processes', async () => {
    const [once, twice] = [await simulate(77), await simulate(77)];
    expect(twice.hash).toBe(once.hash);
    expect((await simulate(78)).hash).not.toBe(once.hash);
    expect((await simulateKeys(77)).hash).toBe((await simulateKeys(77)).hash);
    expect((await simulateKeys(78)).hash).not.toBe((await simulateKeys(77)).hash);
    const [one, other] = await Promise.all([inProcess(100), inProcess(100)]);
    expect(one.digest).toBe(other.digest);
    expect(one.digest).not.toBe(0);
  });
});
