import { createSpillway, plan, tool, type DedupeStore, type Spillway, type TurnEvent } from 'spillway';
import type { TurnJournal } from 'spillway/contract';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Life, mortal, reached } from '../../src/explore/life.ts';
import { JOURNAL_TOOL } from '../../src/saga/own-records.ts';
import { states, turnResultOf } from '../call/kit.ts';
import { survivors } from './survivors.ts';

const trip = plan.from(
  [
    { id: 'flight', tool: 'flight' },
    { id: 'hotel', tool: 'hotel', needs: ['flight'] },
    { id: 'look', tool: 'look', needs: ['hotel'] },
  ],
  { onFailure: 'compensate', leaseMs: 5_000 },
);

const refused = (): never => {
  throw Object.assign(new Error('there is nothing to see'), { status: 422 });
};
const silent = (): Promise<never> => new Promise(() => undefined);

/** What a worker's tools do where that is not simply done. */
interface Ways {
  readonly look: () => unknown;
  readonly undo?: (name: string) => unknown;
}

/** A worker process and what it did; once its life has ended, none of its timers and questions count. */
const workerOf = (runtime: VirtualRuntime, store: DedupeStore, log: string[], { look, undo }: Ways) => {
  const life = new Life();
  const booking = (name: string) =>
    tool({
      name,
      policy: {
        effects: 'mutating',
        timeoutMs: 30_000,
        retry: { maxAttempts: 1 },
        compensate: { enforcesKey: true },
      },
      execute: () => void log.push(name),
      compensate: () => {
        log.push(`undo ${name}`);
        return undo?.(name);
      },
    });
  const layer = createSpillway({
    runtime: mortal(runtime, life),
    store: reached(store, life, () => undefined),
    tools: [
      booking('flight'),
      booking('hotel'),
      tool({ name: 'look', policy: { effects: 'read', retry: { maxAttempts: 1 } }, execute: look }),
    ],
  });
  return { layer, life };
};

const run = (layer: Spillway, journal: TurnJournal, what = trip): TurnEvent[] => {
  const events: TurnEvent[] = [];
  layer.turn(what, { journal }).subscribe((event) => events.push(event));
  return events;
};

const journalsIn = async (store: DedupeStore): Promise<readonly unknown[]> => {
  const found: unknown[] = [];
  for await (const record of store.byTool(JOURNAL_TOOL)) found.push(record);
  return found;
};

