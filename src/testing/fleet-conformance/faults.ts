import { lastValueFrom, takeUntil, takeWhile } from 'rxjs';
import type { TraceEvent } from '../../contract/event.ts';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import { liveRuntime } from '../../runtime.ts';
import {
  eventsOf,
  expectOnce,
  expectThat,
  expectWhole,
  passed,
  resultOf,
  trip,
  until,
  type FleetHarnessCase,
} from './check.ts';
import { plan } from '../../turn/plan.ts';
import type { FleetHarness, FleetWorkerProcess } from './world.ts';

const NODE_MS = 300;
/** A trip's nodes are three deep. */
const TRIP_MS = 3 * NODE_MS;
/** What a turn may lose when its worker dies. */
const TAKEOVER_MS = 5_000;

const startAll = (harness: FleetHarness, workers: number): Promise<FleetWorkerProcess[]> =>
  Promise.all(Array.from({ length: workers }, (_, at) => harness.start(`w${at}`)));

const submitAll = async (engine: FleetEngine, turns: number, ms = NODE_MS): Promise<string[]> => {
  const turnIds = Array.from({ length: turns }, (_, at) => `turn-${at}`);
  await Promise.all(turnIds.map((turnId) => engine.submit(turnId, trip(ms))));
  return turnIds;
};

/** Workers by name, and the turns that they are given, while faults happen to them. */
interface Hunt {
  readonly harness: FleetHarness;
  readonly running: Map<string, FleetWorkerProcess>;
  readonly turnIds: string[];
}

const hunt = async (harness: FleetHarness, workers: number): Promise<Hunt> => {
  const running = await startAll(harness, workers);
  return { harness, running: new Map(running.map((worker, at) => [`w${at}`, worker])), turnIds: [] };
};

const submitNext = async ({ harness, turnIds }: Hunt): Promise<string> => {
  const turnId = `turn-${turnIds.length}`;
  turnIds.push(turnId);
  await harness.engine.submit(turnId, trip(NODE_MS));
  return turnId;
};

/** Turns come one after the other, so that they are in different nodes at what happens next. */
const spaced = async (hunted: Hunt, turns: number, ms: number): Promise<void> => {
  for (let at = 0; at < turns; at++) {
    await submitNext(hunted);
    await passed(ms / turns);
  }
};

const turnOf = (key: string): string => key.slice(0, key.indexOf('/'));

/** The turns of which a node runs at this worker. */
const amidAt = async (harness: FleetHarness, worker: string): Promise<string[]> => {
  const owners = new Map((await harness.marks('started')).map((mark) => [mark.key, mark.worker]));
  for (const { key } of await harness.marks('effect')) owners.delete(key);
  return [...owners].flatMap(([key, owner]) => (owner === worker ? [turnOf(key)] : []));
};

/** A worker that stands still amid turns, which cannot end before it goes on, unless another has them. */
interface Caught {
  readonly name: string;
  readonly worker: FleetWorkerProcess;
  readonly turnIds: readonly string[];
}

/** Stops a worker amid a turn: it is looked whether it was only once it stands still, however slow the machine is. */
const caught = async (hunted: Hunt): Promise<Caught> => {
  const { harness, running } = hunted;
  for (;;) {
    const turnId = await submitNext(hunted);
    const { worker: name } = await until(
      async () => (await harness.marks('started')).findLast(({ key }) => turnOf(key) === turnId),
      `the start of ${turnId}`,
    );
    const worker = running.get(name);
    worker?.freeze();
    const turnIds = await amidAt(harness, name);
    if (worker !== undefined && turnIds.length > 0) return { name, worker, turnIds };
    worker?.thaw();
  }
};

/** Turns that come between two faults. */
const EACH = 3;

const isMove = ({ type }: TraceEvent): boolean => type === 'turn_moved';
/** How long a worker that stands still does so for an engine that gives nobody its turns. */
const MOVED_MS = 60_000;

/** Resolves once a turn has moved. */
const move = (engine: FleetEngine, turnId: string): Promise<unknown> =>
  lastValueFrom(
    engine.attach(turnId).pipe(
      takeWhile((event) => !isMove(event)),
      takeUntil(liveRuntime.after(MOVED_MS)),
    ),
  );

const expectMoved = (all: ReadonlyArray<readonly TraceEvent[]>, hunted: Hunt, amid: readonly string[]): void => {
  for (const turnId of amid)
    expectThat(all[hunted.turnIds.indexOf(turnId)]?.some(isMove) === true, `${turnId} was under way, and moves`);
};

/** Two that act, one behind the other, and a third that is refused. */
const refusedTrip = plan.from(
  [
    { id: 'a', tool: 'work', input: { undoMs: 600 } },
    { id: 'b', tool: 'work', input: { undoMs: 600 }, needs: ['a'] },
    { id: 'no', tool: 'refuse', needs: ['b'] },
  ],
  { timeoutMs: 60_000, onFailure: 'compensate' },
);

