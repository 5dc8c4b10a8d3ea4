import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { sqliteStore, type SqliteStoreOptions } from 'spillway/stores/sqlite';
import { virtualRuntime } from 'spillway/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DedupeStore } from '../../src/contract/store.ts';
import { loadSqlite } from '../../src/stores/sqlite/file.ts';
import { claimOf, found, finish, own, refused } from '../../src/testing/store-conformance/check.ts';

let folder: string;
let path: string;
const opened: DedupeStore[] = [];
const open = (options?: SqliteStoreOptions): DedupeStore => {
  const store = sqliteStore(path, options);
  opened.push(store);
  return store;
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-sqlite-'));
  path = join(folder, 'calls.db');
});
afterEach(async () => {
  vi.useRealTimers();
  for (const store of opened.splice(0)) await store.close?.();
  rmSync(folder, { recursive: true });
});

describe('R-10.2 sqlite: time', () => {
  it('R-10.2 a process whose Date is ten minutes ahead steals nothing', async () => {
    const [store, other] = [open(), open()];
    const { version } = await own(store, claimOf('k', { leaseMs: 300_000 }));
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() + 600_000 });
    const { record, atMs } = await refused(other, claimOf('k'), version);
    expect(record.lockUntilMs).toBeGreaterThan(atMs);
    expect(await other.sweep()).toBe(0);
    const late = await own(other, claimOf('late', { leaseMs: 1_000 }));
    expect(Math.abs(late.createdAtMs - record.createdAtMs)).toBeLessThan(60_000);
  });

  it('R-10.2 what has expired is swept in batches, and as new claims come', async () => {
    const store = open();
    for (let i = 0; i < 1_201; i++) await own(store, claimOf(`old ${i}`, { leaseMs: 1, ttlMs: 1 }));
    // Of the latest hundred some may not have expired when the sweep came by.
    expect((await store.report?.())?.records).toBeLessThan(400);
    await setTimeout(20);
    const left = (await store.report?.())?.records ?? 0;
    expect(await store.sweep()).toBe(left);
    expect(await store.report?.()).toMatchObject({ records: 0 });
    const db = new DatabaseSync(path);
    db.exec(`BEGIN; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1700)
      INSERT INTO records (key, tool, session, version, lock_until, expires_at, record) SELECT 'k' || i, '', '', i, 0, 1, '' FROM n; COMMIT`);
    db.close();
    expect(await store.sweep()).toBe(1_700);
  });
});

describe('R-10.2 sqlite: bounds and reports', () => {
  it('R-10.2 with maxRecords the next to expire goes first, a running claim never', async () => {
    const store = open({ maxRecords: 3 });
    const running = await own(store, claimOf('runs', { ttlMs: 1_000_000 }));
    await finish(store, await own(store, claimOf('soon')), '1', 100_000);
    await finish(store, await own(store, claimOf('later')), '1', 900_000);
    await finish(store, await own(store, claimOf('new')), '1', 800_000);
    expect(
      await Promise.all(['runs', 'soon', 'later', 'new'].map(async (key) => (await store.get(key)) !== undefined)),
    ).toEqual([true, false, true, true]);
    await own(store, claimOf('b'));
    await own(store, claimOf('c'));
    await expect((async () => store.setIfNotExists(claimOf('d')))()).rejects.toMatchObject({
      kind: 'store_unavailable',
      code: 'store_full',
      executed: false,
    });
    expect(await store.report?.()).toMatchObject({ records: 3 });
    await finish(store, running);
    await own(store, claimOf('d'));
  });

  it('R-10.3 the report says what a power loss costs, unless synchronous is full', async () => {
    expect(await open().report?.()).toMatchObject({
      kind: 'sqlite',
      durability: 'disk',
      shared: true,
      records: 0,
      warnings: [expect.stringContaining('loss of power')],
    });
    expect(await open({ synchronous: 'full' }).report?.()).toMatchObject({ durability: 'disk', warnings: [] });
  });

  it.each([
    ['', {}, 'path must be the path of a file, not ""'],
    [':memory:', {}, 'memoryStore()'],
    ['x.db', { busyTimeoutMs: -1 }, 'busyTimeoutMs must be a duration from 0 to 2147483647 milliseconds, not -1'],
    ['x.db', { maxRecords: 0.5 }, 'maxRecords'],
    ['x.db', { synchronous: 'off' } as unknown as SqliteStoreOptions, 'synchronous must be one of normal, full'],
    ['x.db', { busyTimeout: 5 } as SqliteStoreOptions, 'sqliteStore has no option "busyTimeout"'],
  ])('R-2.9 options are checked: %j %j', (path, options, message) => {
    expect(() => sqliteStore(path, options)).toThrow(message);
    expect(() => sqliteStore(path, options)).toThrow(RangeError);
  });

  it.each([{ leaseMs: 0 }, { leaseMs: Number.NaN }, { ttlMs: Infinity }])(
    'R-2.9 and so are durations, and nothing is left half done: %j',
    async (part) => {
      const store = open();
      expect(() => store.setIfNotExists(claimOf('k', part))).toThrow(RangeError);
      const { version } = await own(store, claimOf('k'));
      expect(() => store.renew('k', version, -1)).toThrow('leaseMs must be a duration above 0');
      expect(() => store.compareAndSet('k', version, { state: 'done', ttlMs: 0 })).toThrow(
        'ttlMs must be a duration above 0',
      );
      await finish(open(), (await found(store, 'k')).record);
    },
  );

  it('R-10.2 a Node without node:sqlite is told which has it', () => {
    expect(() => loadSqlite({ getBuiltinModule: () => undefined })).toThrow('Node 22.13 or later');
    expect(() => loadSqlite({})).toThrow('--experimental-sqlite');
  });
});

describe('R-10.1 sqlite: changes of another process', () => {
  it('R-10.1 are noticed by polling, which goes on only while someone watches', async () => {
    const runtime = virtualRuntime();
    const [store, other] = [open({ runtime }), open()];
    const heard: string[] = [];
    const listen = (key: string) => store.changes?.(key).subscribe(() => heard.push(key));
    expect(runtime.pending).toBe(0);
    const [a, b] = [listen('a'), listen('b')];
    await runtime.advance(1_000);
    expect([heard, runtime.pending]).toEqual([[], 1]);
    await own(other, claimOf('a'));
    await runtime.advance(50);
    // Which key it was is not told: who waits asks.
    expect(heard).toEqual(['a', 'b']);
    await runtime.advance(1_000);
    expect(heard).toHaveLength(2);
    await own(store, claimOf('b'));
    expect(heard).toEqual(['a', 'b', 'b']);
    a?.unsubscribe();
    expect(runtime.pending).toBe(1);
    b?.unsubscribe();
    expect(runtime.pending).toBe(0);
    const again = listen('a');
    await store.close?.();
    expect([again?.closed, runtime.pending]).toEqual([true, 0]);
  });
});

it('R-10.2 a record outlives the store that wrote it, and its fence too', async () => {
  const first = open();
  const done = await finish(first, await own(first, claimOf('k')), '{"a":1}');
  const gone = await finish(first, await own(first, claimOf('gone')));
  await first.delete('gone');
  await first.close?.();
  const second = open();
  expect((await found(second, 'k')).record).toStrictEqual(done);
  expect((await own(second, claimOf('gone'))).version).toBeGreaterThan(gone.version);
});
