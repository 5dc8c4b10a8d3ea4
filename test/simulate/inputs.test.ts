import { copyFileSync, linkSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  SimulationInputError,
  replayTrace,
  simulate,
  type ReplayOptions,
  type ScenarioFile,
  type SimulateOptions,
} from '../../src/simulate/index.ts';
import { measure } from '../../src/simulate/storm/measures.ts';
import { runStorm } from '../../src/simulate/storm/run.ts';
import { folder, spillway, type Folder } from '../cli/support.ts';
import { writeTrace } from './replay/files.ts';
import { recordStorm } from './replay/storm.ts';

const SCENARIO: ScenarioFile = {
  name: 'small',
  duration_s: 5,
  seeds: 1,
  engine: 'fleet',
  servers: { api: { latency: { median_ms: 20, p99_ms: 200 } } },
  tools: { search: { server: 'api' } },
  clients: [{ poisson: { rate_per_s: 20 } }],
};

describe('RPL-2 an option that a policy cannot have is refused, and changes nothing unheard', () => {
  const trace = recordStorm({ calls: 20, outage: [0, 0] });

  it.each([
    ['no list of alternatives', { set: ['pay.alternatives=null'] }, /alternatives takes a list of tools/],
    ['a word in its place', { set: ['pay.alternatives=backup'] }, /such as alternatives=\["backup"\], not "backup"/],
    ['a number in it', { set: ['pay.alternatives=[1]'] }, /alternatives takes a list/],
    ['no, which would be a yes', { set: ['pay.enforcesKey=no'] }, /enforcesKey takes true or false, not "no"/],
    ['a number for a yes', { set: ['pay.safetyCritical=1'] }, /safetyCritical takes true or false, not 1/],
    ['a grid of nothing', { rank: {} }, /the grid names no option/],
    [
      'a grid with more combinations than there is memory for',
      {
        rank: {
          'pay.timeoutMs': Array.from({ length: 1_000 }, (_, index) => index + 1),
          'pay.retry.maxAttempts': Array.from({ length: 1_000_000 }, (_, index) => index + 1),
        },
      },
      /more than 1000 combinations/,
    ],
    ['a grid of what is no number', { rank: { 'pay.retry.maxAttempts': [Number.NaN] } }, /not "NaN"/],
  ])('%s', (_, options, message) => {
    const replay = (): unknown => replayTrace(trace, options);
    expect(replay).toThrow(SimulationInputError);
    expect(replay).toThrow(message);
  });

  it.each([
    [
      'a hedge, which no policy of a layer has',
      { policies: [{ defaults: { hedge: { delay_ms: 5 } } }] },
      /"hedge"; a he/,
    ],
    ['a misspelt part', { policies: [{}, { tool: { pay: {} } }] }, /^policies\.1: Unrecognized key: "tool"/],
    [
      'an option of code in a file',
      { policies: [{ tools: { pay: { timeoutMs: 5 } } }] },
      /0: tools\.pay: .*"timeoutMs"/,
    ],
    ['an option that no file has', { policies: [{ tools: { pay: { mode: 'off' } } }] }, /tools\.pay: .*"mode"/],
    ['nothing for a tool', { policies: [{ tools: { pay: null } }] }, /policies\.0: tools\.pay: .*null/],
    ['nothing for a policy', { policies: [null] }, /policies\.0: .*null/],
    ['a policy where a list belongs', { policies: {} }, /policies must be a list/],
    ['a misspelt option', { sets: ['pay.timeoutMs=5'] }, /no option "sets"; it takes policies, set, rank, running/],
    ['a setting where a list belongs', { set: 'pay.timeoutMs=5' }, /set must be a list of settings/],
    ['a value where a list belongs', { rank: { 'pay.timeoutMs': 5 } }, /rank must be lists of values by option/],
  ])('%s, for who has no types', (_, options, message) => {
    const replay = (): unknown => replayTrace(trace, options as ReplayOptions);
    expect(replay).toThrow(SimulationInputError);
    expect(replay).toThrow(message);
  });

  it('a policy may have a name as long as a path', () => {
    const [candidate] = replayTrace(trace, { policies: [{ name: 'p'.repeat(300) }] }).candidates;
    expect(candidate?.verdict.code).toBe('safe');
  });

  it('endless is off, in a grid as in a setting', () => {
    const { candidates } = replayTrace(trace, { rank: { 'pay.breaker.failureThreshold': [Infinity] } });
    expect(candidates.map(({ name }) => name)).toEqual(['pay.breaker.failureThreshold=off']);
  });
});

