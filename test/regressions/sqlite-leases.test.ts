// Was: the wall clock set forward ended leases of running calls and forgot what had been paid, a moved file took
// outcomes that nobody saw, as did one whose -wal or -shm was deleted, a damaged record was worth a retry. Now: none of
// it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createSpillway, tool, type DedupeStore, type TraceEvent } from 'spillway';
import { sqliteStore } from 'spillway/stores/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LONG_MS, claimOf, finish, found, own, refused } from '../../src/testing/store-conformance/check.ts';
import { asked } from '../spec/tr-02-stores.ts';

let folder: string;
let path: string;
const opened: DedupeStore[] = [];
const open = (options: Parameters<typeof sqliteStore>[1] = {}): DedupeStore => {
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

/**
 * What a wall clock that is set forward does to records: they are that much older. The machine's own clock goes on as
 * it went.
 */
const setForward = (ms: number): void => {
  const db = new DatabaseSync(path);
  const times = ['createdAtMs', 'updatedAtMs', 'expiresAtMs', 'lockUntilMs'];
  const older = times.map((time) => `'$.${time}', json_extract(record, '$.${time}') - ${ms}`).join(', ');
  db.exec(
    `UPDATE records SET record = json_replace(record, ${older}), expires_at = expires_at - ${ms}, lock_until = iif(lock_until = 0, 0, lock_until - ${ms}),
      lease_until = iif(lock_until = 0, lease_until + ${ms}, lease_until)`,
  );
  db.close();
};
const change = (sql: string): void => {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
};

const HOUR_MS = 3_600_000;

describe('R-9.6 sqlite: leases go by the clock of the machine', () => {
  it.each([600_000, 48 * HOUR_MS])(
    'R-9.6 the wall clock set forward by %i ms ends no lease: not for a claim, a renewal, a sweep, a list, or who needs room',
    async (ms) => {
      const [store, other] = [open({ maxRecords: 2 }), open({ maxRecords: 2 })];
      const first = await own(store, claimOf('k', { leaseMs: 60_000, ttlMs: 120_000 }));
      const second = await own(store, claimOf('l', { leaseMs: 60_000, ttlMs: 120_000 }));
      setForward(ms);
      for (const handle of [store, other]) {
        const { record, atMs } = await refused(handle, claimOf('k'), first.version);
        expect((record.lockUntilMs ?? 0) - atMs).toBeGreaterThan(30_000);
        expect((record.lockUntilMs ?? 0) - atMs).toBeLessThanOrEqual(60_000);
        expect(await handle.sweep()).toBe(0);
        let listed = 0;
        for await (const { key } of handle.byTool('search')) if (key !== '') listed++;
        expect(listed).toBe(2);
        await expect((async () => handle.setIfNotExists(claimOf('new')))()).rejects.toMatchObject({
          code: 'store_full',
        });
      }
      expect(await store.renew('k', first.version, 60_000)).toBe(true);
      const renewed = await found(other, 'k');
      expect((renewed.record.lockUntilMs ?? 0) - renewed.atMs).toBeGreaterThan(30_000);
      await finish(store, first);
      expect(await store.delete('l', second.version)).toBe(true);
    },
  );

  it('R-9.6 set back, it makes no lease longer', async () => {
    const store = open();
    const { version } = await own(store, claimOf('k', { leaseMs: 200 }));
    setForward(-600_000);
    await expect
      .poll(async () => (await store.setIfNotExists(claimOf('k', { requestId: 'r2' }), version)).created, {
        timeout: 60_000,
      })
      .toBe(true);
  });

  it('R-9.6 a call is not run a second time when the wall clock is set forward in the middle of it', async () => {
    let begun = 0;
    let end: ((value: string) => void) | undefined;
    const layerOf = () =>
      createSpillway({
        store: open(),
        tools: [
          tool({
            name: 't',
            policy: { dedupe: { leaseMs: 60_000 } },
            execute: () => new Promise<string>((resolve) => (begun++, (end = resolve))),
          }),
        ],
      });
    const first = layerOf().execute(asked());
    await expect.poll(() => begun).toBe(1);
    setForward(600_000);
    const second = layerOf().execute(asked());
    await expect.poll(() => begun, { timeout: 300 }).toBe(1);
    end?.('once');
    expect(await Promise.all([first, second])).toMatchObject([
      { status: 'success', fromCache: false },
      { status: 'success', fromCache: true },
    ]);
    expect(begun).toBe(1);
  });

  it.each([48 * HOUR_MS, -48 * HOUR_MS])(
    'R-10.2 the wall clock set forward by %i ms forgets no result, and no claim whose owner has died',
    async (ms) => {
      let paid = 0;
      const store = open();
      const policy = { effects: 'mutating', safetyCritical: true } as const;
      const layer = createSpillway({ store, tools: [tool({ name: 't', policy, execute: () => ++paid })] });
      await layer.execute(asked());
      const dead = await own(store, claimOf('dead', { leaseMs: 1, ttlMs: HOUR_MS }));
      await expect
        .poll(async () => ((await found(store, 'dead')).record.lockUntilMs ?? 0) - Date.now())
        .toBeLessThan(0);
      setForward(ms);
      expect(await store.sweep()).toBe(0);
      const listed: string[] = [];
      for await (const { key } of store.byTool('search')) listed.push(key);
      expect(listed).toStrictEqual(['dead']);
      expect((await refused(store, claimOf('dead'))).record.version).toBe(dead.version);
      const again = await layer.execute(asked());
      expect(again).toMatchObject({ status: 'success', fromCache: true });
      expect(again.cache?.ageMs).toBeLessThan(60_000);
      expect(paid).toBe(1);
    },
  );

  it('R-10.2 the wall clock set back keeps no result for longer', async () => {
    const store = open();
    await finish(store, await own(store, claimOf('k')), '1', 100);
    setForward(-48 * HOUR_MS);
    await expect.poll(async () => store.get('k')).toBe(undefined);
    expect(await own(store, claimOf('k'))).toMatchObject({ state: 'inflight' });
  });

  it('R-9.6 of a lease from before the machine was started only the wall clock can tell', async () => {
    const store = open();
    for (const sql of [
      "UPDATE records SET boot = '00000000-0000-4000-8000-000000000000'",
      'UPDATE records SET leased_at = 9e15, lease_until = 9e15',
    ]) {
      const { version } = await own(store, claimOf('k', { leaseMs: 60_000 }));
      change(sql);
      await refused(store, claimOf('k'), version);
      setForward(60_001);
      const { version: next } = await own(store, claimOf('k'), version);
      expect(await store.delete('k', next)).toBe(true);
    }
  });

  it('R-10.2 a file of the first schema is used on: what ran in it keeps its lease by the wall clock', async () => {
    const before = open();
    const { version } = await own(before, claimOf('k', { leaseMs: 60_000 }));
    const done = await finish(before, await own(before, claimOf('done')));
    await before.close?.();
    change(
      'ALTER TABLE records DROP COLUMN boot; ALTER TABLE records DROP COLUMN leased_at; ALTER TABLE records DROP COLUMN lease_until; PRAGMA user_version = 1',
    );
    const store = open();
    await refused(store, claimOf('k'), version);
    expect((await found(store, 'done')).record).toEqual(done);
    setForward(60_001);
    await own(store, claimOf('k'), version);
  });
});

describe('R-10.3 sqlite: what a call hears of its file', () => {
  it('R-10.3 deleted while a call runs: the call is aborted at its next renewal, uncertain, and the trace names the file', async () => {
    let aborted = false;
    const store = open();
    const execute = (_input: unknown, { signal }: { readonly signal: AbortSignal }): Promise<never> =>
      new Promise(() => signal.addEventListener('abort', () => (aborted = true)));
    const layer = createSpillway({
      store,
      tools: [
        tool({
          name: 't',
          policy: { timeoutMs: 60_000, retry: { maxAttempts: 1 }, dedupe: { leaseMs: 3_000 } },
          execute,
        }),
      ],
    });
    const events: TraceEvent[] = [];
    layer.trace$.subscribe((event) => events.push(event));
    const running = layer.execute(asked());
    await expect.poll(() => events.some(({ type }) => type === 'attempt_started')).toBe(true);
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
    const deletedMs = performance.now();
    expect((await running).error).toMatchObject({ code: 'store_unavailable', uncertain: true });
    expect(aborted).toBe(true);
    // At the next renewal, and not at the end of the lease.
    expect(events.filter((event) => event.type === 'store_changed')).toMatchObject([
      { state: 'lost', message: expect.stringContaining('moved, deleted or replaced') as string },
    ]);
    expect(performance.now() - deletedMs).toBeLessThan(20_000);
  });

  it.each(['-wal', '-shm'])(
    'R-10.3 its %s deleted while it is in use: whoever opens it sees nothing of ours, so no word of it is taken',
    async (suffix) => {
      const store = open();
      const { version } = await own(store, claimOf('k'));
      rmSync(`${path}${suffix}`);
      const moved = { kind: 'store_unavailable', code: 'store_moved' };
      await expect((async () => store.setIfNotExists(claimOf('new')))()).rejects.toMatchObject(moved);
      await expect((async () => store.renew('k', version, LONG_MS))()).rejects.toMatchObject(moved);
      await expect((async () => store.get('k'))()).rejects.toMatchObject(moved);
      await store.close?.();
      await own(open(), claimOf('new'));
    },
  );

  it('R-10.3 a damaged record is no lost store: the call fails for good, and nothing is told of the store', async () => {
    const store = open();
    const layer = createSpillway({ store, tools: [tool({ name: 't', execute: () => 1 })] });
    const events: TraceEvent[] = [];
    layer.trace$.subscribe((event) => events.push(event));
    await layer.execute(asked());
    change(`UPDATE records SET record = '{"cut'`);
    expect(await layer.execute(asked())).toMatchObject({
      error: { code: 'store_unavailable', terminal: true, retriable: false },
    });
    expect(events.filter(({ type }) => type === 'store_changed')).toEqual([]);
  });

  it('R-10.3 one write that fails among many that wait for the lock fails alone', async () => {
    const store = open();
    const claim = await own(store, claimOf('good'));
    await own(store, claimOf('damaged'));
    change(`UPDATE records SET record = 'x' WHERE key = '"damaged"'`);
    const holder = new DatabaseSync(path);
    holder.exec('BEGIN IMMEDIATE');
    const outcome = { state: 'done', ttlMs: LONG_MS, payload: '1' } as const;
    const waiting = Promise.allSettled([
      ...Array.from({ length: 20 }, async (_, i) => store.setIfNotExists(claimOf(`k${i}`))),
      (async () => store.compareAndSet('damaged', 1, outcome))(),
      (async () => store.compareAndSet('good', claim.version, outcome))(),
      (async () => store.renew('damaged', 1, 1_000))(),
      ...Array.from({ length: 20 }, async (_, i) => store.setIfNotExists(claimOf(`l${i}`))),
    ]);
    holder.exec('COMMIT');
    holder.close();
    const answers = await waiting;
    expect(answers.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([20, 22]);
    const versions = answers.flatMap((answer) =>
      answer.status === 'fulfilled' && typeof answer.value === 'object' && 'created' in answer.value
        ? [answer.value.record.version]
        : [],
    );
    expect(new Set(versions).size).toBe(40);
    for (const i of [0, 19]) expect((await found(store, `k${i}`)).record.version).toBe(versions[i]);
    expect((await found(store, 'good')).record.state).toBe('done');
  });
});
