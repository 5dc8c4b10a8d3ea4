import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { liveRuntime } from '../../../src/runtime.ts';
import { sqliteStore, type SqliteStoreOptions } from 'spillway/stores/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DedupeStore } from '../../../src/contract/store.ts';
import { SqliteFile } from '../../../src/stores/sqlite/file.ts';
import { createSqliteStore } from '../../../src/stores/sqlite/records.ts';
import { LONG_MS, claimOf, finish, found, own, refused } from '../../../src/testing/store-conformance/check.ts';

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
  for (const store of opened.splice(0)) await store.close?.();
  rmSync(folder, { recursive: true });
});

/** What it throws or rejects with. */
const failureOf = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return expect.fail('it was to fail');
};
const unavailable = (code: string, remedy: string): unknown =>
  expect.objectContaining({
    kind: 'store_unavailable',
    executed: false,
    code,
    message: expect.stringContaining(remedy) as unknown,
  });

describe('R-10.3 sqlite: a file that cannot be used', () => {
  it('R-10.3 its folder is missing, or it is a folder itself', async () => {
    path = join(folder, 'missing', 'calls.db');
    expect(await failureOf(() => open())).toEqual(unavailable('SQLITE_CANTOPEN', 'folder must exist'));
    path = folder;
    expect(await failureOf(() => open())).toEqual(unavailable('SQLITE_CANTOPEN', 'folder must exist'));
  });

  it('R-10.3 it is no database, or one of another program: it is left as it was', async () => {
    writeFileSync(path, 'not a database, but long enough to be looked at. '.repeat(100));
    const before = readFileSync(path);
    expect(await failureOf(() => open())).toEqual(unavailable('SQLITE_NOTADB', 'no SQLite database'));
    expect(readFileSync(path).equals(before)).toBe(true);
    path = join(folder, 'another.db');
    const db = new DatabaseSync(path);
    db.exec('CREATE TABLE records (a); PRAGMA user_version = 1');
    db.close();
    const theirs = readFileSync(path);
    expect(await failureOf(() => open())).toEqual(unavailable('store_schema', 'another program’s database'));
    expect(readFileSync(path).equals(theirs)).toBe(true);
  });

  it('R-10.3 it was written by a later release', async () => {
    await open().close?.();
    const db = new DatabaseSync(path);
    db.exec('PRAGMA user_version = 3');
    db.close();
    expect(await failureOf(() => open())).toEqual(
      unavailable('store_schema', 'schema version 3, and this release of spillway knows 2'),
    );
  });

  it('R-10.3 it may not be written to', async () => {
    await open().close?.();
    chmodSync(folder, 0o755);
    chmodSync(path, 0o444);
    const root = process.getuid?.() === 0;
    // Root may write to anything.
    if (root) process.seteuid?.(65_534);
    try {
      expect(await failureOf(() => open())).toEqual(
        unavailable(expect.stringMatching(/^SQLITE_(READONLY|CANTOPEN)$/) as unknown as string, 'write'),
      );
    } finally {
      if (root) process.seteuid?.(0);
    }
  });

  it('R-10.3 pages of it were overwritten: what is asked of it fails, and nothing crashes', async () => {
    const store = open();
    for (let i = 0; i < 200; i++)
      await finish(store, await own(store, claimOf(`k${i}`)), JSON.stringify('x'.repeat(500)));
    await store.close?.();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4_096 * 3);
    writeFileSync(path, bytes);
    const failures: unknown[] = [];
    const damaged = open();
    for (let i = 0; i < 200; i += 20) failures.push(await failureOf(() => damaged.get(`k${i}`)));
    failures.push(await failureOf(() => damaged.setIfNotExists(claimOf('new'))));
    expect(failures).toEqual(failures.map(() => unavailable('SQLITE_CORRUPT', 'damaged')));
  });
});

