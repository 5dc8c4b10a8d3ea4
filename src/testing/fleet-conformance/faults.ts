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
/** What a turn may lose when its worker dies. */
const TAKEOVER_MS = 5_000;

const startAll = (harness: FleetHarness, workers: number): Promise<FleetWorkerProcess[]> =>
  Promise.all(Array.from({ length: workers }, (_, at) => harness.start(`w${at}`)));

const submitAll = async (engine: FleetEngine, turns: number, ms = NODE_MS): Promise<string[]> => {
  const turnIds = Array.from({ length: turns }, (_, at) => `turn-${at}`);
  await Promise.all(turnIds.map((turnId) => engine.submit(turnId, trip(ms))));
  return turnIds;
};

/** Whether all turns have settled. */
const allSettled = (harness: FleetHarness, turnIds: readonly string[]): { readonly isOver: () => boolean } => {
  let isOver = false;
  const over = (): void => void (isOver = true);
  Promise.all(turnIds.map((turnId) => eventsOf(harness.engine, turnId))).then(over, over);
  return { isOver: () => isOver };
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
      const running = await startAll(harness, workers);
      const turnIds = await submitAll(harness.engine, turns);
      const settling = allSettled(harness, turnIds);
      for (let kills = 0; !settling.isOver() && kills < 1_000; kills++) {
        await passed(everyMs);
        if (settling.isOver()) break;
        const place = kills % workers;
        await running[place]?.kill();
        running[place] = await harness.start(`w${place}.${kills + 1}`);
      }
      await expectOnce(harness, turnIds);
    },
  },
  {
    name: 'turns settle though workers stand still and wake up late, each effect once',
    run: async (harness, { turns, workers, everyMs, freezeMs }) => {
      const running = await startAll(harness, workers);
      const turnIds = await submitAll(harness.engine, turns);
      const settling = allSettled(harness, turnIds);
      for (let place = 0; place < workers && !settling.isOver(); place++) {
        await passed(everyMs / 2);
        running[place]?.freeze();
        await passed(freezeMs);
        running[place]?.thaw();
      }
      await expectOnce(harness, turnIds);
    },
  },
  {
    name: 'a turn whose worker is killed settles at most 5 s later, and its trace has a seam',
    run: async (harness) => {
      const first = await harness.start('first');
      const begunMs = liveRuntime.now();
      await harness.engine.submit('moved', trip(1_000));
      await until(async () => ((await harness.marks('started')).length >= 3 ? true : undefined), 'the second node');
      await harness.start('second');
      await first.kill();
      const events = await eventsOf(harness.engine, 'moved');
      const tookMs = liveRuntime.now() - begunMs;
      expectThat(
        tookMs < 3_000 + TAKEOVER_MS + 1_000,
        'the turn settles at most 5 s later than without the kill',
        tookMs,
      );
      expectWhole('moved', events);
      const seams = events.flatMap((event) => (event.type === 'turn_moved' ? [event] : []));
      expectThat(seams.length === 1 && seams[0]?.from === 'first' && seams[0].to === 'second', 'one seam', seams);
      await expectOnce(harness, ['moved']);
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
      const began = liveRuntime.now();
      await harness.start('second');
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
