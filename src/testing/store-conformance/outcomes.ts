import type { DedupeOutcome } from '../../contract/store.ts';
import {
  LONG_MS,
  OVER_MS,
  SHORT_MS,
  check,
  claimOf,
  failure,
  finish,
  found,
  own,
  refused,
  same,
  sameMs,
  type HarnessCase,
} from './check.ts';

const done: DedupeOutcome = { state: 'done', ttlMs: LONG_MS, payload: '"late"' };
const failed: DedupeOutcome = { state: 'failed', ttlMs: LONG_MS, error: failure };
const cancelled: DedupeOutcome = {
  state: 'cancelled',
  ttlMs: LONG_MS,
  error: { ...failure, code: 'canceled', terminal: true },
};

/** How it ended: outcomes, renewals and deletions, of owners and of those who no longer are. */
export const outcomeCases: readonly HarnessCase[] = [
  {
    name: 'an outcome takes the place of the claim',
    run: async ({ store, pass, open }) => {
      const attempt = {
        startedAtMs: 1,
        finishedAtMs: 2.5,
        status: 'error',
        retriable: true,
        errorCode: 'ETIMEDOUT',
      } as const;
      const outcomes: DedupeOutcome[] = [
        {
          ...done,
          payload: '{"a":[1]}',
          ttlMs: 70_000,
          execution: { attemptCount: 2, attempts: [attempt, { ...attempt, status: 'success' }] },
        },
        { ...failed, error: { ...failure, uncertain: true }, execution: { attemptCount: 1, attempts: [attempt] } },
        cancelled,
      ];
      const other = (await open?.()) ?? store;
      for (const outcome of outcomes) {
        const key = outcome.state;
        const claim = await own(store, claimOf(key, { tenantId: 't1', ttlMs: 90_000 }));
        await pass(OVER_MS);
        const record = await store.compareAndSet(key, claim.version, outcome);
        check(record !== undefined, `the outcome ${key} was refused to the owner`);
        const { updatedAtMs, expiresAtMs, version, ...rest } = record;
        const { key: _key, tool, idempotencyKey, request, createdAtMs } = claim;
        same(rest, { key, tool, idempotencyKey, request, createdAtMs, ...outcome }, 'the record');
        check(version > claim.version, `the version went from ${claim.version} to ${version}`);
        check(
          updatedAtMs - createdAtMs >= OVER_MS - 2,
          `updatedAtMs is ${updatedAtMs - createdAtMs} ms after createdAtMs, and ${OVER_MS} passed`,
        );
        sameMs(expiresAtMs, updatedAtMs + outcome.ttlMs, 'expiresAtMs');
        same((await found(store, key)).record, record, 'the record as it is read');
        same((await found(other, key)).record, record, 'the record as another handle reads it');
      }
    },
  },
  {
    name: 'an identical claim after the end shows the record of the end',
    run: async ({ store }) => {
      const record = await finish(store, await own(store, claimOf('k')), '{"price":12.50}');
      for (let i = 0; i < 3; i++) same((await refused(store, claimOf('k'))).record, record, 'what is replayed');
    },
  },
  {
    name: 'an outcome with an old or unknown version is refused, twice, and changes nothing',
    run: async ({ store }) => {
      const claim = await own(store, claimOf('k'));
      for (const version of [claim.version - 1, claim.version + 1, 0]) {
        for (let i = 0; i < 2; i++)
          same(await store.compareAndSet('k', version, done), undefined, `an outcome for version ${version}`);
      }
      same((await found(store, 'k')).record, claim, 'the claim');
      const settled = await finish(store, claim);
      for (let i = 0; i < 2; i++)
        same(await store.compareAndSet('k', claim.version, failed), undefined, 'a second outcome of one claim');
      same((await found(store, 'k')).record, settled, 'the first outcome');
      same(await store.compareAndSet('never', 1, done), undefined, 'an outcome of a key never claimed');
      same(await store.get('never'), undefined, 'that key');
    },
  },
  {
    name: 'an outcome is replaced by one for its own version, once',
    run: async ({ store }) => {
      const settled = await finish(store, await own(store, claimOf('k')));
      const replaced = await store.compareAndSet('k', settled.version, failed);
      check(replaced?.state === 'failed' && replaced.version > settled.version, 'the outcome that replaced another');
      same(
        await store.compareAndSet('k', settled.version, done),
        undefined,
        'a second one for the version that was replaced',
      );
      same((await found(store, 'k')).record, replaced, 'the outcome that replaced another');
    },
  },
  {
    name: 'an outcome after a lapse that nobody noticed is accepted',
    run: async ({ store, pass }) => {
      const claim = await own(store, claimOf('k', { leaseMs: SHORT_MS }));
      await pass(OVER_MS);
      same((await finish(store, claim)).state, 'done', 'the record');
    },
  },
  {
    name: 'a late success or failure of an owner that lost its lease changes nothing',
    run: async ({ store, pass, open }) => {
      const late = (await open?.()) ?? store;
      const first = await own(late, claimOf('k', { leaseMs: SHORT_MS }));
      await pass(OVER_MS);
      const second = await own(store, claimOf('k', { requestId: 'r2' }), first.version);
      const tryAll = async (): Promise<void> => {
        for (const outcome of [done, failed, cancelled])
          same(await late.compareAndSet('k', first.version, outcome), undefined, `a late ${outcome.state}`);
        same(await late.delete('k', first.version), false, 'a late delete');
        same(await late.renew('k', first.version, LONG_MS), false, 'a late renewal');
      };
      await tryAll();
      same((await found(store, 'k')).record, second, 'the claim of who took over');
      const settled = await finish(store, second, '"right"');
      await tryAll();
      same((await found(late, 'k')).record, settled, 'the result of who took over');
    },
  },
  {
    name: 'a renewal moves the end of the lease, not the version',
    run: async ({ store, pass }) => {
      const claim = await own(store, claimOf('k', { leaseMs: SHORT_MS }));
      check(await store.renew('k', claim.version, LONG_MS), 'the owner may renew');
      const { record, atMs } = await found(store, 'k');
      same(
        [record.version, record.state, record.createdAtMs],
        [claim.version, 'inflight', claim.createdAtMs],
        'the renewed claim',
      );
      check(
        (record.lockUntilMs ?? 0) > atMs + LONG_MS / 2,
        `the lease ends ${(record.lockUntilMs ?? 0) - atMs} ms from now, not ${LONG_MS}`,
      );
      await pass(OVER_MS);
      await refused(store, claimOf('k'), claim.version);
      // A lease may be made shorter as well: it is given up.
      check(await store.renew('k', claim.version, SHORT_MS), 'the owner may shorten its lease');
      await pass(OVER_MS);
      await own(store, claimOf('k'), claim.version);
    },
  },
  {
    name: 'a claim that is gone, taken over or ended cannot be renewed',
    run: async ({ store, pass }) => {
      same(await store.renew('never', 1, LONG_MS), false, 'a key never claimed');
      const claim = await own(store, claimOf('k', { leaseMs: SHORT_MS }));
      same(await store.renew('k', claim.version + 1, LONG_MS), false, 'another version');
      await pass(OVER_MS);
      const next = await own(store, claimOf('k'), claim.version);
      same(await store.renew('k', claim.version, LONG_MS), false, 'one that was taken over');
      const settled = await finish(store, next);
      same(
        [await store.renew('k', next.version, LONG_MS), await store.renew('k', settled.version, LONG_MS)],
        [false, false],
        'one that ended',
      );
      same((await found(store, 'k')).record, settled, 'the record');
      check(await store.delete('k'), 'a record is deleted');
      same(await store.renew('k', settled.version, LONG_MS), false, 'one that was deleted');
    },
  },
  {
    name: 'delete with a version removes that one only, without one any',
    run: async ({ store, open }) => {
      const other = (await open?.()) ?? store;
      const claim = await own(store, claimOf('k'));
      same(
        [await store.delete('k', claim.version - 1), await store.delete('k', claim.version + 1)],
        [false, false],
        'delete with another version',
      );
      same((await found(store, 'k')).record, claim, 'the record');
      same(
        [await other.delete('k', claim.version), await store.delete('k', claim.version), await store.delete('k')],
        [true, false, false],
        'delete, and again',
      );
      same(await store.get('k'), undefined, 'a deleted record');
      same(await store.compareAndSet('k', claim.version, done), undefined, 'the outcome of a deleted claim');
      await own(store, claimOf('k'));
      same([await store.delete('k'), await other.get('k')], [true, undefined], 'delete without a version');
    },
  },
  {
    name: "a rejected duplicate never frees the owner's key",
    run: async ({ store, open }) => {
      const other = (await open?.()) ?? store;
      const claim = await own(store, claimOf('k'));
      for (let i = 0; i < 3; i++) {
        const { record } = await refused(
          other,
          claimOf('k', { requestId: `d${i}`, leaseMs: SHORT_MS, ttlMs: SHORT_MS }),
          i === 2 ? claim.version : undefined,
        );
        same(record, claim, "the owner's claim");
      }
      same((await found(other, 'k')).record, claim, "the owner's claim after them");
      await finish(store, claim, '"mine"');
    },
  },
];