describe('R-10.3 sqlite: trouble while in use', () => {
  it('R-10.3 a damaged record is refused by name of its fingerprint, listed last, deleted by its key; others are as before', async () => {
    const store = open();
    for (const key of ['a', 'secret key', 'z']) await finish(store, await own(store, claimOf(key)));
    const db = new DatabaseSync(path);
    const damages = [
      '{"key',
      'null',
      '{}',
      '{"key":"secret key"}',
      (await found(store, 'z')).record,
      { ...(await found(store, 'secret key')).record, version: 1 },
      { ...(await found(store, 'secret key')).record, payload: 5 },
    ];
    for (const damage of damages) {
      db.prepare(`UPDATE records SET record = ? WHERE key = '"secret key"'`).run(
        typeof damage === 'string' ? damage : JSON.stringify(damage),
      );
      for (const work of [
        () => store.get('secret key'),
        () => store.setIfNotExists(claimOf('secret key')),
        () => store.compareAndSet('secret key', 1, { state: 'done', ttlMs: LONG_MS }),
        () => store.renew('secret key', 1, LONG_MS),
      ]) {
        const error = await failureOf(work);
        expect(error).toEqual(unavailable('store_damaged', 'damaged; delete it by its key'));
        expect(error).toMatchObject({ classification: 'permanent' });
        expect((error as Error).message).not.toContain('secret');
      }
    }
    db.close();
    const listed: string[] = [];
    const error = await failureOf(async () => {
      for await (const { key } of store.byTool('search')) listed.push(key);
    });
    expect([listed, error]).toEqual([['a', 'z'], unavailable('store_damaged', 'damaged')]);
    await refused(store, claimOf('z'));
    expect(await store.delete('secret key')).toBe(true);
    await own(store, claimOf('secret key'));
  });

  it('R-10.3 a lock held for long: reads and refusals go on, nothing blocks the process, the rest waits up to busyTimeoutMs', async () => {
    const store = open({ busyTimeoutMs: 400 });
    const { version } = await own(store, claimOf('k'));
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    await refused(store, claimOf('k'));
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 10);
    const startMs = performance.now();
    expect(await failureOf(() => store.setIfNotExists(claimOf('new')))).toEqual(
      unavailable('SQLITE_BUSY', 'raise busyTimeoutMs'),
    );
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(395);
    expect(ticks).toBeGreaterThan(2);
    const waiting = Promise.all([
      own(store, claimOf('new')),
      (async () => store.compareAndSet('k', version, { state: 'done', ttlMs: LONG_MS, payload: '1' }))(),
      (async () => store.delete('none'))(),
    ]);
    await setTimeout(60);
    holder.exec('COMMIT');
    expect(await waiting).toEqual([
      expect.objectContaining({ state: 'inflight' }),
      expect.objectContaining({ state: 'done' }),
      false,
    ]);
    clearInterval(ticking);
    holder.close();
  });

  it('R-10.3 a lock held while a store is opened', async () => {
    await open().close?.();
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    expect(await failureOf(() => open({ busyTimeoutMs: 50 }))).toEqual(unavailable('SQLITE_BUSY', 'busyTimeoutMs'));
    holder.close();
    await own(open(), claimOf('k'));
  });

  it('R-10.3 a full disk: claims and outcomes are refused whole, what is there is read, and room made is used', async () => {
    const file = new SqliteFile(path, { runtime: liveRuntime, busyTimeoutMs: 1_000, synchronous: 'normal' });
    const store = createSqliteStore(file, { runtime: liveRuntime, maxRecords: Infinity, synchronous: 'normal' });
    opened.push(store);
    file.exec('PRAGMA max_page_count = 60');
    const payload = JSON.stringify('x'.repeat(5_000));
    const done: string[] = [];
    const error = await failureOf(async () => {
      for (let i = 0; i < 200; i++) {
        await finish(store, await own(store, claimOf(`k${i}`)), payload);
        done.push(`k${i}`);
      }
    });
    expect(error).toEqual(unavailable('SQLITE_FULL', 'the disk is full'));
    expect(done.length).toBeGreaterThan(10);
    for (const key of done) expect((await found(store, key)).record).toMatchObject({ state: 'done', payload });
    // The one whose outcome had no room is what it was: a claim.
    const unfinished = (await found(store, `k${done.length}`)).record;
    expect(unfinished.state).toBe('inflight');
    for (const key of done.slice(0, 5)) await store.delete(key);
    await finish(store, unfinished, payload);
    expect(statSync(path).size).toBeLessThanOrEqual(60 * 4_096);
  });

  it('R-10.3 a closed store says so, also to what was waiting', async () => {
    const store = open({ busyTimeoutMs: 10_000 });
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    const waiting = failureOf(() => store.setIfNotExists(claimOf('k')));
    await setTimeout(20);
    await store.close?.();
    expect(await waiting).toEqual(unavailable('store_closed', 'the store was closed'));
    expect(await failureOf(() => store.get('k'))).toEqual(unavailable('store_closed', 'the store was closed'));
    expect(await failureOf(() => store.sweep())).toEqual(unavailable('store_closed', 'the store was closed'));
    holder.close();
  });

  it('R-10.3 the file is replaced under a store in use: all that is asked of it says so, its owners hear of it, too', async () => {
    const store = open();
    const claim = await own(store, claimOf('k'));
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
    expect(await failureOf(() => store.setIfNotExists(claimOf('new')))).toEqual(
      unavailable('store_moved', 'make another one'),
    );
    const later = await own(open(), claimOf('new'));
    expect(later.version).toBeGreaterThan(claim.version);
    expect(await failureOf(() => store.setIfNotExists(claimOf('new')))).toEqual(
      unavailable('store_moved', 'make another one'),
    );
    expect(await failureOf(() => store.renew('k', claim.version, LONG_MS))).toEqual(
      unavailable('store_moved', 'make another one'),
    );
    expect(
      await failureOf(() => store.compareAndSet('k', claim.version, { state: 'done', ttlMs: LONG_MS, payload: '1' })),
    ).toEqual(unavailable('store_moved', 'make another one'));
    expect(await failureOf(() => store.get('k'))).toEqual(unavailable('store_moved', 'make another one'));
    expect(await failureOf(() => store.delete('k'))).toEqual(unavailable('store_moved', 'make another one'));
  });
});
