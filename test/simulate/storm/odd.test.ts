import { describe, expect, it } from 'vitest';
import { SimulationInputError, readScenarioFile, simulate, type Figures } from '../../../src/simulate/index.ts';

const PLAN =
  'clients: [{ plan: trip, poisson: { rate_per_s: 20 } }]\nplans: { trip: { nodes: [{ id: a, tool: search }, ';
const POISSON = 'clients: [{ poisson: { rate_per_s: 20 } }]';
const BURST = 'clients: [{ burst: { count: 20, every_s: 5 } }]';

/** A scenario of 20 s, whose server has this beside its latency. */
const scenario = (server = '', rest = POISSON, latency = 'constant_ms: 20'): string => `name: odd
duration_s: 20
seeds: 2
servers: { api: { latency: { ${latency} }${server} } }
tools: { search: { server: api } }
${rest}
`;
const simulated = (text: string): Figures => {
  const [outcome] = simulate(readScenarioFile(text, 'odd.yaml'), { engine: 'fleet' }).policies;
  if (outcome === undefined) throw new Error('no policy was run');
  return outcome.figures;
};
const DEFAULTS =
  'policies: { plain: { retry_budget: off, defaults: { circuit_breaker: false, retry_policy: { max_attempts: 1 } } } }';

describe('SIM-4 a scenario with odd values is refused by its rule', () => {
  it.each([
    ['no worker', scenario(', workers: 0'), /odd\.yaml:4:\d+ servers\.api\.workers: Too small: .*>=1/],
    ['a part of a worker', scenario(', workers: 1.5'), /servers\.api\.workers: Invalid input: expected int/],
    ['no rate', scenario('', 'clients: [{ poisson: { rate_per_s: 0 } }]'), /clients\.0\.poisson\.rate_per_s: .*>0/],
    ['a rate that is no number', scenario('', 'clients: [{ poisson: { rate_per_s: .nan } }]'), /poisson\.rate_per_s: /],
    ['a seed beyond 2^31', scenario('', `seed: 4294967296\n${POISSON}`), /seed: Too big: .*<=2147483648/],
    ['a burst of none', scenario('', 'clients: [{ burst: { count: 0 } }]'), /clients\.0\.burst\.count: .*>=1/],
    [
      'dips that overlap',
      scenario(', dips: [{ from_s: 2, to_s: 4, factor: 0.5 }, { from_s: 1, to_s: 3, factor: 0 }]'),
      /servers\.api\.dips: a span begins at 2 s, before the one before it has ended; let them not overlap/,
    ],
    [
      'bursts that overlap',
      scenario(', bursts: [{ from_s: 1, to_s: 3, rate: 1 }, { from_s: 2, to_s: 4, rate: 0 }]'),
      /servers\.api\.bursts: a span begins at 2 s/,
    ],
    [
      'a surge that ends before it begins',
      scenario('', 'clients: [{ poisson: { rate_per_s: 1, surges: [{ from_s: 3, to_s: 1, factor: 2 }] } }]'),
      /clients\.0\.surges: a span ends at 1 s, not after 3 s/,
    ],
    ['a 99th percentile below the median', scenario('', POISSON, 'median_ms: 50, p99_ms: 10'), /p99_ms, 10, is below/],
    [
      'two nodes of one id',
      scenario('', `${PLAN}{ id: a, tool: search }] } }`),
      /plans\.trip: Two nodes have the id a/,
    ],
    ['a circle', scenario('', `${PLAN}{ id: b, tool: search, needs: [b] }] } }`), /plans\.trip: .*circle: b, b/],
    [
      'a need of nothing',
      scenario('', `${PLAN}{ id: b, tool: search, needs: [c] }] } }`),
      /plans\.trip: Node b needs c/,
    ],
    [
      'clients that come too late',
      scenario('', 'clients: [{ burst: { count: 3, at_s: 21 } }]\nexpect: { success: 0.99 }'),
      /clients ask for nothing within duration_s, 20 s/,
    ],
  ])('%s', (_, text, message) => {
    const run = (): Figures => simulated(text);
    expect(run).toThrow(SimulationInputError);
    expect(run).toThrow(message);
  });
});

describe('SIM-3 a scenario with odd values has a right table', () => {
  it.each([0, 2 ** 31])('of seed %d: other calls than of the next', (seed) => {
    const of = (first: number): Figures => simulated(scenario('', `seed: ${first}\n${POISSON}`));
    expect(of(seed).calls.mean).toBeGreaterThan(300);
    expect(of(seed)).not.toEqual(of(1));
  });

  it.each([
    ['an outage that is longer than the run', ', outages: [{ from_s: 10, to_s: 100 }]'],
    ['a dip to nothing that is', ', dips: [{ from_s: 10, to_s: 100, factor: 0 }]'],
    ['a burst of errors that ends with it', ', bursts: [{ from_s: 10, to_s: 20, rate: 1 }]'],
  ])('of %s: half of the calls fail, and nobody has seen it well again', (_, server) => {
    const { success, recoveryS, stuck } = simulated(scenario(server, `${POISSON}\n${DEFAULTS}`));
    expect(success.mean).toBeGreaterThan(0.4);
    expect(success.mean).toBeLessThan(0.6);
    expect([recoveryS, stuck]).toEqual([null, 2]);
  });

  it('of trouble after its end: none', () => {
    expect(simulated(scenario(', outages: [{ from_s: 50, to_s: 60 }]'))).toMatchObject({
      success: { mean: 1 },
      recoveryS: { mean: 0 },
      stuck: 0,
    });
  });

  it('of clients that ask now and then: well again is when they next are, though seconds are empty', () => {
    // Of those at 0, 5, 10 and 15 s the second fail, which is 1 s after the trouble.
    const found = simulated(scenario(', bursts: [{ from_s: 4, to_s: 5.1, rate: 1 }]', `${BURST}\n${DEFAULTS}`));
    expect(found.success.mean).toBe(0.75);
    expect(found).toMatchObject({ recoveryS: { mean: 0.9 }, stuck: 0 });
  });

  it('of outages that overlap: what is lost in one is lost', () => {
    const one = simulated(scenario(', outages: [{ from_s: 2, to_s: 8 }]', `${POISSON}\n${DEFAULTS}`));
    const two = simulated(
      scenario(', outages: [{ from_s: 4, to_s: 8 }, { from_s: 2, to_s: 5 }]', `${POISSON}\n${DEFAULTS}`),
    );
    expect(two).toEqual(one);
  });
});
