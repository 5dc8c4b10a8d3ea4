import { lastValueFrom, take, takeWhile, toArray } from 'rxjs';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import { liveRuntime } from '../../runtime.ts';
import { plan } from '../../turn/plan.ts';
import { eventsOf, expectThat, expectWhole, passed, resultOf, trip, until, type FleetHarnessCase } from './check.ts';
import type { FleetHarness } from './world.ts';

/** A cancel reaches a tool within so long. */
const CANCEL_MS = 200;
/** What a busy machine adds is in the slow ones; most of them are not. */
const CANCELS = 5;

const refusalOf = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work;
  } catch (error) {
    return error;
  }
  return undefined;
};

const startedAt = (harness: FleetHarness, count: number): Promise<true> =>
  until(async () => ((await harness.marks('started')).length >= count ? true : undefined), `attempt ${count}`);

/** Cancels a turn of which two nodes run; gives how long it took until both had been told. */
const cancelMs = async (harness: FleetHarness, from: FleetEngine, at: number): Promise<number> => {
  const turnId = `unwanted-${at}`;
  await harness.engine.submit(turnId, trip(30_000));
  await startedAt(harness, 2 * at + 2);
  const atMs = liveRuntime.wallNow();
  expectThat(await from.cancel(turnId), 'it is cancelled');
  const { nodes } = resultOf(turnId, await eventsOf(harness.engine, turnId));
  const isCanceled = nodes.every(({ state }) => state === 'canceled');
  expectThat(isCanceled, 'all of it is canceled', nodes);
  const aborted = await until(async () => {
    const marks = await harness.marks('aborted');
    return marks.length >= 2 * at + 2 ? marks : undefined;
  }, 'both aborts');
  return Math.max(...aborted.map((mark) => mark.atMs)) - atMs;
};

const seqs = (events: readonly { readonly seq: number }[]): number[] => events.map(({ seq }) => seq);

