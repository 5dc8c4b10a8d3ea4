import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';
import fc from 'fast-check';
import { claimOf } from '../../src/testing/store-conformance/check.ts';
import { Deadlines, type Deadline } from '../../src/stores/memory/deadlines.ts';
import { MemoryRecords } from '../../src/stores/memory/records.ts';
import { runs } from '../../src/stores/record-life.ts';
import { memoryStore, type MemoryStoreOptions } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import type { DedupeRecord, DedupeStore } from '../../src/contract/store.ts';

const LEASE_MS = 120_000;
const DAY_MS = 86_400_000;

interface Kit {
  readonly runtime: VirtualRuntime;
  readonly store: DedupeStore;
  claim(key: string, leaseMs?: number): Promise<DedupeRecord>;
  complete(key: string): Promise<void>;
  has(key: string): Promise<boolean>;
}

const kit = (options: MemoryStoreOptions = {}): Kit => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, ...options });
  const claim = async (key: string, leaseMs = LEASE_MS): Promise<DedupeRecord> =>
    (await store.setIfNotExists(claimOf(key, { leaseMs, ttlMs: DAY_MS }))).record;
  return {
    runtime,
    store,
    claim,
    complete: async (key) => {
      await store.compareAndSet(key, (await claim(key)).version, { state: 'done', ttlMs: DAY_MS, payload: '1' });
    },
    has: async (key) => (await store.get(key)) !== undefined,
  };
};

describe('R-10.2 memory: what goes when it is full', () => {
  it('R-10.2 25,001 records with the first one running keep it', async () => {
    const { claim, complete, has, store } = kit();
    const { version } = await claim('first');
    for (let i = 0; i < 25_000; i++) await complete(`k${i}`);
    expect([await has('first'), await has('k0'), await has('k1'), await has('k24999')]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(await store.report?.()).toMatchObject({ records: 25_000, durability: 'process', shared: false });
    expect(await store.compareAndSet('first', version, { state: 'done', ttlMs: DAY_MS, payload: '1' })).toMatchObject({
      state: 'done',
    });
  });

  it('R-10.2 the least recently used goes first: reading and being refused are uses', async () => {
    const { complete, claim, has, store } = kit({ maxKeys: 3 });
    for (const key of ['a', 'b', 'c']) await complete(key);
    await store.get('a');
    await complete('d');
    expect([await has('b'), await has('c')]).toEqual([false, true]);
    // The order of use is now a, d, c.
    await claim('a');
    await complete('e');
    await complete('f');
    expect(await Promise.all(['a', 'c', 'd', 'e', 'f'].map(has))).toEqual([true, false, false, true, true]);
  });

  it('R-10.2 a store full of running claims refuses with `store full`, says so once, and keeps them all', async () => {
    const told: unknown[] = [];
    const { claim, complete, has, store, runtime } = kit({
      maxKeys: 3,
      onFull: (full) => {
        told.push(full);
        throw new Error('a logger that fails');
      },
    });
    const versions = [await claim('a'), await claim('b'), await claim('c')].map(({ version }) => version);
    for (let i = 0; i < 3; i++)
      await expect(claim('d')).rejects.toMatchObject({
        kind: 'store_unavailable',
        code: 'store_full',
        executed: false,
        message: expect.stringContaining('store full') as unknown,
      });
    expect(told).toEqual([{ maxKeys: 3 }]);
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(has))).toEqual([true, true, true, false]);
    // Duplicates are answered all the same, and an outcome makes room.
    expect((await store.setIfNotExists(claimOf('a'))).created).toBe(false);
    await store.compareAndSet('b', versions[1] ?? 0, { state: 'failed', ttlMs: DAY_MS });
    await complete('d');
    expect(await Promise.all(['a', 'b', 'c', 'd'].map(has))).toEqual([true, false, true, true]);
    await claim('e');
    await expect(claim('f')).rejects.toMatchObject({ kind: 'store_unavailable' });
    expect(told).toHaveLength(2);
    await runtime.advance(LEASE_MS);
    await claim('f');
  });

  it('R-10.2 a lease that lapsed makes its claim one of those that go, a renewal one that stays', async () => {
    const { claim, has, store, runtime } = kit({ maxKeys: 2 });
    const lapses = await claim('lapses', 1_000);
    const renews = await claim('renews', 1_000);
    await runtime.advance(999);
    await store.renew('renews', renews.version, LEASE_MS);
    await expect(claim('x')).rejects.toMatchObject({ kind: 'store_unavailable' });
    await runtime.advance(1);
    await claim('x');
    expect([await has('lapses'), await has('renews')]).toEqual([false, true]);
    expect(await store.compareAndSet('lapses', lapses.version, { state: 'done', ttlMs: DAY_MS })).toBeUndefined();
  });

  it('R-10.2 a running claim never goes while anything settled or lapsed is there, whatever happens', () => {
    const operation = fc.tuple(
      fc.constantFrom('claim', 'settle', 'renew', 'touch', 'remove', 'sweep'),
      fc.integer({ min: 0, max: 11 }),
      fc.integer({ min: 1, max: 40 }),
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), fc.integer({ min: 1, max: 6 }), (operations, max) => {
        const gone: string[] = [];
        const records = new MemoryRecords(max, (key) => gone.push(key));
        operations.forEach(([what, n, ms], atMs) => {
          const key = `k${n}`;
          const entry = records.find(key);
          const before = Array.from(records.all(), ({ record }) => record);
          gone.length = 0;
          const record: DedupeRecord = {
            ...claimOf(key),
            state: 'inflight',
            createdAtMs: atMs,
            updatedAtMs: atMs,
            expiresAtMs: atMs + 40,
            lockUntilMs: atMs + ms,
            version: atMs,
          };
          const { lockUntilMs: _lock, ...settled } = record;
          if (what === 'sweep') {
            expect(records.sweep(atMs)).toBe(before.filter(({ expiresAtMs }) => expiresAtMs <= atMs).length);
            expect(Array.from(records.all()).every(({ record }) => record.expiresAtMs > atMs)).toBe(true);
          } else if (entry === undefined) {
            const idle = before.filter((record) => !runs(record, atMs));
            const added = records.add(what === 'settle' ? settled : record, atMs);
            expect(added).toBe(before.length < max || idle.length > 0);
            if (!added || before.length < max) expect(gone).toEqual([]);
            else expect(idle.map(({ key }) => key)).toContain(gone[0]);
          } else if (what === 'remove') records.remove(entry);
          else if (what === 'touch') records.touch(entry);
          else records.replace(entry, what === 'settle' ? settled : record, atMs);
          expect(records.size).toBeLessThanOrEqual(max);
          expect(Array.from(records.all()).length).toBe(records.size);
        });
      }),
    );
  });
});