describe('SIM-4 a simulation of what is not there is refused', () => {
  it('a policy for a tool that the scenario has not', () => {
    const run = (): unknown => simulate(SCENARIO, { policies: { next: { tools: { serach: { timeout_ms: 5 } } } } });
    expect(run).toThrow(SimulationInputError);
    expect(run).toThrow('policy next: there is no tool serach; there are search');
  });

  it.each([
    [
      'a hedge',
      { policies: { next: { defaults: { hedge: {} } } } },
      /^policy next: defaults: .*"hedge"; a hedge is an op/,
    ],
    ['a switch, which one engine would heed', { policies: { next: { tools: { search: { mode: 'off' } } } } }, /"mode"/],
    ['a misspelt part', { policies: { next: { tool: {} } } }, /^policy next: Unrecognized key: "tool"/],
    ['another engine', { engine: 'flete' }, /engine must be fidelity or fleet, not "flete"/],
    ['a misspelt option', { seed: 5 }, /simulate has no option "seed"; it takes policies, seeds, engine, maxCalls/],
  ])('%s', (_, options, message) => {
    const run = (): unknown => simulate(SCENARIO, options as SimulateOptions);
    expect(run).toThrow(SimulationInputError);
    expect(run).toThrow(message);
  });

  it.each([
    ['a misspelt part', { surge: [] }, /^scenario: Unrecognized key: "surge"/],
    ['a part of another type', { duration_s: '60' }, /^scenario: duration_s: .*expected number/],
    ['a part that is missing', { servers: undefined }, /^scenario: servers: /],
  ])('a scenario made in code is held to what its file is: %s', (_, part, message) => {
    const run = (): unknown => simulate({ ...SCENARIO, ...part } as typeof SCENARIO);
    expect(run).toThrow(SimulationInputError);
    expect(run).toThrow(message);
  });

  it('an expectation is held against what was found, and not against its first six digits', () => {
    const p99Of = (seed: number): number => measure(SCENARIO, runStorm(SCENARIO, {}, seed, 'fleet')).p99;
    const seed = [1, 2, 3, 4, 5, 6, 7, 8].find((of) => Number(p99Of(of).toPrecision(6)) < p99Of(of)) ?? 0;
    const limit = Number(p99Of(seed).toPrecision(6));
    const { holds, policies } = simulate({ ...SCENARIO, seed, expect: { p99_ms: limit } });
    expect(holds).toBe(false);
    expect(policies[0]?.expectations).toEqual([{ what: 'p99_ms', limit, value: p99Of(seed), holds: false }]);
  });
});

describe('the files of spillway simulate', () => {
  let files: Folder;
  const at = (name: string): string => join(files.path, name);
  beforeAll(() => {
    files = folder();
    files.write('storm.yaml', JSON.stringify(SCENARIO));
    files.write('typed.yaml', JSON.stringify({ ...SCENARIO, expect: { success: '0.9' } }));
    mkdirSync(at('traces'));
    writeTrace(at('traces/api.ndjson'), recordStorm({ calls: 20 }));
    copyFileSync(at('traces/api.ndjson'), at('kept.ndjson'));
    const servers = { api: { latency: { trace: 'traces/api.ndjson', tool: 'pay' } } };
    files.write('traced.yaml', JSON.stringify({ ...SCENARIO, servers }));
    linkSync(at('traces/api.ndjson'), at('hard.ndjson'));
    symlinkSync(at('traces/api.ndjson'), at('soft.ndjson'));
    symlinkSync(at('traced.yaml'), at('soft.yaml'));
    symlinkSync(at('traces'), at('linked'));
    files.write('now.yaml', 'name: mine\n');
    files.write('next.yaml', 'name: mine\ndefaults: { timeout_ms: 5 }\n');
  });
  afterAll(() => files?.[Symbol.dispose]());

  it.each([
    ['two policies of one name', ['storm.yaml', '--policy', 'now.yaml', '--policy', 'next.yaml'], /"mine", too; give/],
    [
      'a page in the place of the scenario',
      ['storm.yaml', '--html', 'storm.yaml'],
      /--html names .*storm\.yaml, which/,
    ],
    ['a picture in the place of a policy', ['storm.yaml', '--policy', 'now.yaml', '--svg', 'now.yaml'], /--svg names/],
    ['a picture in the place of the page', ['storm.yaml', '--html', 'out.html', '--svg', 'out.html'], /--svg names/],
    ['a text where a figure is expected', ['typed.yaml'], /expect: must be numbers by figure, such as success: 0\.99/],
  ] as const)('SIM-4 %s: refused with 2', async (_, args, says) => {
    const ran = await spillway('simulate', ...args.map((arg) => (arg.includes('.') ? at(arg) : arg)));
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(says);
    expect(readFileSync(at('storm.yaml'), 'utf8')).toBe(JSON.stringify(SCENARIO));
  });

  it.each([
    ['a page in the place of a trace that a server takes its times from', ['--html', 'traces/api.ndjson']],
    ['a picture in its place', ['--svg', 'traces/api.ndjson']],
    ['a page in its place by another way to it', ['--html', 'traces/../traces/api.ndjson']],
    ['a page under another name of it', ['--html', 'hard.ndjson']],
    ['a page where a link leads to it', ['--html', 'soft.ndjson']],
    ['a page where a link leads to the scenario', ['--html', 'soft.yaml']],
    ['a picture behind a link to the folder of the page', ['--html', 'traces/out', '--svg', 'linked/out']],
  ])('SIM-4 %s: refused with 2, and all is as it was', async (_, args) => {
    const ran = await spillway(
      'simulate',
      at('traced.yaml'),
      ...args.map((arg) => (arg.startsWith('--') ? arg : at(arg))),
    );
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/--(html|svg) names .*, which is read or written, too; name another file/);
    expect(readFileSync(at('traces/api.ndjson'), 'utf8')).toBe(readFileSync(at('kept.ndjson'), 'utf8'));
    expect(readFileSync(at('traced.yaml'), 'utf8')).toContain('api.ndjson');
  });

  it('RPL-7 a page where a link leads to the replayed trace: refused with 2, and it is as it was', async () => {
    const ran = await spillway(
      'replay',
      at('traces/api.ndjson'),
      '--set',
      'pay.timeoutMs=5',
      '--html',
      at('soft.ndjson'),
    );
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/--html names .*, which is read, and which it would overwrite/);
    expect(readFileSync(at('traces/api.ndjson'), 'utf8')).toBe(readFileSync(at('kept.ndjson'), 'utf8'));
  });

  it('and a page beside them is written', async () => {
    const ran = await spillway('simulate', at('traced.yaml'), '--html', at('traces/api.html'));
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(at('traces/api.html'), 'utf8')).toContain('<svg');
  });
});
