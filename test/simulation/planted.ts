import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { count, filter, from, lastValueFrom, mergeMap, tap } from 'rxjs';
import type { BatchReport } from './batch.ts';
import { PLANTS } from './plant.ts';

const run = promisify(execFile);
const script = `${import.meta.dirname}/run.ts`;

/**
 * What the bug of a name broke within its seeds, in a process of its own: the edit is made while the source is loaded.
 */
async function broken(name: string): Promise<readonly string[]> {
  const { seeds } = PLANTS[name] ?? { seeds: 0 };
  const { stdout } = await run(process.execPath, [
    script,
    '--json',
    '--threads',
    '1',
    '--seeds',
    String(seeds),
    '--plant',
    name,
  ]);
  const { failed } = JSON.parse(stdout) as BatchReport;
  return failed.flatMap(({ violations }) => violations.map(({ invariant }) => invariant));
}

/**
 * A harness that finds nothing proves nothing: each bug is planted in the real layer and must be found by one of the
 * invariants that it names.
 *
 * @returns whether all were
 */
export const findPlants = (jobs: number, print: (line: string) => void): Promise<boolean> =>
  lastValueFrom(
    from(Object.entries(PLANTS)).pipe(
      mergeMap(async ([name, { seeds, by }]) => {
        const startedMs = performance.now();
        const invariants = await broken(name);
        const isFound = invariants.some((invariant) => (by as readonly string[]).includes(invariant));
        const what = isFound
          ? 'found'
          : `NOT FOUND: it broke ${invariants.join(', ') || 'nothing'} in ${seeds} seeds, and not ${by.join(' or ')}`;
        return { isFound, line: `${name}: ${what} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)` };
      }, jobs),
      tap(({ line }) => print(line)),
      filter(({ isFound }) => !isFound),
      count(),
    ),
  ).then((missed) => missed === 0);
