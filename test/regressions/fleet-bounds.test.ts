// Was: two fleets' turns of one id ended each other's claims, a turn that killed its workers took the fleet down, and a
// fleet's end, memory and safety had no bounds. Now: keys are a submission's own, and all of these are bounded.
import { NEVER, Subject, type Observable } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type AnyTool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { LedgerFleet } from '../../src/fleet/engine.ts';
import { Hold } from '../../src/fleet/worker/hold.ts';
import { journalOf } from '../../src/fleet/worker/journal.ts';
import { recorderOf } from '../../src/fleet/recorder.ts';
import type { LedgerBatch, TurnLedger } from '../../src/fleet/ledger.ts';
import { LedgerModel } from '../simulation/fleet/ledger.ts';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';

const counting = (done$: Observable<string> = NEVER) => {
  let runs = 0;
  const pay = tool({ name: 'pay', policy: { effects: 'mutating', enforcesKey: true }, execute: () => (runs++, done$) });
  return { pay: pay as AnyTool, runs: () => runs };
};

it('R-17.4 turns of one id in two fleets with one store have nothing to do with each other', async () => {
  const runtime = virtualRuntime();
  const store = sharedStore(runtime);
  const worlds = [handFleet(runtime, store), handFleet(runtime, store)];
  const done$ = new Subject<string>();
  const { pay, runs } = counting(done$);
  for (const world of worlds) {
    const worker = world.worker('w', [pay]);
    await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }]));
    await worker.give('t');
  }
  expect(runs()).toBe(2);
  await runtime.advance(10_000);
  done$.next('paid');
  done$.complete();
  await runtime.advance(100);
  expect(worlds.map((world) => world.result('t')?.values)).toStrictEqual([{ n: 'paid' }, { n: 'paid' }]);
});

it("R-17.4 a key of a node's own is not the key of another node", async () => {
  const world = handFleet();
  const { pay, runs } = counting();
  const worker = world.worker('w', [pay]);
  const nodes = [
    { id: 'a', tool: 'pay', idempotencyKey: 't/b' },
    { id: 'b', tool: 'pay' },
    { id: 'c', tool: 'pay', idempotencyKey: 't/b' },
  ];
  await world.fleet.submit('t', plan.from(nodes));
  await worker.give('t');
  await world.runtime.advance(10_000);
  // The third waits for the first, which has its key.
  expect(runs()).toBe(2);
});

it('R-17.4 a turn whose workers die of it is refused, and says so', async () => {
  const world = handFleet();
  const { pay } = counting();
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }], { timeoutMs: 1e9 }));
  let owners = 0;
  while (world.result('t') === undefined && owners < 100) {
    const worker = world.worker(`w${++owners}`, [pay]);
    await worker.give('t');
    worker.machine.kill();
    await world.runtime.advance(3_000);
  }
  expect(owners).toBe(11);
  expect(world.result('t')).toMatchObject({
    status: 'failed',
    summary: expect.stringMatching(/10 workers in a row died/) as string,
  });
});

it('R-17.4 a worker in a mode in which no key is claimed is refused', async () => {
  const runtime = virtualRuntime();
  const { pay } = counting();
  const world = handFleet(runtime);
  for (const mode of ['off', 'shadow'] as const) {
    const layer = createSpillway({ tools: [pay], store: sharedStore(runtime), runtime, mode });
    const serving = world.fleet.serve({ layer });
    await expect(serving.ready).rejects.toThrow(`layer runs pay in the mode ${mode}`);
  }
});

it('R-17.6 an engine that gives no answer does not keep a fleet from ending', async () => {
  const runtime = virtualRuntime();
  const never = (): Promise<never> => new Promise(() => undefined);
  const fleet = new LedgerFleet({
    ledger: new LedgerModel(() => runtime.now()),
    dispatcher: {
      engine: 'silent',
      add: never,
      work: () => ({ ready: Promise.resolve(), pause: never, close: never }),
      close: never,
    },
    runtime,
    maxOpen: 1,
    answerTimeoutMs: 1_000,
  });
  fleet.serve({ layer: createSpillway({ store: sharedStore(runtime), runtime }), drainMs: 500 });
  let isClosed = false;
  void fleet.close().then(() => (isClosed = true));
  await runtime.advance(10_000);
  expect(isClosed).toBe(false);
  await runtime.advance(501);
  expect(isClosed).toBe(true);
});

it('R-17.6 a turn that has ended is kept by nothing that waits for the end of its worker', async () => {
  const runtime = virtualRuntime();
  const ledger = new LedgerModel(() => runtime.now());
  await ledger.enter({ turnId: 't', record: '{}', digest: '', tenant: '', timeoutMs: 1, submission: '' }, 1);
  const begun = await ledger.begin('t', 'w', '0', false, 'w');
  if (begun.state !== 'begun') throw new Error('not begun');
  const [draining$, left$] = [new Subject<unknown>(), new Subject<unknown>()];
  journalOf({
    hold: new Hold(ledger, runtime, { turnId: 't', epoch: 1, undoes: false, askedMs: 0 }),
    leave: () => undefined,
    tell: () => undefined,
    runtime,
    turnId: 't',
    worker: 'w',
    begun,
    recorder: recorderOf(ledger, 't', begun, '', runtime),
    busy: new Set(),
    left$,
    ended$: NEVER,
    draining$,
  });
  expect(draining$.observed).toBe(true);
  left$.next(0);
  expect(draining$.observed).toBe(false);
});

it('R-17.5 progress that is told faster than it can be written is not kept', async () => {
  const runtime = virtualRuntime();
  const batches: LedgerBatch[] = [];
  const ledger = new LedgerModel(() => runtime.now());
  const slow: TurnLedger = Object.assign(Object.create(ledger) as LedgerModel, {
    write: async (_turnId: string, _epoch: number, batch: LedgerBatch) => {
      batches.push(batch);
      return true;
    },
  });
  await ledger.enter({ turnId: 't', record: '{}', digest: '', tenant: '', timeoutMs: 1, submission: '' }, 1);
  const begun = await ledger.begin('t', 'w', '0', false, 'w');
  if (begun.state !== 'begun') throw new Error('not begun');
  const recorder = recorderOf(slow, 't', begun, '', runtime);
  for (let at = 0; at < 50_000; at++)
    recorder.event({
      seq: at,
      atMs: 0,
      source: 'call',
      callId: 'c',
      toolName: 'pay',
      type: 'progress',
      attempt: 1,
      report: { fraction: 0 },
    } as never);
  let isKept = false;
  recorder.node('n', '{}').subscribe(() => (isKept = true));
  await runtime.advance(1);
  expect(isKept).toBe(true);
  expect(batches.flatMap(({ events }) => events)).toHaveLength(1_000);
});
