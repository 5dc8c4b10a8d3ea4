import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { linesIn, problemsIn } from '../saga/deaths/books.ts';
import { world, type Survivors, type World } from '../saga/deaths/kit.ts';
import type { Place } from '../saga/deaths/worker.ts';
import { startRedis } from '../stores/redis/server.ts';

/**
 * `node test/soak/deaths.ts --store redis --every 1`: a trip of five bookings, whose process is killed at each of its
 * steps; then trips that died at one of some steps, whose next process is killed at each of its own. Two others resume
 * at once what is left. Ends with 1 when something was booked or undone twice, or stays without being in the result.
 */
const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    every: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '4' },
  },
});
const { store: kind } = values;
if (kind !== 'sqlite' && kind !== 'redis') throw new RangeError(`--store must be sqlite or redis, not ${kind}`);
const numberOf = (name: 'every' | 'at-once'): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1) throw new RangeError(`--${name} must be an integer from 1`);
  return value;
};
const every = numberOf('every');
const atOnce = numberOf('at-once');
// It is compiled once for hundreds of processes.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../../node_modules/.cache/node');

/** Where the first process dies, of which the next one is killed at each of its steps. */
const FIRST_DEATHS = ['after book hotel 1', 'before undo insurance 1', 'after undo tour 1'];
/** With Redis the resource checks the key, so that nothing has to stay. */
const enforcesKey = kind === 'redis';

/**
 * Does something for 1, 1 + every and so on, several at a time, until more of them than those went past their last
 * step. One alone says nothing: on a machine at work a process may lose its lease, and end before that.
 * @returns the last that was killed
 */
const untilLast = async (isKilled: (n: number) => Promise<boolean>): Promise<number> => {
  let [next, ends, last] = [1, 0, 0];
  const one = async (): Promise<void> => {
    while (ends <= atOnce) {
      const n = next;
      next += every;
      if (await isKilled(n)) last = Math.max(last, n);
      else ends++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return last;
};

interface Figures {
  /** Of a process that is left in peace, as far as it was killed at them. */
  readonly steps: number;
  readonly deaths: number;
  readonly undone: number;
  readonly problems: readonly string[];
}

const figuresOf = (places: readonly Place[], steps: number): Figures => {
  const lines = places.flatMap(({ books }) => linesIn(books));
  return {
    steps,
    deaths: lines.filter(({ act }) => act === 'died').length,
    undone: lines.filter(({ act }) => act === 'undo').length,
    problems: places.flatMap(({ books }) => problemsIn(books, enforcesKey)),
  };
};

/** Has two processes finish what is left; that they do not is a problem as well. */
const settled = async (survivors: Survivors, place: Place, turnId: string): Promise<string[]> =>
  survivors.settled({ place, turnId, enforcesKey }).then(
    () => [],
    (error: unknown) => [String(error)],
  );

/** All trips are in one place: whoever resumes has hundreds of records to go through. */
const killedOnce = async (at: World): Promise<Figures> => {
  const place = at.place(kind, 'trips');
  const steps = await untilLast(
    async (dieAt) => (await at.run({ act: 'book', place, turnId: `t${dieAt}`, dieAt, enforcesKey })) === 'killed',
  );
  const unsettled = await settled(await at.survivors(), place, 'all');
  const figures = figuresOf([place], steps);
  return { ...figures, problems: [...unsettled, ...figures.problems] };
};

/** On a machine at work a process may lose its lease, and end before the step at which it is to be killed. */
const TRIPS_MAX = 10;

/** A place with a trip whose process was killed at the given step. All places that it took are remembered. */
const diedAt = async (at: World, first: string, dieAt: number, places: Place[]): Promise<Place> => {
  for (let trip = 1; trip <= TRIPS_MAX; trip++) {
    const place = at.place(kind, `${first} ${dieAt} trip ${trip}`);
    places.push(place);
    const end = await at.run({ act: 'book', place, turnId: `t${dieAt}`, enforcesKey, dieAt: first });
    if (end === 'killed') return place;
  }
  throw new Error(`${TRIPS_MAX} trips have not come to the step ${first}: is it one?`);
};

/** Each trip has a place of its own, so that the process that is killed resumes it and no other. */
const killedTwice = async (at: World, survivors: Survivors, first: string): Promise<Figures> => {
  const places: Place[] = [];
  const unsettled: string[] = [];
  const steps = await untilLast(async (dieAt) => {
    const place = await diedAt(at, first, dieAt, places);
    const end = await at.run({ act: 'resume', place, turnId: `t${dieAt}`, enforcesKey, dieAt });
    unsettled.push(...(await settled(survivors, place, `${first} ${dieAt}`)));
    return end === 'killed';
  });
  const figures = figuresOf(places, steps);
  return { ...figures, problems: [...unsettled, ...figures.problems] };
};

const server = kind === 'redis' ? await startRedis() : undefined;
const folder = mkdtempSync(join(tmpdir(), 'spillway-deaths-'));
const at = world(folder, server?.path ?? '');
/** Prints its figures, and says whether all is well. */
const measured = async (what: string, round: Promise<Figures>): Promise<boolean> => {
  const startMs = performance.now();
  const { problems, ...figures } = await round;
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  process.stdout.write(`${what}: ${JSON.stringify({ ...figures, problems: problems.length, seconds })}\n`);
  for (const problem of problems) process.stdout.write(`PROBLEM: ${problem}\n`);
  return problems.length === 0;
};
try {
  const wells = [await measured(`${kind}, killed once`, killedOnce(at))];
  const survivors = await at.survivors();
  for (const first of FIRST_DEATHS)
    wells.push(await measured(`${kind}, killed ${first} and once more`, killedTwice(at, survivors, first)));
  process.exitCode = wells.every(Boolean) ? 0 : 1;
} finally {
  await at.end();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
