import { plan, tool, createSpillway, type NodeResult, type TurnResult } from 'spillway';
import type { ResumedTurn } from 'spillway/operate';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { Agency, LEASE_MS, Mortal, STOPS, TripProcess, wrongs, type Fault, type Site } from './trip.ts';

const LONG_MS = 600_000;

interface Story {
  readonly agency: Agency;
  readonly life: Mortal;
  /** What the first process has told, if it came to that. */
  readonly told: TurnResult | undefined;
  readonly resumed: readonly ResumedTurn[];
  /** What the one after that still found to do. */
  readonly rest: readonly ResumedTurn[];
}

/** A trip whose process dies at a step, and what the next processes make of it. */
const story = async (last: number, faults: ReadonlyMap<Site, Fault>, endsBadly: boolean): Promise<Story> => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const agency = new Agency();
  const life = new Mortal(last);
  const first = new TripProcess(runtime, store, agency, { faults, life, endsBadly });
  let told: TurnResult | undefined;
  first.layer.turn(first.plan).subscribe((event) => {
    // What a dead process says nobody hears.
    if (life.isAlive() && event.type === 'settled' && event.source === 'turn') told = event.result;
  });
  await runtime.advance(LONG_MS / 2);
  const next = new TripProcess(runtime, store, agency);
  const resuming = next.layer.resume();
  await runtime.advance(LONG_MS);
  const resumed = await resuming;
  const last$ = new TripProcess(runtime, store, agency).layer.resume();
  await runtime.advance(LONG_MS);
  return { agency, life, told, resumed, rest: await last$ };
};

/** The nodes as somebody was told of them: by the first process, or by the one that went on. */
const nodesOf = ({ told, resumed }: Story): readonly Pick<NodeResult, 'id' | 'state'>[] => {
  if (told !== undefined) return told.nodes;
  const [turn] = resumed;
  const stays = new Set(turn?.compensation?.stays.map(({ id }) => id));
  const done = new Set(turn?.done);
  return STOPS.map((id) => ({
    id,
    state: stays.has(id) ? 'compensation_failed' : done.has(id) ? 'succeeded' : 'skipped',
  }));
};

const problemsOf = (tale: Story): string[] => {
  const found = wrongs(tale.agency, nodesOf(tale));
  const wasCompleted = tale.told?.status === 'completed';
  if (wasCompleted && tale.resumed.some(({ outcome }) => outcome === 'undone'))
    found.push('a turn that had completed was undone');
  if (tale.rest.length > 0) found.push('something was left for a third process');
  return found;
};

const tellers: ReadonlyArray<readonly [string, ReadonlyMap<Site, Fault>, boolean]> = [
  ['that fails in the end', new Map(), true],
  ['that completes', new Map(), false],
  ['whose hotel loses its answer', new Map([['book hotel', 'acts_and_hangs']]), true],
  ['whose car acts late', new Map([['book car', 'acts_late']]), true],
  ['whose undoing breaks off', new Map([['undo tour', 'acts_and_breaks']]), true],
  ['of which something cannot be undone', new Map([['undo hotel', 'refuses']]), true],
];