export const faultCases: readonly FleetHarnessCase[] = [
  {
    name: 'a turn that fails undoes what it did, once, though the worker that undoes it is killed',
    run: async (harness) => {
      const first = await harness.start('first');
      await harness.engine.submit('undone', refusedTrip);
      await until(async () => ((await harness.marks('undoing')).length > 0 ? true : undefined), 'the undoing');
      const killed = first.kill();
      await harness.start('second');
      await killed;
      const events = await eventsOf(harness.engine, 'undone');
      expectWhole('undone', events);
      const { compensation } = resultOf('undone', events);
      expectThat(compensation?.compensated.toSorted().join() === 'a,b', 'both are undone', compensation);
      expectThat(compensation.stays.length === 0, 'nothing stays', compensation);
      const undone = (await harness.marks('undone')).map(({ key }) => key);
      expectThat(undone.join() === 'undone/b,undone/a', 'once each, the last first', undone);
    },
  },
  {
    name: 'turns settle though workers are killed, each effect once, and nothing is run again that was journalled',
    run: async (harness, { turns, workers, everyMs }) => {
      const hunted = await hunt(harness, workers);
      const { running, turnIds } = hunted;
      const amid: string[] = [];
      for (let kills = 0; turnIds.length < turns; kills++) {
        await spaced(hunted, EACH - 1, everyMs);
        const { name, worker, turnIds: killed } = await caught(hunted);
        await worker.kill();
        amid.push(...killed);
        running.delete(name);
        const next = `w${workers + kills}`;
        running.set(next, await harness.start(next));
      }
      expectMoved(await expectOnce(harness, turnIds), hunted, amid);
    },
  },
  {
    name: 'turns settle though workers stand still and wake up late, each effect once',
    run: async (harness, { turns, workers, everyMs, freezeMs }) => {
      const hunted = await hunt(harness, workers);
      const { engine, movesFrozen = false } = harness;
      const amid: string[] = [];
      for (let freezes = 0; freezes < workers; freezes++) {
        await spaced(hunted, Math.ceil(turns / workers) - 1, everyMs / 2);
        const { worker, turnIds: frozen } = await caught(hunted);
        if (movesFrozen) amid.push(...frozen);
        await Promise.all([passed(freezeMs), ...(movesFrozen ? frozen.map((turnId) => move(engine, turnId)) : [])]);
        worker.thaw();
      }
      expectMoved(await expectOnce(harness, hunted.turnIds), hunted, amid);
    },
  },
  {
    name: 'a turn whose worker is killed settles at most 5 s later, and its trace has a seam',
    run: async (harness) => {
      const hunted = await hunt(harness, 2);
      const { name, worker, turnIds } = await caught(hunted);
      const killedMs = liveRuntime.now();
      await worker.kill();
      for (const turnId of turnIds) {
        const events = await eventsOf(harness.engine, turnId);
        const tookMs = liveRuntime.now() - killedMs;
        expectThat(
          tookMs < TRIP_MS + TAKEOVER_MS + 1_000,
          'it settles at most 5 s later than without the kill',
          tookMs,
        );
        expectWhole(turnId, events);
        const [seam, ...more] = events.flatMap((event) => (event.type === 'turn_moved' ? [event] : []));
        const isOne = seam?.from === name && seam.to !== name && more.length === 0;
        expectThat(isOne, 'one seam, from the one that was killed', { seam, more });
      }
      await expectOnce(harness, hunted.turnIds);
    },
  },
  {
    name: 'a turn whose time is over while nobody is alive is settled with what was kept by the next worker, at once',
    run: async (harness) => {
      const first = await harness.start('first');
      await harness.engine.submit('late', trip(700, 3_000));
      await until(async () => ((await harness.marks('started')).length >= 3 ? true : undefined), 'the second node');
      await first.kill();
      await passed(4_500);
      await harness.start('second');
      const began = liveRuntime.now();
      const events = await eventsOf(harness.engine, 'late');
      const tookMs = liveRuntime.now() - began;
      const { status, values, nodes } = resultOf('late', events);
      expectThat(status === 'partial' && values['a'] !== undefined, 'what was kept is harvested', { status, nodes });
      expectThat(tookMs < TAKEOVER_MS + 1_000, 'it is settled at once', tookMs);
      const after = (await harness.marks('started')).filter(({ worker }) => worker === 'second');
      expectThat(after.length === 0, 'nothing starts any more', after);
    },
  },
  {
    name: 'the engine is killed and comes back: nobody who asked for something sees an error, and nothing is lost',
    run: async (harness, { turns, workers }) => {
      if (harness.restart === undefined) return;
      await startAll(harness, workers);
      const turnIds = await submitAll(harness.engine, turns);
      await passed(NODE_MS);
      const [more] = await Promise.all([
        passed(50).then(() => harness.engine.submit('meanwhile', trip(NODE_MS))),
        harness.restart(),
      ]);
      expectThat(more.state !== 'known', 'a turn can be submitted while the engine is away', more);
      await expectOnce(harness, [...turnIds, 'meanwhile']);
    },
  },
];
