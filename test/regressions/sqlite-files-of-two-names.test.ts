// Was: a SQLite file with two names by a hard link gave each name records of its own, and a store whose path is a
// symbolic link did not notice that the log was gone. Now: the first is refused, the second is noticed.
import { linkSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from 'spillway/stores/sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { claimOf, finish, own, refused } from '../../src/testing/store-conformance/check.ts';

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'spillway-names-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
};

const open = (path: string) => {
  const store = sqliteStore(path);
  onTestFinished(() => store.close?.());
  return store;
};

it('R-10.3 a file that has a second name by a hard link is refused by either name', async () => {
  const [one, two] = ['calls.db', 'linked.db'].map((name) => join(folder(), name)) as [string, string];
  const store = open(one);
  const claim = await own(store, claimOf('k'));
  linkSync(one, two);
  for (const path of [one, two])
    expect(() => sqliteStore(path)).toThrow(
      expect.objectContaining({ kind: 'store_unavailable', code: 'store_linked' }),
    );
  rmSync(two);
  await refused(open(one), claimOf('k'));
  await finish(store, claim);
});

it('R-10.3 a store whose path is a symbolic link shares its records, and notices that the log is gone', async () => {
  const place = folder();
  const [file, link] = [join(place, 'calls.db'), join(place, 'link.db')];
  const store = open(file);
  symlinkSync(file, link);
  const linked = open(link);
  await own(store, claimOf('k'));
  await refused(linked, claimOf('k'));
  for (const part of ['-wal', '-shm']) rmSync(file + part);
  for (const [name, each] of Object.entries({ store, linked }))
    await expect((async () => each.setIfNotExists(claimOf(name)))()).rejects.toMatchObject({ code: 'store_moved' });
});