describe('R-10.2 memory: the heap of leases', () => {
  it('R-10.2 gives the earliest, whatever is added, moved and dropped', () => {
    const operation = fc.tuple(
      fc.integer({ min: 0, max: 30 }),
      fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 300 }), (operations) => {
        const heap = new Deadlines<Deadline>();
        const members = Array.from({ length: 31 }, (): Deadline => ({ dueMs: 0, place: -1 }));
        const expected = new Map<Deadline, number>();
        for (const [n, dueMs] of operations) {
          const member = members[n] as Deadline;
          if (dueMs === undefined) {
            heap.drop(member);
            expected.delete(member);
          } else {
            heap.put(member, dueMs);
            expected.set(member, dueMs);
          }
          expect([heap.size, heap.first?.dueMs]).toEqual([
            expected.size,
            expected.size === 0 ? undefined : Math.min(...expected.values()),
          ]);
        }
      }),
    );
  });
});

describe('R-10.2 memory: time', () => {
  it('R-10.2 a janitor runs while anything is stored, on a timer that holds no process', async () => {
    const { runtime, store, complete } = kit({ sweepMs: 1_000 });
    expect(runtime.pending).toBe(0);
    await complete('a');
    expect(runtime.pending).toBe(1);
    await runtime.advance(DAY_MS);
    await runtime.advance(1_000);
    expect(runtime.pending).toBe(0);
    expect(await store.sweep()).toBe(0);
    await complete('a');
    await store.delete('a');
    expect(runtime.pending).toBe(0);
    await complete('a');
    await store.close?.();
    expect(runtime.pending).toBe(0);
    await complete('late');
    expect(runtime.pending).toBe(0);
    const held: number[] = [];
    const background = { ...virtualRuntime(), after: (ms: number) => (held.push(ms), runtime.after(ms)) };
    await memoryStore({
      runtime: { ...runtime, after: () => expect.fail('a timer that holds the process'), background },
    }).setIfNotExists(claimOf('k'));
    expect(held).toEqual([60_000]);
  });

  it('R-10.2 a wall clock set forward ends no lease, and set back lengthens none', async () => {
    const { runtime, store, claim } = kit();
    const { version } = await claim('k', 1_000);
    runtime.jumpWall(600_000);
    expect((await store.setIfNotExists(claimOf('k'), version)).created).toBe(false);
    runtime.jumpWall(-3_600_000);
    await runtime.advance(1_000);
    expect((await store.setIfNotExists(claimOf('k'), version)).created).toBe(true);
  });

  it('R-9.6 a store made later gives greater versions: the fence outlives the process', async () => {
    const { runtime, claim } = kit();
    for (let i = 0; i < 100; i++) await claim(`k${i}`);
    const { version } = await claim('k');
    await runtime.advance(1);
    expect((await memoryStore({ runtime }).setIfNotExists(claimOf('k'))).record.version).toBeGreaterThan(version);
  });
});