describe('a turn whose process dies', () => {
  it.each(tellers)(
    'R-18.6 a trip %s leaves nothing booked untold, wherever it dies',
    async (_what, faults, endsBadly) => {
      const whole = await story(Infinity, faults, endsBadly);
      expect(problemsOf(whole)).toEqual([]);
      const { steps } = whole.life;
      expect(steps.length).toBeGreaterThan(30);
      const problems: string[] = [];
      for (let last = 0; last < steps.length; last++) {
        const tale = await story(last, faults, endsBadly);
        problems.push(...problemsOf(tale).map((problem) => `died at ${last}, ${steps[last]}: ${problem}`));
      }
      expect(problems).toEqual([]);
    },
  );

  it('R-18.6 what a living process holds is left alone', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const agency = new Agency();
    const first = new TripProcess(runtime, store, agency, { faults: new Map([['book tour', 'hangs']]) });
    first.layer.turn(first.plan).subscribe();
    await runtime.advance(500);
    const resuming = new TripProcess(runtime, store, agency).layer.resume();
    await runtime.advance(100);
    expect(await resuming).toEqual([]);
    expect(agency.booked('flight')).toBe(1);
  });

  it('R-18.6 of two processes that resume at once one undoes a turn', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const agency = new Agency();
    const life = new Mortal(40);
    const first = new TripProcess(runtime, store, agency, { life });
    first.layer.turn(first.plan).subscribe();
    await runtime.advance(2 * LEASE_MS);
    const both = [1, 2].map(() => new TripProcess(runtime, store, agency).layer.resume());
    await runtime.advance(LONG_MS);
    const all = (await Promise.all(both)).flat();
    expect(all).toHaveLength(1);
    expect(
      wrongs(
        agency,
        STOPS.map((id) => ({ id, state: 'skipped' as const })),
      ),
    ).toEqual([]);
  });

  it('R-18.6 what a process that died while it resumed had taken is free after the lease it asked for', async () => {
    const after = async (leaseMs: number): Promise<number> => {
      const runtime = virtualRuntime();
      const store = memoryStore({ runtime });
      const agency = new Agency();
      const first = new TripProcess(runtime, store, agency, { life: new Mortal(40) });
      first.layer.turn(first.plan).subscribe();
      await runtime.advance(2 * LEASE_MS);
      void new TripProcess(runtime, store, agency, { life: new Mortal(6) }).layer.resume({ leaseMs });
      await runtime.advance(10_000);
      let found = 0;
      void new TripProcess(runtime, store, agency).layer.resume().then((turns) => (found = turns.length));
      await runtime.advance(1_000);
      return found;
    };
    expect([await after(8_000), await after(60_000)]).toEqual([1, 0]);
  });

  it('R-18.6 a lease that is no time is refused', async () => {
    const { layer } = new TripProcess(virtualRuntime(), memoryStore(), new Agency());
    await expect(layer.resume({ leaseMs: 0 })).rejects.toThrow('leaseMs');
    await expect(layer.resume({ lease: 5 } as never)).rejects.toThrow('lease');
  });

  it('R-18.6 a node’s own undoing is found by the name of its plan, and is not replaced by its tool’s', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const undone: string[] = [];
    const book = tool({
      name: 'book',
      execute: () => 'booked',
      compensate: () => undone.push('tool'),
    });
    const trip = plan({ onFailure: 'compensate', name: 'trip', leaseMs: LEASE_MS })
      .call('flight', book, {}, { compensate: () => undone.push('node') })
      .call(
        'wait',
        { name: 'wait', policy: { effects: 'read' }, execute: () => new Promise(() => undefined) },
        {},
        { needs: ['flight'] },
      );
    // Its time stands still once the flight is booked.
    const dead = virtualRuntime();
    createSpillway({ runtime: dead, store, tools: [book] })
      .turn(trip)
      .subscribe();
    await dead.advance(1);
    await runtime.advance(2 * LEASE_MS);
    const without = createSpillway({ runtime, store, tools: [book] }).resume();
    await runtime.advance(100);
    expect(await without).toMatchObject([
      { plan: 'trip', compensation: { compensated: [], stays: [{ id: 'flight', toolName: 'book' }] } },
    ]);
    expect(undone).toEqual([]);
  });

  it.each([
    [true, ['flight'], []],
    [false, [], ['flight']],
  ])('R-18.6 a process that is closed while it undoes, enforcesKey %s', async (enforcesKey, compensated, stays) => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    let hangs = true;
    const flight = tool({
      name: 'flight',
      policy: { compensate: { enforcesKey } },
      execute: () => 'booked',
      compensate: () => (hangs ? new Promise(() => undefined) : undefined),
    });
    const pay = tool({
      name: 'pay',
      policy: { effects: 'read' },
      execute: () => {
        throw Object.assign(new Error('refused'), { status: 402 });
      },
    });
    const trip = plan({ onFailure: 'compensate', leaseMs: LEASE_MS })
      .call('flight', flight, undefined)
      .call('pay', pay, undefined, { needs: ['flight'] });
    const first = createSpillway({ runtime, store, tools: [flight, pay] });
    first.turn(trip).subscribe();
    await runtime.advance(100);
    void first.close();
    await runtime.advance(100);
    hangs = false;
    const resuming = createSpillway({ runtime, store, tools: [flight, pay] }).resume();
    await runtime.advance(LEASE_MS);
    const [turn] = await resuming;
    expect(turn?.compensation?.compensated).toEqual(compensated);
    expect(turn?.compensation?.stays.map(({ id }) => id)).toEqual(stays);
  });

  it('R-18.6 a journal that cannot be read is told, and nothing is undone on its word', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const claim = { key: `sw1:${'0'.repeat(64)}`, tool: 'spillway/turn', idempotencyKey: 't1', leaseMs: 1, ttlMs: 1e9 };
    const request = { sessionKey: '', actorId: '', requestId: 't1', paramsDigest: '' };
    const { record } = await store.setIfNotExists({ ...claim, request });
    await store.compareAndSet(claim.key, record.version, { state: 'done', ttlMs: 1e9, payload: '{"version":2}' });
    const layer = createSpillway({ runtime, store });
    expect(await layer.resume()).toMatchObject([{ turnId: 't1', compensation: { stays: [{ owner: 'a person' }] } }]);
  });
});
