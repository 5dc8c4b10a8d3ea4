import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startRedis, type RedisServer } from '../../stores/redis/server.ts';
import { linesIn, problemsIn } from './books.ts';
import { EVERY, untilLast, world, type World } from './kit.ts';
import type { Place } from './worker.ts';

let server: RedisServer;
let folder: string;
let at: World;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-deaths-'));
  at = world(folder, server.path);
});
afterEach(async () => {
  await at.end();
  rmSync(folder, { recursive: true, force: true });
});

const counted = (books: string, act: string): number => linesIn(books).filter((line) => line.act === act).length;

/** Figures, for whoever asks for them. */
const told = (what: string, figures: object): void => {
  if (process.env['SPILLWAY_FIGURES'] !== undefined) process.stdout.write(`${what} ${JSON.stringify(figures)}\n`);
};

const KINDS: readonly Place['kind'][] = ['sqlite', 'redis'];
const cases = KINDS.map((kind) => ({ kind, enforcesKey: kind === 'redis' }));

describe.each(cases)(
  'a trip of five bookings over $kind, undoing twice is harmless: $enforcesKey',
  { timeout: 1_200_000 },
  ({ kind, enforcesKey }) => {
    it('R-18.6 whose process is killed at its steps is undone once by two that resume at once', async () => {
      const place = at.place(kind, 'trips');
      const deaths = await untilLast(
        async (dieAt) => (await at.run({ act: 'book', place, turnId: `t${dieAt}`, dieAt, enforcesKey })) !== 'killed',
      );
      const survivors = await at.survivors();
      await survivors.settled({ place, turnId: 'all', enforcesKey });
      expect(problemsIn(place.books, enforcesKey)).toEqual([]);
      told(`${kind} ${enforcesKey}`, { deaths, undone: counted(place.books, 'undo') });
      // The kills were real ones, in booking as well as in undoing, and there was something left to undo.
      expect(deaths).toBeGreaterThan(80 / EVERY);
      expect(counted(place.books, 'died')).toBe(deaths);
      expect(counted(place.books, 'undo')).toBeGreaterThan(deaths);
    });

    it.each(['after book hotel 1', 'before undo insurance 1', 'after undo tour 1'])(
      'R-18.6 killed %s, of which the next process is killed at its steps, is finished by two others',
      async (diesAt) => {
        const survivors = await at.survivors();
        const problems: string[] = [];
        const deaths = await untilLast(async (dieAt) => {
          const place = at.place(kind, `n${dieAt}`);
          const task = { place, turnId: `t${dieAt}`, enforcesKey } as const;
          expect(await at.run({ ...task, act: 'book', dieAt: diesAt })).toBe('killed');
          const end = await at.run({ ...task, act: 'resume', dieAt });
          await survivors.settled(task);
          problems.push(...problemsIn(place.books, enforcesKey));
          return end !== 'killed';
        });
        expect(problems).toEqual([]);
        told(`${kind} ${enforcesKey} ${diesAt}`, { deaths });
        expect(deaths).toBeGreaterThanOrEqual(Math.floor(20 / EVERY));
      },
    );
  },
);
