// Was: `resume()` had the store forget each turn as soon as that one was finished, so that a process that died while it
// was still at another one took along how the first had ended: nobody had heard. Now: the store forgets turns once
// `resume()` has given all of them.
import { createSpillway, plan, tool, type AnyTool, type Plan } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const LEASE_MS = 5_000;
const refused = (): never => {
  throw Object.assign(new Error('refused'), { status: 409 });
};

it('R-18.6 what became of a turn stays in the store until resume() has told it', async () => {
  const now = virtualRuntime();
  const store = memoryStore({ runtime: now });
  let hangs = true;
  const quick = tool({ name: 'quick', execute: () => 'done', compensate: refused });
  const slow = tool({
    name: 'slow',
    policy: { compensate: { enforcesKey: true } },
    execute: () => 'done',
    compensate: () => (hangs ? new Promise(() => undefined) : undefined),
  });
  const wait: AnyTool = {
    name: 'wait',
    policy: { effects: 'read' },
    execute: () => new Promise(() => undefined),
  };
  const tools = [quick, slow, wait];
  const of = (name: string): Plan =>
    plan.from(
      [
        { id: 'it', tool: name },
        { id: 'wait', tool: 'wait', needs: ['it'] },
      ],
      { onFailure: 'compensate', leaseMs: LEASE_MS },
    );
  // Processes whose time stands still.
  for (const name of ['quick', 'slow']) {
    const dead = virtualRuntime();
    createSpillway({ runtime: dead, store, tools }).turn(of(name), { turnId: name }).subscribe();
    await dead.advance(1);
  }
  await now.advance(2 * LEASE_MS);
  const dying = virtualRuntime({ seed: 2 });
  void createSpillway({ runtime: dying, store, tools }).resume();
  // It has finished the first turn, is at the second, and dies.
  await dying.advance(1_000);
  hangs = false;
  await now.advance(300_000);
  const next = createSpillway({ runtime: now, store, tools });
  const settled: string[] = [];
  next.trace$.subscribe((event) => {
    if (event.source === 'turn' && event.type === 'compensation_settled') settled.push(event.turnId);
  });
  const resuming = next.resume();
  await now.advance(60_000);
  const turns = await resuming;
  expect(turns.map(({ turnId }) => turnId).toSorted()).toEqual(['quick', 'slow']);
  expect(turns.find(({ turnId }) => turnId === 'quick')?.compensation?.stays.map(({ id }) => id)).toEqual(['it']);
  // Was: the trace of a process that only told how a turn was undone by another had nothing of it.
  expect(settled.toSorted()).toEqual(['quick', 'slow']);
  // Once it is told, it is forgotten.
  const rest = next.resume();
  await now.advance(300_000);
  expect(await rest).toEqual([]);
});
