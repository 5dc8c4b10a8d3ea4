// Was: each worker that took a turn over behind its deadline told `deadline` and its nodes' ends again, and a turn
// whose journal cannot be had for good settled as if nothing had been done. Now: the ledger keeps what was told of an
// end, and a person is told of what cannot be read.
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { plan } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import type { LedgerBatch } from '../../src/fleet/ledger.ts';
import { RedisLedger } from '../../src/fleet/redis/ledger.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { NEVER_MS, bookings, eventsOf, trip } from '../fleet/bookings.ts';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';
import { startRedis } from '../stores/redis/server.ts';

const short = plan.from(trip.nodes, { onFailure: 'compensate', timeoutMs: 2_000 });

describe('R-17.5 the end of a turn of which each worker dies', () => {
  it('R-17.5 is told once, and goes on where it was left', async () => {
    const world = handFleet();
    const { booked, toolsOf } = bookings(world);
    await world.fleet.submit('t', short);
    for (const name of ['A', 'B']) {
      const worker = world.worker(name, toolsOf(name, { lookMs: NEVER_MS, undoMs: NEVER_MS, slow: 'flight' }));
      await worker.give('t');
      await world.runtime.advance(8_000);
      worker.machine.kill();
    }
    await world.worker('C', toolsOf('C')).give('t');
    await world.runtime.advance(10_000);
    const events = eventsOf(world, 't').filter(({ source }) => source === 'turn');
    expect(events.at(-1)?.type).toBe('settled');
    expect(events.filter(({ type }) => type === 'turn_moved')).toHaveLength(2);
    expect(events.filter(({ type }) => type === 'deadline')).toHaveLength(1);
    const settled = events.flatMap((event) => (event.type === 'node_settled' ? [event.nodeId] : []));
    expect(settled).toStrictEqual(['flight', 'hotel', 'look']);
    expect(booked.size).toBe(0);
  });

  it('R-17.5 is told again where it is another: a turn that is cancelled behind its deadline', async () => {
    const world = handFleet();
    const { toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { lookMs: NEVER_MS, undoMs: NEVER_MS }));
    await world.fleet.submit('t', short);
    await a.give('t');
    await world.runtime.advance(4_000);
    a.machine.kill();
    await world.fleet.cancel('t');
    await world.worker('B', toolsOf('B')).give('t');
    await world.runtime.advance(10_000);
    const states = eventsOf(world, 't').flatMap((event) =>
      event.type === 'node_settled' && event.nodeId === 'look' ? [event.state] : [],
    );
    expect(states).toStrictEqual(['timed_out', 'canceled']);
  });

  it('R-18.6 tells that its journal cannot be had', async () => {
    const runtime = virtualRuntime();
    const store = sharedStore(runtime);
    const world = handFleet(runtime, store);
    const { booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { lookMs: NEVER_MS }));
    await world.fleet.submit('t', short);
    await a.give('t');
    a.machine.kill();
    await runtime.advance(5_000);
    store.get = () => {
      throw new ToolExecutionError('store_unavailable', 'the file is gone', { classification: 'permanent' });
    };
    await world.worker('B', toolsOf('B')).give('t');
    await runtime.advance(10_000);
    expect(booked.size).toBe(2);
    expect(world.result('t')?.compensation?.stays).toMatchObject([{ owner: 'a person' }]);
  });
});

describe('R-17.5 a ledger in Redis', () => {
  it('R-17.5 keeps what was told, which is no step further', async () => {
    const server = await startRedis();
    const redis = new Redis({ path: server.path, maxRetriesPerRequest: null });
    try {
      const ledger = new RedisLedger(redis, {
        name: 'told',
        subscriber: undefined,
        keepMs: 60_000,
        maxEvents: 100,
        commandTimeoutMs: 60_000,
        runtime: liveRuntime,
      });
      const entry = { turnId: 't', record: '{}', digest: 'd', tenant: '', timeoutMs: 60_000, submission: 's' };
      await ledger.enter(entry, 10);
      const batch: LedgerBatch = {
        events: ['{}'],
        firstSeq: 1,
        nodes: [],
        decisions: [],
        told: [['node n', 'timed_out']],
        settles: false,
        tenant: '',
      };
      await ledger.begin('t', 'a', '0', false, 'a');
      expect(await ledger.write('t', 1, batch)).toBe(true);
      const begun = await ledger.begin('t', 'b', '0', false, 'b');
      expect(begun).toMatchObject({ tries: 2, told: new Map([['node n', 'timed_out']]) });
      await ledger.write('t', 2, { ...batch, events: [], told: [], nodes: [['n', '{}']] });
      expect(await ledger.begin('t', 'c', '0', false, 'c')).toMatchObject({ tries: 1 });
    } finally {
      redis.disconnect();
      await server.stop();
    }
  });
});
