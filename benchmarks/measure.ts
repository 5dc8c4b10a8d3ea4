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
}

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Runs `work` a few times, the first to warm up, and gives the median time of one unit. */
export async function measure(name: string, units: number, runs: number, work: () => Promise<void>): Promise<Figure> {
  await work();
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    globalThis.gc?.();
    const startedAtMs = performance.now();
    await work();
    times.push(((performance.now() - startedAtMs) * 1000) / units);
  }
  return { name, usPerUnit: median(times), runs };
}
