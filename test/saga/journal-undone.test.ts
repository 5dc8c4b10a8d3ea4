import { createSpillway, plan, tool, type DedupeStore, type Spillway, type TurnEvent } from 'spillway';
import type { TurnJournal } from 'spillway/contract';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { Life, mortal, reached } from '../../src/explore/life.ts';
import { JOURNAL_TOOL } from '../../src/saga/own-records.ts';
import { states, turnResultOf } from '../call/kit.ts';
import { survivors } from './survivors.ts';

const trip = plan.from(
  [
    { id: 'flight', tool: 'flight' },
    { id: 'seat', tool: 'seat', needs: ['flight'] },
  ],
  { onFailure: 'compensate', leaseMs: 5_000 },
);

const refused = (): never => {
  throw Object.assign(new Error('no seat is left'), { status: 422 });
};
const silent = (): Promise<never> => new Promise(() => undefined);

/** A worker process and what it did; once its life has ended, none of its timers and questions count. */
const workerOf = (runtime: VirtualRuntime, store: DedupeStore, log: string[], seat: () => unknown) => {
  const life = new Life();
  const booking = (name: string, execute: () => unknown) =>
    tool({
      name,
      policy: {
        effects: 'mutating',
        timeoutMs: 30_000,
        retry: { maxAttempts: 1 },
        dedupe: { leaseMs: 5_000 },
        verify: { settleMs: 1_000 },
      },
      execute: async () => {
        log.push(name);
        return execute();
      },
      verify: () => ({ done: false }),
      compensate: (output) => void log.push(`undo ${name} ${JSON.stringify(output)}`),
    });
  const layer = createSpillway({
    runtime: mortal(runtime, life),
    store: reached(store, life, () => undefined),
    tools: [booking('flight', () => ({ id: 7 })), booking('seat', seat)],
  });
  return { layer, life };
};

const run = (layer: Spillway, journal: TurnJournal): TurnEvent[] => {
  const events: TurnEvent[] = [];
  layer.turn(trip, { journal }).subscribe((event) => events.push(event));
  return events;
};

const journalsIn = async (store: DedupeStore): Promise<readonly unknown[]> => {
  const found: unknown[] = [];
  for await (const record of store.byTool(JOURNAL_TOOL)) found.push(record);
  return found;
};

describe('R-18.6 a turn that undoes what it did, and moves to another process', () => {
  it('R-18.6 the next process goes on at once with what the dead one did, and undoes it once', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, silent);
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    expect(log).toStrictEqual(['flight', 'seat']);
    first.life.end();
    const second = workerOf(runtime, kept.store, log, refused);
    const events = run(second.layer, kept.taken('two'));
    // Less than the lease that the dead process held: the engine's word ends it.
    await runtime.advance(4_000);
    expect(log).toStrictEqual(['flight', 'seat', 'seat', 'undo flight {"id":7}']);
    const result = turnResultOf(events);
    expect(states(result)).toEqual({ flight: 'compensated', seat: 'failed' });
    expect(result.compensation).toMatchObject({ reason: 'escalated', compensated: ['flight'], stays: [] });
    await runtime.advance(1_000);
    expect(await journalsIn(kept.store)).toEqual([]);
  });

  it('R-18.6 the next process that completes it leaves nothing to undo', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, silent);
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    first.life.end();
    const second = workerOf(runtime, kept.store, log, () => 'seat 7');
    const events = run(second.layer, kept.taken('two'));
    await runtime.advance(5_000);
    expect(log).toStrictEqual(['flight', 'seat', 'seat']);
    expect(turnResultOf(events)).toMatchObject({ status: 'completed' });
    await runtime.advance(200_000);
    const third = workerOf(runtime, kept.store, log, silent);
    const resumed = third.layer.resume();
    await runtime.advance(1_000);
    expect(await resumed).toEqual([]);
    expect(log).toStrictEqual(['flight', 'seat', 'seat']);
  });

  it('R-18.6 a process that the engine has not given it cannot take it over', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, silent);
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    const overtaken = kept.taken('two');
    kept.taken('three');
    const second = workerOf(runtime, kept.store, log, () => 'seat 7');
    const events = run(second.layer, overtaken);
    await runtime.advance(3_000);
    expect(log).toStrictEqual(['flight', 'seat']);
    expect(events.filter(({ type }) => type === 'settled')).toEqual([]);
  });

  // Was: resume() undid a turn that its engine gave to the next process, which then told what was undone as done.
  it('R-18.6 resume() leaves it to the next process, and finishes it once its engine has lost it', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, silent);
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    first.life.end();
    await runtime.advance(10_000);
    const other = workerOf(runtime, kept.store, log, silent);
    expect(await other.layer.resume()).toEqual([]);
    const second = workerOf(runtime, kept.store, log, silent);
    run(second.layer, kept.taken('two'));
    await runtime.advance(1_000);
    expect(log).toStrictEqual(['flight', 'seat', 'seat']);
    second.life.end();
    await runtime.advance(6.5 * 86_400_000);
    const late = workerOf(runtime, kept.store, log, silent);
    const resumed = late.layer.resume();
    await runtime.advance(60_000);
    expect(await resumed).toMatchObject([{ outcome: 'undone', compensation: { compensated: ['flight'] } }]);
    expect(log).toStrictEqual(['flight', 'seat', 'seat', 'undo flight {"id":7}']);
  });
});
