import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { promtool } from './promtool.ts';

const rulesPath = join(import.meta.dirname, '../../src/sinks/prometheus-rules.yml');
const folder = mkdtempSync(join(tmpdir(), 'spillway-fleet-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface InputSeries {
  readonly series: string;
  readonly values: string;
}
interface UnitTest {
  readonly name: string;
  readonly interval: string;
  readonly input_series: readonly InputSeries[];
  readonly alert_rule_test: readonly unknown[];
}

const unit = parse(readFileSync(join(import.meta.dirname, 'prometheus-rules.unit.yml'), 'utf8')) as {
  readonly tests: readonly UnitTest[];
};

/** `first+stepxcount`, `firstxcount` and single numbers, written out. */
const samples = (values: string): string[] =>
  values.split(' ').flatMap((part) => {
    const [, first, step = '0', times] = /^([\d.]+)(?:\+([\d.]+))?x(\d+)$/.exec(part) ?? [];
    if (times === undefined) return [part];
    return Array.from({ length: Number(times) + 1 }, (_, n) => String(Number(first) + n * Number(step)));
  });

const labelled = (series: string, instance: string): string =>
  series.endsWith('}') ? series.replace(/\}$/, `,instance="${instance}"}`) : `${series}{instance="${instance}"}`;

/** Scraped four times, and never again: Prometheus marks its series as stale. */
const gone = (values: string): string => [...samples(values).slice(0, 4), 'stale'].join(' ');

/**
 * The same input from each of several instances, of which the last ones went down. What is expected stays as it was.
 */
const fleet = (test: UnitTest, up: number, down: number): UnitTest => ({
  ...test,
  name: `${test.name}: ${up} up, ${down} down`,
  input_series: test.input_series.flatMap(({ series, values }) => [
    ...Array.from({ length: up }, (_, n) => ({ series: labelled(series, `up-${n}`), values })),
    ...Array.from({ length: down }, (_, n) => ({ series: labelled(series, `down-${n}`), values: gone(values) })),
  ]),
});

/** What is counted begins anew with its process; what stands is told as before. */
const anew = (series: string, values: readonly string[], at: number): string[] =>
  /_(?:total|bucket|sum|count)(?:\{|$)/.test(series)
    ? values.map((value) => String(Number(value) - Number(values[at])))
    : [...values];

/** Of three instances one restarts, which is not scraped once, and one gives way to another one of another name. */
const restarting = (test: UnitTest, at: number): UnitTest => ({
  name: `${test.name}: restarted after ${at} min`,
  interval: test.interval,
  alert_rule_test: test.alert_rule_test,
  input_series: test.input_series.flatMap(({ series, values }) => {
    const before = samples(values);
    const after = anew(series, before, at);
    const parts = (name: string, told: readonly string[]): InputSeries => ({
      series: labelled(series, name),
      values: told.join(' '),
    });
    return [
      parts('stays', before),
      parts('restarts', [...before.slice(0, at), '_', ...after.slice(at + 1)]),
      parts('leaves', [...before.slice(0, at), 'stale']),
      parts('comes', [...before.slice(0, at).map(() => '_'), ...after.slice(at)]),
    ];
  }),
});

const FLEETS: ReadonlyArray<readonly [up: number, down: number]> = [
  [1, 0],
  [2, 0],
  [3, 0],
  [1, 1],
  [2, 1],
  [1, 2],
];
const alone = unit.tests.filter(({ name }) => !name.startsWith('fleet:'));

const run = (rules: string, tests: readonly UnitTest[]): { readonly status: number; readonly said: string } => {
  const path = join(folder, `${tests.length}-${Math.random()}.yml`);
  writeFileSync(path, stringify({ rule_files: [rules], evaluation_interval: '1m', tests }));
  return promtool(['test', 'rules', path]);
};

describe('R-7.5 the rules of a fleet', () => {
  it.each(FLEETS)('R-7.5 every alert says of %i instances, and %i that went down, what it says of one', (up, down) => {
    expect(alone.length).toBeGreaterThan(6);
    const { status, said } = run(
      rulesPath,
      alone.map((test) => fleet(test, up, down)),
    );
    expect(status, said).toBe(0);
  });

  it.each([4, 7])('R-7.5 a restart and a replacement after %i minutes change nothing that an alert says', (at) => {
    const { status, said } = run(
      rulesPath,
      alone.map((test) => restarting(test, at)),
    );
    expect(status, said).toBe(0);
  });

  it('R-7.5 the rule that joined without `max` is in error with two', () => {
    // What the tests above lean on: a rule that fails for two instances is noticed.
    const before = readFileSync(rulesPath, 'utf8').replace(
      'max by (tool, effects) (spillway_tool_info{effects="read"})',
      'spillway_tool_info{effects="read"}',
    );
    const path = join(folder, 'before.yml');
    writeFileSync(path, before);
    const slow = alone.filter(({ name }) => name.startsWith('a read tool that is slow'));
    expect(
      run(
        path,
        slow.map((test) => fleet(test, 1, 0)),
      ).status,
    ).toBe(0);
    const two = run(
      path,
      slow.map((test) => fleet(test, 2, 0)),
    );
    expect(two.status).not.toBe(0);
  });
});