describe('R-18.6 a turn that moves when all its nodes have settled, or only read', () => {
  // Was: the next process began no call that acts, asked for no journal, and told what was half undone as done.
  it('R-18.6 a process that dies while it undoes is followed by one that ends it, nothing undone twice', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const undo = (name: string): unknown => (name === 'flight' ? silent() : undefined);
    const first = workerOf(runtime, kept.store, log, { look: refused, undo });
    const before = run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    expect(log).toStrictEqual(['flight', 'hotel', 'undo hotel', 'undo flight']);
    first.life.end();
    const second = workerOf(runtime, kept.store, log, { look: refused });
    const events = run(second.layer, kept.taken('two'));
    await runtime.advance(200_000);
    // The undoing that nobody saw the end of is repeated, since its resource checks the key.
    expect(log).toStrictEqual(['flight', 'hotel', 'undo hotel', 'undo flight', 'undo flight']);
    const result = turnResultOf(events);
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensated', look: 'failed' });
    expect(result.compensation).toMatchObject({ reason: 'escalated', stays: [] });
    expect([...(result.compensation?.compensated ?? [])].toSorted()).toEqual(['flight', 'hotel']);
    expect([...before, ...events].filter(({ source, type }) => source === 'turn' && type === 'settled')).toHaveLength(
      1,
    );
    expect(await journalsIn(kept.store)).toEqual([]);
  });

  it('R-18.6 one whose time was over while it had no process is undone by the next', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, { look: silent });
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    first.life.end();
    await runtime.advance(90_000);
    const second = workerOf(runtime, kept.store, log, { look: silent });
    const events = run(second.layer, kept.taken('two'));
    await runtime.advance(1_000);
    expect(log).toStrictEqual(['flight', 'hotel', 'undo hotel', 'undo flight']);
    const result = turnResultOf(events);
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensated', look: 'timed_out' });
    expect(result.compensation).toMatchObject({ reason: 'deadline', stays: [] });
  });

  // Was: its journal stayed as of one that runs, and resume() undid the completed turn in its last day.
  it('R-18.6 one that completes elsewhere without another effect leaves nothing to undo', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, { look: silent });
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    first.life.end();
    const second = workerOf(runtime, kept.store, log, { look: () => 'the sea' });
    const events = run(second.layer, kept.taken('two'));
    await runtime.advance(5_000);
    expect(turnResultOf(events)).toMatchObject({ status: 'completed' });
    expect(await journalsIn(kept.store)).toEqual([]);
    await runtime.advance(6.5 * 86_400_000);
    const late = workerOf(runtime, kept.store, log, { look: silent });
    const resumed = late.layer.resume();
    await runtime.advance(60_000);
    expect(await resumed).toEqual([]);
    expect(log).toStrictEqual(['flight', 'hotel']);
  });

  // Was: the second process did not know that its call built on one of the first, and undid both at once.
  it('R-18.5 calls of two processes are undone in reverse order of the graph', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const between = plan.from(
      [
        { id: 'flight', tool: 'flight' },
        { id: 'look', tool: 'look', needs: ['flight'] },
        { id: 'hotel', tool: 'hotel', needs: ['look'] },
        { id: 'again', tool: 'look', input: 'again', needs: ['hotel'] },
      ],
      { onFailure: 'compensate', leaseMs: 5_000 },
    );
    const first = workerOf(runtime, kept.store, log, { look: silent });
    run(first.layer, kept.taken('one'), between);
    await runtime.advance(1_000);
    first.life.end();
    let looks = 0;
    const second = workerOf(runtime, kept.store, log, {
      look: () => (looks++ === 0 ? 'the sea' : refused()),
      undo: (name) => runtime.after(100).pipe(tap(() => log.push(`${name} is undone`))),
    });
    const events = run(second.layer, kept.taken('two'), between);
    await runtime.advance(5_000);
    expect(log).toStrictEqual(['flight', 'hotel', 'undo hotel', 'hotel is undone', 'undo flight', 'flight is undone']);
    expect(turnResultOf(events).compensation).toMatchObject({ compensated: ['flight', 'hotel'], stays: [] });
  });

  it('R-18.6 one whose journal the store does not give goes back to its engine, and tells no end', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const log: string[] = [];
    const first = workerOf(runtime, kept.store, log, { look: silent });
    run(first.layer, kept.taken('one'));
    await runtime.advance(1_000);
    first.life.end();
    const lost: DedupeStore = {
      ...kept.store,
      setIfNotExists: () => Promise.reject(new Error('no connection')),
      get: () => Promise.reject(new Error('no connection')),
    };
    const second = workerOf(runtime, lost, log, { look: refused });
    let left = 0;
    const events = run(second.layer, { ...kept.taken('two'), leave: () => left++ });
    // Its end comes, and the store still says nothing.
    await runtime.advance(70_000);
    expect(left).toBe(1);
    expect(events.filter(({ source, type }) => source === 'turn' && type === 'settled')).toEqual([]);
    const third = workerOf(runtime, kept.store, log, { look: refused });
    const after = run(third.layer, kept.taken('three'));
    await runtime.advance(5_000);
    expect(log).toStrictEqual(['flight', 'hotel', 'undo hotel', 'undo flight']);
    expect(turnResultOf(after).compensation).toMatchObject({ compensated: ['flight', 'hotel'], stays: [] });
  });
});