describe('R-10.2 memory: bounds', () => {
  it('R-10.2 memory stays flat while keys come and go', async () => {
    const { store, complete } = kit({ maxKeys: 2_000 });
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = (): number => {
      collect();
      return process.memoryUsage().heapUsed / 1e6;
    };
    const stream = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) await complete(`key ${i} ${'x'.repeat(100)}`);
    };
    await stream(0, 50_000);
    const before = used();
    await stream(50_000, 300_000);
    expect(used() - before, 'megabytes more after 250,000 keys, of which 2,000 are kept').toBeLessThan(10);
    expect((await store.report?.())?.records).toBe(2_000);
  });

  it('R-10.1 a listener may use the store while it is told, also of what went to make room', async () => {
    const { store, claim, complete } = kit({ maxKeys: 2 });
    const seen: string[] = [];
    for (const key of ['a', 'b']) await complete(key);
    const told = store.changes?.('a').subscribe(() => {
      told?.unsubscribe();
      // 'a' went for 'c'; this takes the room of 'b'.
      seen.push(
        (store.setIfNotExists(claimOf('a', { requestId: 'listener' })) as { created: boolean }).created
          ? 'claimed'
          : 'refused',
      );
    });
    const other = store.changes?.('other').subscribe(() => seen.push('other'));
    await claim('c');
    other?.unsubscribe();
    await claim('b').catch(() => seen.push('full'));
    expect(seen).toEqual(['claimed', 'full']);
    expect((await store.report?.())?.records).toBe(2);
  });

  it('R-10.2 runs in a browser: no module of Node is reached', async () => {
    const { outputFiles } = await build({
      entryPoints: [join(import.meta.dirname, '../../src/stores/memory.ts')],
      bundle: true,
      platform: 'browser',
      format: 'esm',
      write: false,
      logLevel: 'silent',
    });
    expect(outputFiles[0]?.text).not.toMatch(/from "node:|require\("/);
  });

  it('R-10.1 closing ends what is watched, once for all', async () => {
    const { store } = kit();
    const ends: string[] = [];
    store.changes?.('k').subscribe({ complete: () => ends.push('watched before') });
    await store.close?.();
    await store.close?.();
    store.changes?.('k').subscribe({ complete: () => ends.push('watched after') });
    expect(ends).toEqual(['watched before', 'watched after']);
  });

  it.each([
    [{ maxKeys: 0 }, 'maxKeys must be an integer from 1 to 10000000, not 0'],
    [{ maxKeys: Infinity }, 'maxKeys'],
    [{ sweepMs: 0 }, 'sweepMs'],
    [{ sweepMs: Number.NaN }, 'sweepMs'],
    [{ maxkeys: 5 } as MemoryStoreOptions, 'memoryStore has no option "maxkeys"'],
  ])('R-2.9 options are checked: %j', (options, message) => {
    expect(() => memoryStore(options)).toThrow(message);
    expect(() => memoryStore(options)).toThrow(RangeError);
  });

  it.each([
    [{ leaseMs: 0 }, 'leaseMs'],
    [{ leaseMs: Number.NaN }, 'leaseMs'],
    [{ ttlMs: -1 }, 'ttlMs'],
    [{ ttlMs: Infinity }, 'ttlMs'],
  ])('R-2.9 and so are durations: %j', async (part, message) => {
    const { store } = kit();
    expect(() => store.setIfNotExists(claimOf('k', part))).toThrow(message);
    expect(await store.get('k')).toBeUndefined();
  });
});
