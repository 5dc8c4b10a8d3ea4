import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linesIn, problemsIn } from './books.ts';
import { world } from './kit.ts';

/** One of each kind. */
const DEATHS = ['ask put 2', 'after book hotel 1', 'hear claim 3', 'after undo tour 1', 'hear put 25'];

it('R-18.6 a trip whose process is killed at some of its steps is undone once by two that resume at once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-deaths-'));
  const at = world(folder, '');
  onTestFinished(async () => {
    await at.end();
    rmSync(folder, { recursive: true, force: true });
  });
  const place = at.place('sqlite', 'trips');
  const enforcesKey = false;
  const survivors = at.survivors();
  for (const dieAt of DEATHS)
    expect(await at.run({ act: 'book', place, turnId: dieAt, dieAt, enforcesKey })).toBe('killed');
  await (await survivors).settled({ place, turnId: 'all', enforcesKey });
  expect(problemsIn(place.books, enforcesKey)).toEqual([]);
  expect(linesIn(place.books).filter(({ act }) => act === 'undo').length).toBeGreaterThan(DEATHS.length);
});
