// Was: a process that lived kept the lease of a dead turn whose journal its store could not read at that moment, so
// that nobody undid it while that process lived; and an undoing that could not claim its key, since the store was lost,
// was given to a person for good. Now: the lease is given back, and the undoing is left to the next resume().
import { createSpillway, plan, tool, type AnyTool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const LEASE_MS = 5_000;

/** A store that fails once in a while. */
class Flaky {
  failing: ((name: string, key: string) => boolean) | undefined;
  readonly store: DedupeStore;

  constructor(store: DedupeStore) {
    const fails = (name: string, key: string): void => {
      if (this.failing?.(name, key) !== true) return;
      this.failing = undefined;
      throw Object.assign(new Error('the store broke off'), { code: 'ECONNRESET' });
    };
    this.store = {
      ...store,
      get: (key) => {
        fails('get', key);
        return store.get(key);
      },
      setIfNotExists: (claim, over) => {
        fails('claim', claim.tool);
        return store.setIfNotExists(claim, over);
      },
    };
  }
}

const booked = new Set<string>();
const book = tool({
  name: 'book',
  execute: (_: unknown, { callKey }) => void booked.add(callKey),
  compensate: (_, { callKey }) => booked.delete(callKey),
});
const wait: AnyTool = { name: 'wait', policy: { effects: 'read' }, execute: () => new Promise(() => undefined) };
const refused: AnyTool = {
  name: 'refused',
  policy: { effects: 'read' },
  execute: () => {
    throw Object.assign(new Error('refused'), { status: 409 });
  },
};
const tools = [book, wait, refused];
const then = (name: string) =>
  plan.from(
    [
      { id: 'it', tool: 'book' },
      { id: 'then', tool: name, needs: ['it'] },
    ],
    { onFailure: 'compensate', leaseMs: LEASE_MS },
  );

const resumed = async (runtime: VirtualRuntime, layer: ReturnType<typeof createSpillway>) => {
  const resuming = layer.resume();
  await runtime.advance(60_000);
  return resuming;
};

it('R-18.6 a process that could not read a journal gives the turn back', async () => {
  booked.clear();
  const runtime = virtualRuntime();
  const flaky = new Flaky(memoryStore({ runtime }));
  const dead = virtualRuntime();
  createSpillway({ runtime: dead, store: flaky.store, tools }).turn(then('wait')).subscribe();
  await dead.advance(1);
  expect(booked.size).toBe(1);
  await runtime.advance(2 * LEASE_MS);
  const living = createSpillway({ runtime, store: flaky.store, tools });
  flaky.failing = (name) => name === 'get';
  expect(await resumed(runtime, living)).toEqual([]);
  // Another process, while that one lives.
  const other = createSpillway({ runtime, store: flaky.store, tools });
  expect(await resumed(runtime, other)).toMatchObject([{ compensation: { compensated: ['it'], stays: [] } }]);
  expect(booked.size).toBe(0);
});

it('R-18.5 an undoing that cannot claim its key is made once it can, and else left to the next resume()', async () => {
  for (const brokenFor of ['a moment', 'longer than it is tried']) {
    booked.clear();
    const runtime = virtualRuntime();
    const flaky = new Flaky(memoryStore({ runtime }));
    const layer = createSpillway({ runtime, store: flaky.store, tools });
    const isUndo = (name: string, toolName: string): boolean => {
      const isIt = name === 'claim' && toolName === 'book/undo';
      // It fails once, and for longer once more each time.
      if (isIt && brokenFor !== 'a moment') queueMicrotask(() => (flaky.failing = isUndo));
      return isIt;
    };
    flaky.failing = isUndo;
    const states: string[] = [];
    layer.turn(then('refused')).subscribe((event) => {
      if (event.source === 'turn' && event.type === 'settled')
        states.push(...event.result.nodes.map(({ id, state, reason }) => `${id} ${state}: ${reason}`));
    });
    await runtime.advance(120_000);
    if (brokenFor === 'a moment') {
      expect(states[0]).toContain('it compensated: ');
    } else {
      expect(states[0]).toBe('it compensation_failed: It is not undone yet; resume() goes on with it');
      expect(booked.size).toBe(1);
      flaky.failing = () => false;
      await runtime.advance(1);
      flaky.failing = undefined;
      expect(await resumed(runtime, layer)).toMatchObject([{ compensation: { compensated: ['it'], stays: [] } }]);
    }
    expect(booked.size).toBe(0);
    expect(await resumed(runtime, layer)).toEqual([]);
  }
});
