import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linesIn, problemsIn } from './books.ts';
import { world, type World } from './kit.ts';

/** One of each kind; test/soak/deaths.ts has them all. */
const DEATHS = ['ask put 1', 'ask put 2', 'after book hotel 1', 'hear claim 3', 'after undo tour 1', 'hear put 25'];
const enforcesKey = false;

const begun = (): World => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-deaths-'));
  const at = world(folder, '');
  onTestFinished(async () => {
    await at.end();
    rmSync(folder, { recursive: true, force: true });
  });
  return at;
};

it('R-18.6 a trip whose process is killed at some of its steps is undone once by two that resume at once', async () => {
  const at = begun();
  const place = at.place('sqlite', 'trips');
  const survivors = at.survivors();
  for (const dieAt of DEATHS)
    expect(await at.run({ act: 'book', place, turnId: dieAt, dieAt, enforcesKey })).toBe('killed');
  await (await survivors).settled({ place, turnId: 'all', enforcesKey });
  expect(problemsIn(place.books, enforcesKey)).toEqual([]);
  expect(linesIn(place.books).filter(({ act }) => act === 'undo').length).toBeGreaterThan(DEATHS.length);
});

it('R-18.6 of which the next process is killed while it undoes is finished by two others', async () => {
  const at = begun();
  const place = at.place('sqlite', 'trips');
  const survivors = at.survivors();
  const task = { place, turnId: 'trip', enforcesKey } as const;
  expect(await at.run({ ...task, act: 'book', dieAt: 'after book tour 1' })).toBe('killed');
  expect(await at.run({ ...task, act: 'resume', dieAt: 'after undo hotel 1' })).toBe('killed');
  await (await survivors).settled(task);
  expect(problemsIn(place.books, enforcesKey)).toEqual([]);
  expect(linesIn(place.books).filter(({ act }) => act === 'died')).toHaveLength(2);
});
