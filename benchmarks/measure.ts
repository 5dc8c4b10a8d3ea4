import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** One measured figure: the median of several runs, in microseconds per unit. */
export interface Figure {
  readonly name: string;
  readonly usPerUnit: number;
  readonly runs: number;
}

export interface Question {
  /** What is asked. */
  readonly question: string;
  readonly figures: readonly Figure[];
  /** Ratios between figures, worded: `100,000 nodes / 1,000 nodes`. */
  readonly ratios: Readonly<Record<string, number>>;
  /** Memory, worded: kilobytes per unit. */
  readonly kilobytes?: Readonly<Record<string, number>>;
  /** The same as a table, by line, where that is easier to read. */
  readonly table?: readonly string[];
  /** What these should come to. */
  readonly targets?: readonly Target[];
}

/** A value and the limit that it should keep. */
export interface Target {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  /** The limit is a floor; otherwise the value should be at most that. */
  readonly atLeast?: boolean;
  /** `us`, `KB`, `ms`; `x` for a ratio of ours over theirs. */
  readonly unit: string;
}

export const isMet = ({ value, limit, atLeast = false }: Target): boolean =>
  atLeast ? value >= limit : value <= limit;

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** A full collection; without `--expose-gc` there is no figure of memory. */
export const collect = (): void => {
  if (globalThis.gc === undefined) throw new Error('run with node --expose-gc, as npm run bench does');
  globalThis.gc();
};

/** Runs `work` once and gives the time of one unit, in microseconds. */
export async function timed(units: number, work: () => Promise<void>): Promise<number> {
  collect();
  const startedAtMs = performance.now();
  await work();
  return ((performance.now() - startedAtMs) * 1000) / units;
}

/** Runs `work` a few times, the first to warm up, and gives the median time of one unit. */
export async function measure(name: string, units: number, runs: number, work: () => Promise<void>): Promise<Figure> {
  await work();
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push(await timed(units, work));
  return { name, usPerUnit: median(times), runs };
}

/** Ways of doing the same work, by name: each throws when it was not done. */
export type Ways = Readonly<Record<string, () => Promise<void>>>;

/** A ratio of two figures, for several rounds: each round's own, so that what else the machine does bears on both. */
export interface SideBySide {
  readonly figures: readonly Figure[];
  readonly us: (name: string) => number;
  /** The median over the rounds of one way's time over another's. */
  readonly ratio: (ours: string, theirs: string) => number;
}

/**
 * Runs all ways in turn, round after round; two rounds warm up. Nothing is collected in between: a forced collection
 * drops the shapes of objects of which none lives just then, and with them the code that was compiled for them, which
 * no process in use would see.
 *
 * @param units how many units of work one run does
 * @param leastMs each way runs as often in a round as fills this time, so that the quick one is as warm as the slow
 * one, and what the other left to be collected is not its own. Default 0: once
 */
export async function sideBySide(ways: Ways, units: number, rounds: number, leastMs = 0): Promise<SideBySide> {
  const times = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
  for (let round = -2; round < rounds; round++) {
    for (const [name, work] of Object.entries(ways)) {
      const startedAtMs = performance.now();
      let runs = 0;
      do {
        await work();
        runs++;
      } while (performance.now() - startedAtMs < leastMs);
      if (round >= 0) times.get(name)?.push(((performance.now() - startedAtMs) * 1000) / units / runs);
    }
  }
  const of = (name: string): readonly number[] => times.get(name) ?? [];
  return {
    figures: [...times].map(([name, all]) => ({ name, usPerUnit: median(all), runs: rounds })),
    us: (name) => median(of(name)),
    ratio: (ours, theirs) => median(of(ours).map((us, round) => us / (of(theirs)[round] ?? Number.NaN))),
  };
}

/**
 * Asks a question in a process of its own: what other benchmarks have taught V8 counts in one that they share. The file
 * prints its answer as JSON.
 */
export const askedApart = async (file: string): Promise<Question> => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', file]);
  return JSON.parse(stdout) as Question;
};
