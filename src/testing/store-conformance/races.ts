import type { DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { seededRandom } from '../../policy/random.ts';
import { storeModelCase } from './model.ts';
import {
  LONG_MS,
  OVER_MS,
  SHORT_MS,
  check,
  claimOf,
  finish,
  found,
  own,
  refused,
  same,
  type HarnessCase,
  type StoreHarness,
} from './check.ts';

const RACERS = 8;
const KEYS = 2_000;
/** How many claims a racer has under way. */
const AT_ONCE = 50;

const handles = async ({ store, open }: StoreHarness): Promise<readonly DedupeStore[]> => {
  const list = [store];
  while (list.length < RACERS) list.push((await open?.()) ?? store);
  return list;
};

const shuffled = <T>(list: readonly T[], random: () => number): T[] => {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
};

/** All of them at once, in batches. */
const inBatches = async <T>(list: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  for (let i = 0; i < list.length; i += AT_ONCE) await Promise.all(list.slice(i, i + AT_ONCE).map(work));
};

/** Many at once: one owner, one outcome, one who takes over. */
export const raceCases = (seed: number): readonly HarnessCase[] => [
  {
    name: `${RACERS} racing for ${KEYS} keys give ${KEYS} owners`,
    run: async (harness) => {
      const random = seededRandom(seed);
      const keys = Array.from({ length: KEYS }, (_, i) => `k${i}`);
      const owners = new Map<string, DedupeRecord[]>();
      await Promise.all(
        (await handles(harness)).map(async (store, racer) =>
          inBatches(shuffled(keys, random), async (key) => {
            const { created, record } = await store.setIfNotExists(claimOf(key, { requestId: `racer ${racer}` }));
            if (created) owners.set(key, [...(owners.get(key) ?? []), record]);
          }),
        ),
      );
      same(owners.size, KEYS, 'keys that have an owner');
      for (const [key, records] of owners) {
        same(records.length, 1, `owners of ${key}`);
        same((await found(harness.store, key)).record, records[0], `the record of ${key}`);
      }
    },
  },
  {
    name: 'one of many who would take over a lapsed lease gets it',
    run: async (harness) => {
      const { store, pass } = harness;
      const stores = await handles(harness);
      for (let round = 0; round < 10; round++) {
        const lapsed = await own(store, claimOf(`k${round}`, { leaseMs: SHORT_MS }));
        await pass(OVER_MS);
        const all = await Promise.all(
          stores.map(async (handle, i) =>
            handle.setIfNotExists(claimOf(`k${round}`, { requestId: `r${i}` }), lapsed.version),
          ),
        );
        const granted = all.filter(({ created }) => created).map(({ record }) => record);
        same(granted.length, 1, 'who took over');
        for (const { record } of all) same(record, granted[0], 'what everyone is shown');
      }
    },
  },
  {
    name: 'of the owner that comes back and the one that takes over, one has the key',
    run: async (harness) => {
      const { store, pass } = harness;
      const other = (await harness.open?.()) ?? store;
      for (let round = 0; round < 20; round++) {
        const key = `k${round}`;
        const owner = await own(store, claimOf(key, { leaseMs: SHORT_MS }));
        if (round % 4 === 0) await pass(OVER_MS);
        else await pass(SHORT_MS / 2);
        const back = async (): Promise<boolean> =>
          round % 2 === 0
            ? store.renew(key, owner.version, LONG_MS)
            : (await store.compareAndSet(key, owner.version, { state: 'done', ttlMs: LONG_MS, payload: '1' })) !==
              undefined;
        const [kept, { created, record }] = await Promise.all([
          back(),
          other.setIfNotExists(claimOf(key, { requestId: 'r2' }), owner.version),
        ]);
        check(
          kept !== created,
          `the owner ${kept ? 'kept' : 'lost'} its claim, and another was ${created ? 'granted' : 'refused'}`,
        );
        same((await found(store, key)).record.request.requestId, created ? 'r2' : 'r1', 'whose record it is');
        check(created || record.version >= owner.version, 'a refusal shows the record in the way');
      }
    },
  },
  {
    name: 'one of many outcomes of one claim is accepted',
    run: async (harness) => {
      const stores = await handles(harness);
      for (let round = 0; round < 10; round++) {
        const key = `k${round}`;
        const claim = await own(harness.store, claimOf(key));
        const all = await Promise.all(
          stores.map(async (handle, i) =>
            handle.compareAndSet(key, claim.version, { state: 'done', ttlMs: LONG_MS, payload: String(i) }),
          ),
        );
        const accepted = all.filter((record) => record !== undefined);
        same(accepted.length, 1, 'outcomes that were accepted');
        same((await refused(harness.store, claimOf(key))).record, accepted[0], 'what is replayed');
      }
    },
  },
  {
    name: 'deleting and claiming at once never gives one claim two owners',
    run: async (harness) => {
      const stores = await handles(harness);
      const versions = new Set<number>();
      let granted = 0;
      await Promise.all(
        stores.map(async (store) => {
          for (let i = 0; i < 60; i++) {
            const { created, record } = await store.setIfNotExists(claimOf('k'));
            if (!created) continue;
            granted++;
            versions.add(record.version);
            const settled = i % 2 === 0 ? await finish(store, record) : record;
            check(await store.delete('k', settled.version), 'nobody else deletes what the owner holds');
          }
        }),
      );
      check(granted > 0, 'nobody was ever granted the key');
      same(versions.size, granted, 'versions, one for each claim granted');
    },
  },
  storeModelCase(seed),
];