export const ruleCases: readonly FleetHarnessCase[] = [
  {
    name: 'whoever attaches, before, amid or after a turn, sees each event once, in order',
    run: async (harness) => {
      await harness.start('one');
      await harness.engine.submit('seen', trip(300));
      const from = harness.open();
      const [before, amid, cut] = await Promise.all([
        eventsOf(harness.engine, 'seen'),
        startedAt(harness, 3).then(() => eventsOf(from, 'seen')),
        lastValueFrom(from.attach('seen').pipe(take(3), toArray())),
      ]);
      const after = await eventsOf(harness.open(), 'seen');
      expectWhole('seen', before);
      expectThat(seqs(amid).join() === seqs(before).join(), 'amid it', seqs(amid));
      expectThat(seqs(cut).join() === '1,2,3', 'the first three', seqs(cut));
      expectThat(JSON.stringify(after) === JSON.stringify(before), 'after it, to the letter', seqs(after));
      expectThat(resultOf('seen', after).status === 'completed', 'it completes');
    },
  },
  {
    name: 'a cancel reaches the signal of a tool that runs within 200 ms, and the turn settles',
    run: async (harness) => {
      await harness.start('one');
      const from = harness.open();
      const took: number[] = [];
      for (let at = 0; at < CANCELS; at++) took.push(await cancelMs(harness, from, at));
      const isInTime = took.filter((ms) => ms <= CANCEL_MS).length > CANCELS / 2;
      expectThat(isInTime, `the signals are aborted within ${CANCEL_MS} ms`, took);
      expectThat(!(await harness.engine.cancel('unwanted-0')), 'what has settled cannot be cancelled');
    },
  },
  {
    name: 'one id stands for one plan: the same is known, another is a conflict',
    run: async (harness) => {
      await harness.start('one');
      const accepted = await harness.engine.submit('same', trip(10));
      const known = await harness.open().submit('same', trip(10));
      expectThat(accepted.state === 'accepted' && known.state === 'known', 'the same plan is known', known);
      const error = await refusalOf(harness.engine.submit('same', trip(11)));
      expectThat(isToolExecutionError(error) && error.kind === 'conflict', 'another plan is a conflict', String(error));
      const mine = await refusalOf(harness.engine.submit('same', trip(10), { tenant: 'another' }));
      expectThat(isToolExecutionError(mine) && mine.kind === 'conflict', 'and so is another tenant', String(mine));
      expectWhole('same', await eventsOf(harness.engine, 'same'));
      expectThat((await harness.marks('effect')).length === 4, 'it runs once');
      const again = await harness.engine.submit('same', trip(10));
      expectThat(again.state === 'known', 'also once it has settled', again);
    },
  },
  {
    name: 'a plan that is not data is refused by its node, and nothing is handed over',
    run: async (harness) => {
      const closure = plan.from([{ id: 'made', tool: 'work', input: () => ({ ms: 1 }) }]);
      const error = await refusalOf(harness.engine.submit('closure', closure));
      expectThat(
        error instanceof Error && 'node' in error && error.node === 'made',
        'the node is named',
        String(error),
      );
      const missing = await refusalOf(lastValueFrom(harness.engine.attach('closure')));
      expectThat(isToolExecutionError(missing) && missing.code === 'unknown_turn', 'there is no turn', String(missing));
    },
  },
  {
    name: 'a turn that moves decides nothing again: its attempts are counted on',
    run: async (harness) => {
      const first = await harness.start('first');
      const retried = plan.from([{ id: 'n', tool: 'flaky', input: { failures: 2 } }]);
      await harness.engine.submit('retried', retried);
      await startedAt(harness, 1);
      // The failure is decided about and journalled before its delay begins.
      await lastValueFrom(harness.engine.attach('retried').pipe(takeWhile(({ type }) => type !== 'decision')));
      await passed(100);
      await first.kill();
      await harness.start('second');
      const events = await eventsOf(harness.engine, 'retried');
      const { values } = resultOf('retried', events);
      expectThat(JSON.stringify(values['n']) === '{"attempt":3,"worker":"second"}', 'the third attempt works', values);
      const attempts = events.flatMap((event) => (event.type === 'attempt_started' ? [event.attempt] : []));
      expectThat(attempts.join() === '1,2,3', 'each attempt is made once', attempts);
    },
  },
  {
    name: 'a worker that is told to end hands its turns over, and starts nothing of them again',
    run: async (harness) => {
      const first = await harness.start('first');
      await harness.engine.submit('handed', trip(600));
      await startedAt(harness, 2);
      const ended = first.drain();
      await harness.start('second');
      await ended;
      const events = await eventsOf(harness.engine, 'handed');
      expectWhole('handed', events);
      expectThat(resultOf('handed', events).status === 'completed', 'it completes', events.at(-1));
      const started = await harness.marks('started');
      expectThat(started.length === 4, 'each node is started once', started);
      const workers = new Set(started.map(({ worker }) => worker));
      expectThat(workers.size === 2, 'by both workers', started);
    },
  },
  {
    name: 'a turn is finished by the version of the tools that began it',
    run: async (harness) => {
      const old = await harness.start('old-1', 'v1');
      await harness.engine.submit('versioned', trip(500));
      await startedAt(harness, 2);
      await harness.start('new-1', 'v2');
      await old.kill();
      await passed(4_500);
      await harness.start('old-2', 'v1');
      const events = await eventsOf(harness.engine, 'versioned');
      expectThat(resultOf('versioned', events).status === 'completed', 'it completes', events.at(-1));
      const started = await harness.marks('started');
      expectThat(
        started.every(({ worker }) => worker.startsWith('old')),
        'none of it by another version',
        started,
      );
    },
  },
  {
    name: 'health tells of workers and turns',
    run: async (harness) => {
      await harness.start('one', 'v7');
      await harness.engine.submit('busy', trip(1_000));
      await startedAt(harness, 2);
      const health = await until(async () => {
        const found = await harness.open().health();
        return found.workers[0]?.turns === 1 ? found : undefined;
      }, 'the worker’s report');
      const [worker] = health.workers;
      expectThat(worker?.worker === 'one' && worker.version === 'v7', 'the worker is listed', health);
      expectThat(health.running === 1 && health.waiting === 0 && health.stuck.length === 0, 'the turn runs', health);
      await eventsOf(harness.engine, 'busy');
      expectThat((await harness.engine.health()).running === 0, 'and then no more');
    },
  },
];
