import { describe, expect, it } from 'vitest';
import { parseSimulate } from '../../../src/cli/arguments/simulate.ts';
import {
  SimulationInputError,
  readScenarioFile,
  simulate,
  type ScenarioFile,
  type StormReport,
} from '../../../src/simulate/index.ts';
import { runStorm } from '../../../src/simulate/storm/run.ts';

const scenario = (clients: string, latency = 'constant_ms: 0', rest = 'duration_s: 10'): string => `name: large
seeds: 2
engine: fleet
servers: { api: { latency: { ${latency} } } }
tools: { search: { server: api } }
clients: [${clients}]
${rest}
`;
const allowing = (maxCalls?: number): { maxCalls?: number } => (maxCalls === undefined ? {} : { maxCalls });
const read = (text: string, maxCalls?: number): (() => ScenarioFile) => {
  return () => readScenarioFile(text, 'large.yaml', allowing(maxCalls));
};
const run = (text: string, maxCalls?: number): StormReport => simulate(read(text, maxCalls)(), allowing(maxCalls));

describe('SIM-1 a run that would not end is refused before it begins, with the value and the remedy', () => {
  it.each([
    [
      'users who think too briefly, at a server without latency',
      scenario('{ closed: { users: 10, think_ms: 0.001 } }'),
      'clients.0: 10 users with think_ms 0.001 make some 100000000 calls in duration_s, 10 s, and 10000000 calls are ' +
        'the most that a run takes; have them think for 0.01 ms or longer, take a shorter duration_s, or ' +
        'allow more (--max-calls, or maxCalls in code)',
    ],
    [
      'users who do not think at all',
      scenario('{ closed: { users: 1, think_ms: 5.0e-324 } }'),
      'clients.0: 1 users with think_ms 5e-324 make some endlessly many calls in duration_s, 10 s',
    ],
    [
      'surges',
      scenario('{ poisson: { rate_per_s: 10000, surges: [{ from_s: 5, to_s: 50, factor: 1000 }] } }'),
      'clients.0: rate_per_s 10000 with its surges make some 50100000 calls in duration_s, 10 s, and 10000000 calls ' +
        'are the most that a run takes; ask for a rate_per_s of 2000 at the most',
    ],
    [
      'bursts',
      scenario('{ burst: { count: 10, at_s: 5, every_s: 1.0e-6 } }'),
      'clients.0: bursts of 10 with every_s 0.000001 make some 50000000 calls in duration_s, 10 s, and 10000000 ' +
        'calls are the most that a run takes; ask for an every_s of 0.000005 or more',
    ],
    [
      'several clients together',
      scenario('{ poisson: { rate_per_s: 900000 } }, { poisson: { rate_per_s: 900000 } }'),
      'clients make some 18000000 calls in all',
    ],
    [
      'plans of many calls',
      scenario(
        '{ plan: trip, poisson: { rate_per_s: 900000 } }',
        'constant_ms: 0',
        'duration_s: 10\nplans: { trip: { nodes: [{ id: a, tool: search }, { id: b, tool: search }] } }',
      ),
      'make some 18000000 calls in duration_s, 10 s, and 10000000 calls are the most that a run takes; ask for a ' +
        'rate_per_s of 500000 at the most',
    ],
    [
      'a surge that is looked for all the time',
      scenario('{ poisson: { rate_per_s: 900000, surges: [{ from_s: 1, to_s: 1.001, factor: 1000 }] } }'),
      'clients.0.surges: a factor of 1000 has some 9000000000 instants looked at in 10 s',
    ],
    [
      'weather that changes all the time',
      scenario(
        '{ poisson: { rate_per_s: 1 } }',
        'constant_ms: 0',
        'duration_s: 10\nweather: { storms: { every_s: 1.0e-9, for_s: 1.0e-9 } }',
      ),
      'weather.storms: it changes more than 10000000 times in 10 s; have it last longer',
    ],
  ])('%s', (_, text, message) => {
    expect(read(text)).toThrow(SimulationInputError);
    expect(read(text)).toThrow(message);
  });

  it('what its remedy says is accepted', () => {
    expect(read(scenario('{ closed: { users: 10, think_ms: 0.01 } }'))).not.toThrow();
    // How long they wait is known when the trace has been read.
    expect(read(scenario('{ closed: { users: 10, think_ms: 0.001 } }', 'trace: t.ndjson, tool: search'))).not.toThrow();
    expect(read(scenario('{ burst: { count: 10, at_s: 5, every_s: 5.0e-6 } }'))).not.toThrow();
  });

  it('and so are users who wait for their answers, and for each other', () => {
    const brief = '{ closed: { users: 100, think_ms: 0.001 } }';
    expect(run(scenario(brief, 'constant_ms: 500')).policies[0]?.figures.calls.mean).toBe(2_000);
    const queue = 'constant_ms: 10 }, workers: 1, errors: { rate: 0';
    expect(read(scenario(brief, queue, 'duration_s: 10000'))).not.toThrow();
    expect(read(scenario(brief, queue, 'duration_s: 200000'))).toThrow(/duration_s/);
  });

  it('bursts near the end are counted as they come', () => {
    const late = scenario('{ burst: { count: 1, at_s: 9.999, every_s: 1.0e-6 } }');
    expect(run(late).policies[0]?.figures.calls.mean).toBeCloseTo(1_000, -1);
  });

  it('calls that go on for longer than a chart holds', () => {
    const rest =
      'duration_s: 10\npolicies: { patient: { defaults: { timeout_ms: 2147483647, circuit_breaker: false, ' +
      'retry_policy: { max_total_time_ms: 9.0e+15 } } } }';
    expect(() => run(scenario('{ poisson: { rate_per_s: 1 } }', 'constant_ms: 9.0e+15', rest))).toThrow(
      /bucket_ms: calls go on until \d+ s, in buckets of 1000 ms; take longer ones, or a policy that gives up sooner/,
    );
  });
});

