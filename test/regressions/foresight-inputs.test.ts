// Was: `--set pay.retry=5` and `retryBudget.ratio.y=1` changed nothing and were `safe to ship`, an expectation of a
// policy that was not run held, and a scenario of endless calls ended with the memory. Now: each is refused by name.
import { describe, expect, it } from 'vitest';
import { SimulationInputError, readScenarioFile, replayTrace, simulate } from 'spillway/simulate';
import { recordStorm } from '../simulate/replay/storm.ts';

const events = recordStorm({ calls: 5 });

describe('RPL-2 a setting that would change nothing is refused', () => {
  it.each([
    ['pay.retry=5', /retry takes one of its options/],
    ['pay.retry=null', /retry takes one of its options/],
    ['pay.breaker=true', /breaker takes off, or one of its options/],
    ['pay.breaker=null', /breaker takes off/],
    ['pay.classification=[]', /classification takes one of its options/],
    ['pay.dedupe=1', /dedupe takes one of its options/],
    ['retryBudget.ratio.y=1', /no option "ratio\.y"/],
  ])('%s', (setting, message) => {
    expect(() => replayTrace(events, { set: [setting] })).toThrow(SimulationInputError);
    expect(() => replayTrace(events, { set: [setting] })).toThrow(message);
  });

  it('and one that changes something is not', () => {
    const { candidates } = replayTrace(events, { set: ['pay.breaker=off', 'pay.retry.maxAttempts=3'] });
    expect(candidates[0]?.verdict.code).toBe('safe');
  });
});

const scenario = (changes: Readonly<Record<string, string>> = {}): string =>
  Object.entries({
    name: 'x',
    duration_s: '5',
    seeds: '1',
    engine: 'fleet',
    servers: '{ api: { latency: { constant_ms: 0 } } }',
    tools: '{ search: { server: api } }',
    clients: '[{ poisson: { rate_per_s: 10 } }]',
    ...changes,
  })
    .map(([key, value]) => `${key}: ${value}\n`)
    .join('');

describe('SIM-4 an expectation of nothing is refused', () => {
  const expecting = (of: string): string =>
    scenario({ policies: '{ careful: {} }', expect: `{ ${of}: { success: 0.5 } }` });

  it('where no policy of the name is run', () => {
    expect(() => simulate(readScenarioFile(expecting('carefull'), 'x'))).toThrow(
      /no policy "carefull" is run; there are careful/,
    );
    const run = (): unknown => simulate(readScenarioFile(expecting('careful'), 'x'), { policies: { 'next.yaml': {} } });
    expect(run).toThrow(/no policy "careful" is run; there are next\.yaml/);
  });

  it.each(['{}', '{ careful: {} }', '{ careful: { success: 0.5 }, careless: {} }'])(
    'where it says nothing: %s',
    (expected) => {
      const text = scenario({ policies: '{ careful: {}, careless: {} }', expect: expected });
      expect(() => readScenarioFile(text, 'x')).toThrow(
        /^x:\d+:\d+ expect.*: .*expects nothing; name at least one of success/,
      );
    },
  );

  it('and in code', () => {
    const entry = { ...readScenarioFile(expecting('careful'), 'x'), expect: {} };
    expect(() => simulate(entry)).toThrow(/^scenario: expect.*expects nothing; name at least one of success/);
  });

  it('and holds or breaks where it is', () => {
    expect(simulate(readScenarioFile(expecting('careful'), 'x')).holds).toBe(true);
  });
});

describe('SIM-1 a scenario whose run would not end is refused', () => {
  it.each([
    ['a burst without end', { clients: '[{ burst: { count: 2, every_s: 0 } }]' }, /most that a run takes/],
    ['bursts beyond number', { clients: '[{ burst: { count: 2, every_s: 1e-9 } }]' }, /most that a run takes/],
    [
      'a rate beyond number',
      { duration_s: '80000', clients: '[{ poisson: { rate_per_s: 1e6 } }]' },
      /most that a run takes/,
    ],
    ['users who never think', { clients: '[{ closed: { users: 2, think_ms: 0 } }]' }, /think_ms/],
    ['buckets beyond number', { bucket_ms: '1e-3' }, /bucket_ms/],
  ])('%s', (_, changes, message) => {
    const run = (): unknown => simulate(readScenarioFile(scenario(changes), 'x'));
    expect(run).toThrow(SimulationInputError);
    expect(run).toThrow(message);
  });
});

it.each([0, -1, 1.5, Number.NaN, Infinity])('SIM-4 %d seeds are refused by their name', (seeds) => {
  const run = (): unknown => simulate(readScenarioFile(scenario({}), 'x'), { seeds });
  expect(run).toThrow(SimulationInputError);
  expect(run).toThrow(`seeds must be an integer from 1, not ${seeds}`);
});
