import { plan, type AnyTool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { JOURNAL_TOOL } from '../../src/saga/own-records.ts';
import { virtualRuntime } from '../../src/testing/index.ts';
import { ALL_UNDONE, NEVER_MS, bookings, eventsOf, outcomeIn, trip, undoneAll, type Pace } from './bookings.ts';
import { handFleet, sharedStore } from './by-hand.ts';

describe('R-18.6 a turn of a fleet that undoes what it did', () => {
  it('R-18.6 is undone by its worker, and tells whoever attached to it', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A'));
    await world.fleet.submit('t', trip);
    expect(await a.give('t')).toEqual([]);
    await world.runtime.advance(1_000);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'A undoes hotel', 'A undoes flight']);
    expect(booked.size).toBe(0);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
    expect(eventsOf(world, 't').map(({ type }) => type)).toEqual(
      expect.arrayContaining(['compensation_started', 'node_compensated', 'compensation_settled', 'settled']),
    );
  });

  it('R-18.6 whose worker dies while it undoes is finished by the next within 5 s, nothing twice', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { undoMs: NEVER_MS, slow: 'flight' }));
    const b = world.worker('B', toolsOf('B'));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(500);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'A undoes hotel', 'A undoes flight']);
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(5_000);
    // The one that was under way is done again, since its resource checks the key.
    expect(log.slice(4)).toStrictEqual(['B undoes flight']);
    expect(booked.size).toBe(0);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
  });

  it('R-18.6 whose worker dies in a call that acts names each node once', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { hotelMs: NEVER_MS }));
    const b = world.worker('B', toolsOf('B'));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(500);
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(10_000);
    expect(log).toStrictEqual([
      'A books flight',
      'A books hotel',
      'B books hotel',
      'B undoes hotel',
      'B undoes flight',
    ]);
    expect(booked.size).toBe(0);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
  });

  it('R-18.6 whose worker dies once a call has acted, and before that is kept, names each node once', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const [a, b] = [world.worker('A', toolsOf('A')), world.worker('B', toolsOf('B'))];
    await world.fleet.submit('t', trip);
    const { write } = world.ledger;
    world.ledger.write = async (turnId, epoch, batch) => {
      if (epoch > 1 || !batch.nodes.some(([id]) => id === 'hotel'))
        return write.call(world.ledger, turnId, epoch, batch);
      a.machine.kill();
      return new Promise<never>(() => undefined);
    };
    await a.give('t');
    await world.runtime.advance(1_000);
    await b.give('t');
    await world.runtime.advance(10_000);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'B undoes hotel', 'B undoes flight']);
    expect(booked.size).toBe(0);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
  });

  it('R-18.6 whose worker dies in a call that nobody can ask about tells a person of it once', async () => {
    const world = handFleet();
    const { log, toolsOf } = bookings(world);
    const unasked = (worker: string, pace: Pace): AnyTool[] =>
      toolsOf(worker, pace).map((one) =>
        one.name === 'hotel' ? { ...one, policy: { ...one.policy, enforcesKey: false } } : one,
      );
    const a = world.worker('A', unasked('A', { hotelMs: NEVER_MS }));
    const b = world.worker('B', unasked('B', {}));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(500);
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(10_000);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'B undoes flight']);
    expect(world.result('t')?.compensation).toMatchObject({ compensated: ['flight'], stays: [{ id: 'hotel' }] });
    expect(world.result('t')?.compensation?.stays).toHaveLength(1);
  });

  it('R-18.6 whose worker dies before its end is kept is told by the next as it was undone', async () => {
    const runtime = virtualRuntime();
    const store = sharedStore(runtime);
    const world = handFleet(runtime, store);
    const { log, toolsOf } = bookings(world);
    const [a, b] = [world.worker('A', toolsOf('A')), world.worker('B', toolsOf('B'))];
    await world.fleet.submit('t', trip);
    const { write } = world.ledger;
    world.ledger.write = async (turnId, epoch, batch) => {
      if (!batch.settles || epoch > 1) return write.call(world.ledger, turnId, epoch, batch);
      a.machine.kill();
      return new Promise<never>(() => undefined);
    };
    await a.give('t');
    await world.runtime.advance(1_000);
    expect(log).toHaveLength(4);
    expect(world.result('t')).toBeUndefined();
    await b.give('t');
    await world.runtime.advance(10_000);
    expect(log).toHaveLength(4);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
    // Was: it was told by neither of them.
    const told = eventsOf(world, 't').filter(
      (event) => event.source === 'turn' && event.type === 'compensation_settled',
    );
    expect(told).toHaveLength(1);
    await world.runtime.advance(1_000);
    for await (const record of store.byTool(JOURNAL_TOOL)) expect(record).toBeUndefined();
  });

  it('R-18.6 whose worker stands still while it undoes does not undo twice when that wakes up', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { undoMs: 3_000 }));
    const b = world.worker('B', toolsOf('B'));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(500);
    a.machine.freeze(30_000);
    await b.give('t');
    await world.runtime.advance(60_000);
    expect(log).toStrictEqual([
      'A books flight',
      'A books hotel',
      'A undoes hotel',
      'B undoes hotel',
      'B undoes flight',
    ]);
    expect(booked.size).toBe(0);
    expect(outcomeIn(world.result('t'))).toEqual(undoneAll);
  });

  it('R-18.6 goes on behind its deadline at whoever has it, and is not taken from that', async () => {
    const world = handFleet();
    const { log, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { lookMs: NEVER_MS, undoMs: 70_000 }));
    world.worker('B', toolsOf('B'));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(150_000);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'A undoes hotel', 'A undoes flight']);
    expect(outcomeIn(world.result('t'))).toEqual({ ...undoneAll, states: { ...ALL_UNDONE, look: 'timed_out' } });
  });

  it('R-18.6 whose time passes while nobody has it is undone by the next, and not taken up again', async () => {
    const world = handFleet();
    const { log, booked, toolsOf } = bookings(world);
    const a = world.worker('A', toolsOf('A', { hotelMs: NEVER_MS }));
    await world.fleet.submit('t', trip);
    await a.give('t');
    await world.runtime.advance(500);
    a.machine.kill();
    await world.runtime.advance(70_000);
    const b = world.worker('B', toolsOf('B'));
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(log).toStrictEqual(['A books flight', 'A books hotel', 'B undoes flight']);
    expect(booked.size).toBe(0);
    const result = world.result('t');
    expect(result?.compensation?.compensated).toEqual(['flight']);
    // Nobody can tell whether the hotel was booked: a person is asked.
    expect(result?.compensation?.stays).toMatchObject([{ id: 'hotel', owner: 'a person' }]);
  });

  it('R-18.6 that was being undone is not taken for complete by the next, which gets all it lacked', async () => {
    const runtime = virtualRuntime();
    const store = sharedStore(runtime);
    // Nobody hears any more that what the hotel did is let go: only the flight is undone before its worker dies.
    let hotelKey: string | undefined;
    let isHeard = false;
    const held = Object.assign(Object.create(store) as typeof store, {
      setIfNotExists: (...given: Parameters<typeof store.setIfNotExists>) => {
        const [{ tool: name, key }] = given;
        if (name === 'hotel') hotelKey ??= key;
        return store.setIfNotExists(...given);
      },
      compareAndSet: (...given: Parameters<typeof store.compareAndSet>) => {
        const [key, , { state }] = given;
        if (key === hotelKey && state === 'failed' && !isHeard) return new Promise<never>(() => undefined);
        return store.compareAndSet(...given);
      },
    });
    const world = handFleet(runtime, held);
    const { log, booked, toolsOf } = bookings(world);
    const both = plan.from(
      [
        { id: 'flight', tool: 'flight' },
        { id: 'hotel', tool: 'hotel' },
      ],
      { onFailure: 'compensate', timeoutMs: 10_000 },
    );
    const [a, b] = [world.worker('A', toolsOf('A', { hotelMs: 11_000 })), world.worker('B', toolsOf('B'))];
    await world.fleet.submit('t', both);
    await a.give('t');
    await world.runtime.advance(12_000);
    expect(log.toSorted()).toStrictEqual(['A books flight', 'A books hotel', 'A undoes flight']);
    a.machine.kill();
    isHeard = true;
    await b.give('t');
    await world.runtime.advance(20_000);
    expect(log.slice(3)).toStrictEqual(['B undoes hotel']);
    expect(booked.size).toBe(0);
    expect(world.result('t')?.compensation?.compensated).toHaveLength(2);
    expect(world.result('t')?.status).not.toBe('completed');
  });

  it('R-18.6 that had all it wanted in time completes, however many nodes the next one finds', async () => {
    const world = handFleet();
    const { booked, toolsOf } = bookings(world);
    const many = Array.from({ length: 150 }, (_, at) => ({ id: `n${at}`, tool: 'hotel' }));
    const [a, b] = [world.worker('A', toolsOf('A')), world.worker('B', toolsOf('B'))];
    await world.fleet.submit('t', plan.from(many, trip.options));
    const { write } = world.ledger;
    world.ledger.write = async (turnId, epoch, batch) => {
      if (!batch.settles || epoch > 1) return write.call(world.ledger, turnId, epoch, batch);
      a.machine.kill();
      return new Promise<never>(() => undefined);
    };
    await a.give('t');
    await world.runtime.advance(70_000);
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(booked.size).toBe(1);
    expect(world.result('t')).toMatchObject({ status: 'completed' });
    expect(world.result('t')?.compensation).toBeUndefined();
  });
});