describe('SIM-1 a simulation that would take hours is refused, unless more calls are allowed', () => {
  const some = scenario('{ poisson: { rate_per_s: 100 } }');

  it('before it begins', () => {
    expect(() => run(some, 1_000)).toThrow(
      'some 2000 calls are made in all by 1 policy under 2 seeds, and 1000 are the most; take fewer seeds, a ' +
        'shorter duration_s, or allow more (--max-calls, or maxCalls in code)',
    );
    const many = scenario('{ poisson: { rate_per_s: 1000000 } }', 'constant_ms: 0', 'duration_s: 9').replace(
      'seeds: 2',
      'seeds: 10000',
    );
    expect(() => run(many)).toThrow(/some 90000000000 calls are made in all .* and 30000000 are the most/);
    expect(run(some, 3_000).seeds.count).toBe(2);
  });

  it('after its first run, where clients were answered sooner than was to be seen', () => {
    // Its breaker refuses at once what the server would take a second for.
    const rest = 'duration_s: 10\npolicies: { strict: { defaults: { circuit_breaker: { failure_threshold: 1 } } } }';
    const refused = scenario('{ closed: { users: 10, think_ms: 10 } }', 'constant_ms: 1000 }, errors: { rate: 1', rest);
    expect(run(refused).policies[0]?.figures.calls.mean).toBeGreaterThan(1_000);
    expect(() => run(refused, 1_000)).toThrow(/calls are made in all by 1 policy under 2 seeds, and 1000 are the most/);
  });

  it('and so is a run of more than ten million', () => {
    const large = scenario('{ poisson: { rate_per_s: 1000000 } }', 'constant_ms: 0', 'duration_s: 20');
    expect(read(large)).toThrow(/some 20000000 calls .* allow more \(--max-calls, or maxCalls in code\)$/);
    expect(read(large, 15_000_000)).toThrow(/some 20000000 calls .*, and 15000000 calls are the most that a run takes/);
    const allowed = read(large, 90_000_000)();
    // What a file may hold, a simulation may still not make.
    expect(() => simulate(allowed)).toThrow(/and 10000000 calls are the most that a run takes/);
    expect(() => simulate(allowed, { maxCalls: 39_000_000 })).toThrow(/some 40000000 calls are made in all/);
    // Fewer in all are no limit on what one run has room for.
    expect(read(some, 1)).not.toThrow();
  });

  it.each([Number.NaN, 0, 0.5, -1, Infinity])('a limit of %d is none', (maxCalls) => {
    expect(() => simulate(read(some)(), { maxCalls })).toThrow(`maxCalls must be an integer from 1, not ${maxCalls}`);
  });

  it('counts what a run really makes, too', () => {
    const storm = read(some)();
    expect(() => runStorm(storm, {}, 1, 'fleet', 500)).toThrow(
      'clients have made 501 calls and would make more, and 500 calls are the most that a run takes; ask for fewer, ' +
        'or for a shorter time, or allow more (--max-calls, or maxCalls in code)',
    );
    expect(runStorm(storm, {}, 1, 'fleet', 2_000).tally.calls).toBeGreaterThan(500);
  });

  it('as the command is told', () => {
    expect(parseSimulate(['storm.yaml', '--max-calls', '90000000'])).toMatchObject({ maxCalls: 90_000_000 });
    for (const wrong of ['0', '-1', '1e9', '1.5', '', '99999999999999999999'])
      expect(() => parseSimulate(['storm.yaml', `--max-calls=${wrong}`])).toThrow(
        `--max-calls must be an integer from 1, not "${wrong}"`,
      );
  });
});
