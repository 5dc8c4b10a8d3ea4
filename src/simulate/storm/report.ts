import type { Interval } from './statistics.ts';
import type { Figures, PolicyOutcome, StormReport } from './simulate.ts';

const short = (value: number): string =>
  Math.abs(value) >= 1_000
    ? value.toFixed(0)
    : Math.abs(value) >= 100
      ? value.toFixed(0)
      : String(Number(value.toPrecision(3)));

const withInterval = ({ mean, low, high }: Interval, of: (value: number) => string = short): string => {
  const half = (high - low) / 2;
  return half === 0 || of(half) === of(0) ? of(mean) : `${of(mean)} ±${of(half)}`;
};

const percent = (share: number): string => (share * 100).toFixed(2);

const recovery = ({ recoveryS, stuck, calls: _ }: Figures, count: number): string => {
  if (recoveryS === null) return 'never';
  return stuck === 0 ? withInterval(recoveryS) : `${withInterval(recoveryS)}, ${stuck} of ${count} never`;
};

/** The table's columns: each head, and what it says of a policy. */
export const COLUMNS: ReadonlyArray<readonly [head: string, of: (figures: Figures, count: number) => string]> = [
  ['success %', ({ success }) => withInterval(success, percent)],
  ['p50 ms', ({ p50 }) => withInterval(p50)],
  ['p95 ms', ({ p95 }) => withInterval(p95)],
  ['p99 ms', ({ p99 }) => withInterval(p99)],
  ['attempts/call', ({ attempts }) => withInterval(attempts)],
  ['peak load', ({ load }) => withInterval(load)],
  ['recovery s', recovery],
  ['done s', ({ doneS }) => withInterval(doneS)],
  ['refused', ({ refused }) => withInterval(refused)],
  ['acted twice', ({ doubled }) => withInterval(doubled)],
];

/** A table of a policy a line, with 95 % intervals over the seeds. */
export const tableOf = ({ policies, seeds }: StormReport): string[][] => [
  ['policy', ...COLUMNS.map(([head]) => head)],
  ...policies.map(({ name, figures }) => [name, ...COLUMNS.map(([, of]) => of(figures, seeds.count))]),
];

const UNITS: Readonly<Record<string, string>> = { recovery_s: ' s', p99_ms: ' ms' };

/** What was expected of a policy, a sentence each. */
export const expectationLines = ({ name, expectations }: PolicyOutcome): string[] =>
  expectations.map(({ what, limit, value, holds }) => {
    const word = what === 'success' ? 'at least' : 'at most';
    const found = value === null ? 'never' : `${value}${UNITS[what] ?? ''}`;
    return `${holds ? 'holds ' : 'BROKEN'} ${name}: ${what} ${word} ${limit}${UNITS[what] ?? ''}, it is ${found}`;
  });

/** A report for a person. */
export function stormText(report: StormReport): string {
  const rows = tableOf(report);
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const expectations = report.policies.flatMap(expectationLines);
  const { scenario, seeds, engine } = report;
  const head = `${scenario}: ${seeds.count} seed${seeds.count === 1 ? '' : 's'} from ${seeds.first}, ${engine} engine`;
  return [head, '', ...lines, ...(expectations.length === 0 ? [] : ['', ...expectations]), ''].join('\n');
}
