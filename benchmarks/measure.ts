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
}

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

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
