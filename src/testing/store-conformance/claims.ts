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

/** Who may run: free keys, leases, takeovers, fences. */
export const claimCases: readonly HarnessCase[] = [
  {
    name: 'a key that nobody claimed has no record, and is free',
    run: async ({ store }) => {
      same(await store.get('k'), undefined, 'a key never claimed');
      await own(store, claimOf('k'));
    },
  },
  {
    name: "a claim's record is the claim, with times of the store's clock",
    run: async ({ store, pass }) => {
      const claim = claimOf('k', {
        tool: 'book',
        sessionKey: 's9',
        tenantId: 't1',
        requestId: 'r7',
        leaseMs: 70_000,
        ttlMs: 90_000,
      });
      const { created, record, atMs } = await store.setIfNotExists(claim);
      check(created, 'a free key was refused');
      const { createdAtMs, updatedAtMs, expiresAtMs, lockUntilMs, version, ...rest } = record;
      same(
        rest,
        { key: 'k', tool: 'book', idempotencyKey: 'of k', state: 'inflight', ttlMs: 90_000, request: claim.request },
        'the record',
      );
      sameMs(atMs, createdAtMs, 'when it was claimed');
      sameMs(updatedAtMs, createdAtMs, 'updatedAtMs');
      sameMs(lockUntilMs, createdAtMs + 70_000, 'lockUntilMs');
      sameMs(expiresAtMs, createdAtMs + 90_000, 'expiresAtMs');
      check(Number.isSafeInteger(version) && version > 0, `a version is an integer above 0, not ${version}`);
      await pass(OVER_MS);
      const reading = await found(store, 'k');
      same(reading.record, record, 'the record as it is read');
      check(
        reading.atMs - createdAtMs >= OVER_MS - 2,
        `${OVER_MS} ms after the claim the store's clock shows ${reading.atMs - createdAtMs} ms`,
      );
    },
  },
  {
    name: 'a second claim is refused and shows the first, also to another handle',
    run: async ({ store, open }) => {
      const record = await own(store, claimOf('k'));
      const other = (await open?.()) ?? store;
      for (const handle of [store, other]) {
        same((await refused(handle, claimOf('k', { requestId: 'r2' }))).record, record, 'what stands in the way');
        same((await found(handle, 'k')).record, record, 'the record after a refusal');
      }
    },
  },
  {
    name: 'a lapsed lease alone frees nothing: a claim without `over` is refused',
    run: async ({ store, pass }) => {
      const record = await own(store, claimOf('k', { leaseMs: SHORT_MS }));
      await pass(OVER_MS);
      const reading = await refused(store, claimOf('k'));
      same(reading.record, record, 'the record');
      check((reading.record.lockUntilMs ?? Infinity) <= reading.atMs, "the reading's time is past the lease");
    },
  },
  {
    name: 'a claim over a live lease is refused',
    run: async ({ store }) => {
      const { version } = await own(store, claimOf('k'));
      same(
        (await refused(store, claimOf('k', { requestId: 'r2' }), version)).record.request.requestId,
        'r1',
        'whose claim it is',
      );
    },
  },
  {
    name: 'a claim over a lapsed lease is granted, once, with a greater version',
    run: async ({ store, pass, open }) => {
      const first = await own(store, claimOf('k', { leaseMs: SHORT_MS }));
      await pass(OVER_MS);
      const other = (await open?.()) ?? store;
      const second = await own(other, claimOf('k', { requestId: 'r2' }), first.version);
      check(second.version > first.version, `the version went from ${first.version} to ${second.version}`);
      same([second.state, second.request.requestId], ['inflight', 'r2'], 'the new claim');
      await refused(store, claimOf('k', { requestId: 'r3' }), first.version);
      same((await found(store, 'k')).record, second, 'the record of who took over');
    },
  },
  {
    name: 'a claim over the version of an old read is refused: it was renewed, taken over or ended meanwhile',
    run: async ({ store, pass }) => {
      const renewed = await own(store, claimOf('renewed', { leaseMs: SHORT_MS }));
      const taken = await own(store, claimOf('taken', { leaseMs: SHORT_MS }));
      const ended = await own(store, claimOf('ended', { leaseMs: SHORT_MS }));
      await pass(OVER_MS);
      check(await store.renew('renewed', renewed.version, LONG_MS), 'a lapsed lease that nobody took may be renewed');
      await refused(store, claimOf('renewed'), renewed.version);
      // Taken over by a claim whose lease has lapsed as well: only the version tells the two apart.
      await own(store, claimOf('taken', { leaseMs: SHORT_MS }), taken.version);
      await finish(store, ended);
      await pass(OVER_MS);
      await refused(store, claimOf('taken'), taken.version);
      same((await refused(store, claimOf('ended'), ended.version)).record.state, 'done', 'what ended meanwhile');
    },
  },
  {
    name: 'a settled record is run again over its version, and only over it',
    run: async ({ store }) => {
      for (const state of ['failed', 'cancelled', 'done'] as const) {
        const claim = await own(store, claimOf(state));
        const outcome =
          state === 'done' ? { state, ttlMs: LONG_MS, payload: '1' } : { state, ttlMs: LONG_MS, error: failure };
        const settled = await store.compareAndSet(state, claim.version, outcome);
        check(settled !== undefined, `the outcome ${state} was refused`);
        same((await refused(store, claimOf(state))).record, settled, `a ${state} record in the way`);
        await refused(store, claimOf(state), claim.version);
        const again = await own(store, claimOf(state, { requestId: 'r2' }), settled.version);
        same(
          [again.state, again.payload, again.error],
          ['inflight', undefined, undefined],
          `the claim over a ${state} record`,
        );
        check(again.version > settled.version, `the version went from ${settled.version} to ${again.version}`);
      }
    },
  },
  {
    name: '`over` does not stand in the way of a free key',
    run: async ({ store, pass }) => {
      await own(store, claimOf('new'), 12_345);
      const gone = await own(store, claimOf('gone', { leaseMs: SHORT_MS, ttlMs: SHORT_MS }));
      await pass(OVER_MS);
      await own(store, claimOf('gone'), gone.version + 1);
    },
  },
  {
    name: 'an expired record is gone: read as nothing, free to claim, refused to its owner',
    run: async ({ store, pass }) => {
      const owner = await own(store, claimOf('k', { leaseMs: SHORT_MS, ttlMs: SHORT_MS }));
      const settled = await finish(store, await own(store, claimOf('settled')), '1', SHORT_MS);
      await pass(OVER_MS);
      same([await store.get('k'), await store.get('settled')], [undefined, undefined], 'expired records');
      same(await store.renew('k', owner.version, LONG_MS), false, 'renewing an expired claim');
      same(
        await store.compareAndSet('k', owner.version, { state: 'done', ttlMs: LONG_MS, payload: '1' }),
        undefined,
        'ending an expired claim',
      );
      same(
        [await store.delete('k'), await store.delete('settled', settled.version)],
        [false, false],
        'deleting expired records',
      );
      await own(store, claimOf('k'));
      await own(store, claimOf('settled'));
    },
  },
  {
    name: 'versions of a key only grow, also when the record was deleted or has expired',
    run: async ({ store, pass, open }) => {
      const versions: number[] = [];
      const handles = [store, (await open?.()) ?? store];
      for (let round = 0; round < 4; round++) {
        const handle = handles[round % 2] ?? store;
        const claim = await own(handle, claimOf('k'));
        const settled = await finish(handle, claim, '1', round % 2 === 0 ? LONG_MS : SHORT_MS);
        versions.push(claim.version, settled.version);
        if (round % 2 === 0) check(await handle.delete('k', settled.version), 'a record is deleted by its version');
        else await pass(OVER_MS);
      }
      check(
        versions.every((version, i) => i === 0 || version > (versions[i - 1] ?? Infinity)),
        `versions of one key: ${versions.join(', ')}`,
      );
    },
  },
  {
    name: 'a lease longer than the time to live keeps the record, and so does a renewal',
    run: async ({ store, pass }) => {
      await own(store, claimOf('leased', { ttlMs: SHORT_MS }));
      // Where time is real, a stall may outlast the second: then once more.
      for (let i = 0; ; i++) {
        const { key, version } = await own(store, claimOf(`renewed ${i}`, { leaseMs: 1_000, ttlMs: 1_000 }));
        const kept = await store.renew(key, version, LONG_MS);
        check(kept || i < 5, 'a running claim is renewed');
        if (!kept) continue;
        await pass(OVER_MS);
        await refused(store, claimOf('leased'));
        await pass(1_000);
        await refused(store, claimOf(key));
        return;
      }
    },
  },
];
