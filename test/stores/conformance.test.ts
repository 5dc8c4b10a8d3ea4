import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { memoryStore } from 'spillway/stores/memory';
import { sqliteStore } from 'spillway/stores/sqlite';
import { storeConformance, virtualRuntime, type StoreHarness } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import type { DedupeStore } from '../../src/contract/store.ts';

type Wrap = (store: DedupeStore) => DedupeStore;

const memory = (wrap: Wrap = (store) => store): StoreHarness => {
  const runtime = virtualRuntime();
  const store = wrap(memoryStore({ runtime }));
  return { store, pass: (ms) => runtime.advance(ms), close: () => store.close?.() };
};

/** Two handles on one file are two connections: each sees the other as another process. */
const sqlite = (): StoreHarness => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-sqlite-'));
  const stores: DedupeStore[] = [];
  const open = (): DedupeStore => {
    const store = sqliteStore(join(folder, 'calls.db'));
    stores.push(store);
    return store;
  };
  return {
    store: open(),
    pass: (ms) => setTimeout(ms),
    open,
    close: async () => {
      for (const store of stores) await store.close?.();
      rmSync(folder, { recursive: true });
    },
  };
};

describe.each([
  ['memory', () => memory()],
  ['sqlite', sqlite],
] as const)('%s', (_name, makeStore) => {
  it.each(storeConformance(makeStore).map((storeCase) => [storeCase.name, storeCase] as const))(
    'R-10.3 %s',
    async (_name, storeCase) => storeCase.run(),
  );
});

/** What stores were seen to get wrong, and others may. */
const PLANTED: readonly (readonly [what: string, wrap: Wrap])[] = [
  [
    'the claim is a read and a write',
    (store) => ({
      ...store,
      setIfNotExists: async (claim, over) => {
        const reading = await store.get(claim.key);
        await setImmediate();
        if (reading !== undefined && over === undefined) return { ...reading, created: false };
        if (
          reading !== undefined &&
          over === reading.record.version &&
          (reading.record.lockUntilMs ?? 0) <= reading.atMs
        )
          await store.delete(claim.key);
        if (reading === undefined) await store.delete(claim.key);
        return store.setIfNotExists(claim, over);
      },
    }),
  ],
  [
    'a takeover trusts that the lease has lapsed, not the version',
    (store) => ({
      ...store,
      setIfNotExists: async (claim, over) =>
        store.setIfNotExists(claim, over === undefined ? undefined : (await store.get(claim.key))?.record.version),
    }),
  ],
  [
    'a late outcome is accepted',
    (store) => ({
      ...store,
      compareAndSet: async (key, version, outcome) =>
        store.compareAndSet(key, (await store.get(key))?.record.version ?? version, outcome),
    }),
  ],
  ['a late failure deletes the claim of the next', (store) => ({ ...store, delete: (key) => store.delete(key) })],
  [
    'a lost claim is renewed',
    (store) => ({
      ...store,
      renew: async (key, _version, leaseMs) => store.renew(key, (await store.get(key))?.record.version ?? 0, leaseMs),
    }),
  ],
  [
    'a renewal tells nothing where it did nothing',
    (store) => ({
      ...store,
      renew: async (key, version, leaseMs) => ((await store.renew(key, version, leaseMs)) || undefined) as boolean,
    }),
  ],
  [
    'an empty result is none',
    (store) => ({
      ...store,
      compareAndSet: (key, version, { payload, ...outcome }) =>
        store.compareAndSet(key, version, payload === undefined || payload === '' ? outcome : { ...outcome, payload }),
    }),
  ],
  [
    'names are compared without their case',
    (store) => ({ ...store, byTool: (tool) => store.byTool(tool.toLowerCase()) }),
  ],
  [
    'sweep counts nothing',
    (store) => ({
      ...store,
      sweep: async () => {
        await store.sweep();
        return 0;
      },
    }),
  ],
];

describe('the suite can fail', () => {
  it.each(PLANTED)('R-10.3 it finds: %s', async (_what, wrap) => {
    const failed: string[] = [];
    for (const { name, run } of storeConformance(() => memory(wrap)))
      await run().catch((error: unknown) => failed.push(`${name}: ${String(error)}`));
    expect(failed).not.toEqual([]);
  });
});
