import { Subject, firstValueFrom, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import type { Dispatcher, Given, RunEnd } from '../../src/fleet/dispatcher.ts';
import { LedgerFleet } from '../../src/fleet/engine.ts';
import { LedgerModel } from '../simulation/fleet/ledger.ts';

/** An engine by hand: the test gives turns to the worker. */
const byHand = () => {
  const runtime = virtualRuntime();
  const ledger = new LedgerModel(() => runtime.now());
  let give: ((given: Given) => Observable<RunEnd>) | undefined;
  const added: string[] = [];
  const dispatcher: Dispatcher = {
    engine: 'by hand',
    add: async (turnId) => void added.push(turnId),
    work: (run) => {
      give = run;
      return { ready: Promise.resolve(), pause: async () => undefined, close: async () => undefined };
    },
    close: async () => undefined,
  };
  const fleet = new LedgerFleet({ ledger, dispatcher, runtime, maxOpen: 10, answerTimeoutMs: 1_000 });
  const store = memoryStore({ runtime, sweepMs: Infinity });
  const shared = Object.assign(Object.create(store) as typeof store, {
    report: () => ({ kind: 'model', durability: 'disk' as const, shared: true, warnings: [] }),
  });
  const slow = tool({
    name: 'slow',
    policy: { effects: 'read' },
    execute: () => firstValueFrom(runtime.after(1_000)),
  });
  fleet.serve({ layer: createSpillway({ tools: [slow], store: shared, runtime }), worker: 'one' });
  const lost$ = new Subject<unknown>();
  return {
    runtime,
    ledger,
    fleet,
    added,
    lost$,
    given: async (turnId: string): Promise<RunEnd[]> => {
      const ends: RunEnd[] = [];
      await runtime.advance(1);
      give?.({ turnId, lost$ }).subscribe((end) => ends.push(end));
      await runtime.advance(1);
      return ends;
    },
  };
};

const trip = plan.from([{ id: 'n', tool: 'slow', input: {} }]);

describe('R-17.4 a worker that is overtaken', () => {
  // Found under load: the engine took the turn for done, and the other, whom it had given up, left it as well.
  it('R-17.4 does not tell the engine that the turn is done', async () => {
    const { runtime, ledger, fleet, given } = byHand();
    await fleet.submit('trip', trip);
    const ends = await given('trip');
    await ledger.begin('trip', 'late', '0', false, 'late');
    await runtime.advance(2_000);
    expect(ends).toStrictEqual([{ act: 'again', afterMs: 200 }]);
    expect(ledger.turns.get('trip')?.isSettled).toBe(false);
    const again = await given('trip');
    await runtime.advance(2_000);
    expect(again).toStrictEqual([{ act: 'done' }]);
    expect(ledger.turns.get('trip')?.isSettled).toBe(true);
  });

  it('R-17.3 a turn that is overdue, and that no engine knows of, is given to somebody', async () => {
    const { runtime, fleet, added } = byHand();
    await fleet.submit('trip', plan.from(trip.nodes, { timeoutMs: 1_000 }));
    added.length = 0;
    await runtime.advance(9_000);
    expect(added).toStrictEqual([]);
    await runtime.advance(12_000);
    expect(added).toStrictEqual(['trip']);
  });

  it('R-17.4 has nothing to tell where the engine itself gave the turn to another', async () => {
    const { runtime, fleet, given, lost$ } = byHand();
    await fleet.submit('trip', trip);
    const ends = await given('trip');
    lost$.next('trip');
    await runtime.advance(2_000);
    expect(ends).toStrictEqual([{ act: 'done' }]);
  });
});
