import type { DedupeRecord } from '../../contract/store.ts';
import { LONG_MS, OVER_MS, SHORT_MS, check, claimOf, finish, found, own, same, type HarnessCase } from './check.ts';

const keysOf = async (records: AsyncIterable<DedupeRecord>): Promise<string[]> => {
  const keys: string[] = [];
  for await (const { key } of records) keys.push(key);
  return keys.toSorted();
};

const MANY = 500;
/** A notification may take a moment; nothing may take this long. */
const NOTICE_STEPS = 200;
const NOTICE_STEP_MS = 50;

/** Lists, sweeping, notification, report. */
export const listCases: readonly HarnessCase[] = [
  {
    name: 'byTool and bySession list exactly the live records of that name',
    run: async ({ store, open }) => {
      const other = (await open?.()) ?? store;
      const put = (key: string, tool: string, sessionKey: string, tenantId?: string): Promise<DedupeRecord> =>
        own(store, claimOf(key, { tool, sessionKey, ...(tenantId === undefined ? {} : { tenantId }) }));
      await put('k1', 'search', 's1');
      const ended = await put('k2', 'search', 's2');
      await put('k3', 'search_backup', 's1', 't1');
      await put('k4', 'sear', 's', 't2');
      await put('k5', 'book', 's1:x');
      await put('k6', 's1', 'search');
      await finish(store, ended);
      for (const handle of [store, other]) {
        same(await keysOf(handle.byTool('search')), ['k1', 'k2'], 'records of the tool search');
        same(await keysOf(handle.bySession('s1')), ['k1', 'k3'], 'records of the session s1');
        same(
          [
            await keysOf(handle.byTool('s')),
            await keysOf(handle.bySession('s')),
            await keysOf(handle.byTool('')),
            await keysOf(handle.bySession('none')),
          ],
          [[], ['k4'], [], []],
          'others',
        );
      }
      for await (const record of other.byTool('search'))
        same(record, (await found(store, record.key)).record, 'a listed record');
    },
  },
  {
    name: 'what was deleted, has expired, or was claimed anew for another tool and session is not listed',
    run: async ({ store, pass }) => {
      for (const key of ['deleted', 'moved', 'stays']) await own(store, claimOf(key, { leaseMs: SHORT_MS }));
      await own(store, claimOf('expired', { leaseMs: SHORT_MS, ttlMs: SHORT_MS }));
      await pass(OVER_MS);
      await store.delete('deleted');
      await own(
        store,
        claimOf('moved', { tool: 'book', sessionKey: 's2' }),
        (await found(store, 'moved')).record.version,
      );
      same(
        [await keysOf(store.byTool('search')), await keysOf(store.bySession('s1'))],
        [['stays'], ['stays']],
        'what is left',
      );
      same(
        [await keysOf(store.byTool('book')), await keysOf(store.bySession('s2'))],
        [['moved'], ['moved']],
        'what moved',
      );
    },
  },
  {
    name: 'a list that is read while others write ends, and has what was there throughout, once',
    run: async ({ store }) => {
      const stays = Array.from({ length: MANY }, (_, i) => `stays ${i}`);
      for (const key of stays) await own(store, claimOf(key));
      for (const list of [store.byTool('search'), store.bySession('s1')]) {
        const seen: string[] = [];
        for await (const { key } of list) {
          seen.push(key);
          if (seen.length > 10 * MANY) break;
          await store.delete(`new ${seen.length - 3}`);
          await own(store, claimOf(`new ${seen.length}`, { ttlMs: LONG_MS }));
          if (seen.length % 50 === 0) await new Promise((resolve) => void Promise.resolve().then(resolve));
        }
        check(seen.length <= 10 * MANY, 'a list must end while others write');
        same(seen.filter((key) => key.startsWith('stays')).toSorted(), stays.toSorted(), 'what was there throughout');
        for await (const { key } of store.byTool('search')) if (key.startsWith('new')) await store.delete(key);
      }
    },
  },
  {
    name: 'a list may be left early',
    run: async ({ store }) => {
      for (let i = 0; i < 20; i++) await own(store, claimOf(`k${i}`));
      for await (const { key } of store.byTool('search')) {
        check(key.startsWith('k'), 'a listed record');
        break;
      }
      same((await keysOf(store.bySession('s1'))).length, 20, 'records of the session');
    },
  },
  {
    name: 'sweep removes what has expired, says how much, and nothing else',
    run: async ({ store, pass, forgetsAlone = false }) => {
      same(await store.sweep(), 0, 'an empty store');
      for (let i = 0; i < 30; i++) await own(store, claimOf(`expires ${i}`, { leaseMs: SHORT_MS, ttlMs: SHORT_MS }));
      for (let i = 0; i < 10; i++) await finish(store, await own(store, claimOf(`ended ${i}`)), '1', SHORT_MS);
      await own(store, claimOf('lapsed', { leaseMs: SHORT_MS }));
      await own(store, claimOf('runs'));
      await finish(store, await own(store, claimOf('kept')));
      await pass(OVER_MS);
      const swept = await store.sweep();
      check(forgetsAlone ? swept >= 0 && swept <= 40 : swept === 40, `40 records had expired, and sweep says ${swept}`);
      same(await store.sweep(), 0, 'a second sweep');
      same(await keysOf(store.byTool('search')), ['kept', 'lapsed', 'runs'], 'what is left');
    },
  },
  {
    name:
      'changes, where there are any, tell of an outcome and of a deletion, end with the subscription and ' +
      'never fail',
    run: async ({ store, pass }) => {
      if (store.changes === undefined) return;
      const heard = { k: 0, ended: 0 };
      const problems: unknown[] = [];
      const listen = (count: () => void) =>
        store.changes?.('k').subscribe({ next: count, error: (error: unknown) => problems.push(error) });
      const subscriptions = [listen(() => heard.k++), listen(() => heard.ended++)];
      await pass(NOTICE_STEP_MS);
      subscriptions[1]?.unsubscribe();
      const until = async (what: string, act: () => Promise<unknown>): Promise<void> => {
        const before = heard.k;
        await act();
        for (let i = 0; heard.k === before && i < NOTICE_STEPS; i++) await pass(NOTICE_STEP_MS);
        check(heard.k > before, `nothing was heard of ${what}`);
      };
      const claim = await own(store, claimOf('k'));
      await until('an outcome', () => finish(store, claim));
      await until('a deletion', async () => store.delete('k'));
      subscriptions[0]?.unsubscribe();
      const before = { ...heard };
      await own(store, claimOf('k'));
      await pass(OVER_MS);
      same([heard, problems], [before, []], 'after the end of the subscription');
    },
  },
  {
    name: 'a report, where there is one, says how durable the store is, in sentences',
    run: async ({ store }) => {
      const report = await store.report?.();
      if (report === undefined) return;
      check(
        report.kind !== '' && ['process', 'memory', 'disk', 'replicated', 'unknown'].includes(report.durability),
        `kind ${report.kind}, durability ${report.durability}`,
      );
      check(
        report.warnings.every((text) => /^[A-Z].*\.$/s.test(text)),
        `warnings are sentences: ${report.warnings.join(' | ')}`,
      );
      if (report.records === undefined) return;
      await own(store, claimOf('k'));
      same((await store.report?.())?.records, report.records + 1, 'records after one more');
    },
  },
  {
    name: 'close may be called twice',
    run: async ({ store }) => {
      await own(store, claimOf('k'));
      await store.close?.();
      await store.close?.();
    },
  },
];
