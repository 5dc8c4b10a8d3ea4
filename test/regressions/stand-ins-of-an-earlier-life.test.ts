// Was: the note of an alternative that an earlier life of a key had left, since it was never begun or could not be
// taken away, was believed by whoever took the key over later, and the alternative paid beside the tool. Now: a call
// that has its key anew takes such notes away before it begins.
import { expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore, type Spillway, type Tool, type ToolPolicy } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

type Life = 1 | 2 | 3;

const REQUEST = { toolName: 'pay', input: {}, idempotencyKey: 'k' };

it.each<[string, ToolPolicy, boolean]>([
  ['no breaker let it begin', { breaker: { initialState: 'forced_open' } }, false],
  ['the store did not take it away', {}, true],
])('R-18.4 R-9.6 a note of an earlier life of the key is believed by nobody: %s', async (_why, first, keepsNotes) => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime });
  const paid: string[] = [];
  const toolOf = (life: Life, name: string, alternatives: string[] = []): Tool =>
    tool({
      name,
      policy: {
        effects: 'mutating',
        enforcesKey: true,
        alternatives,
        retry: { maxAttempts: 1 },
        dedupe: { leaseMs: 1_000 },
        ...(life === 1 ? first : {}),
      },
      execute: (): unknown => {
        if (life === 1) throw Object.assign(new Error('gone'), { status: 410 });
        paid.push(`${name} in life ${life}`);
        return life === 2 ? new Promise(() => undefined) : 'ok';
      },
    });
  const layerOf = (life: Life, own: VirtualRuntime): Spillway => {
    const store: DedupeStore =
      life === 1 && keepsNotes ? { ...memory, delete: () => Promise.reject(new Error('down')) } : memory;
    return createSpillway({ runtime: own, store, tools: [toolOf(life, 'pay', ['second']), toolOf(life, 'second')] });
  };
  const begun = layerOf(1, runtime).execute(REQUEST);
  await runtime.advance(5_000);
  await begun;
  await runtime.advance(301_000);
  // A process that pays and dies: its clock stands still.
  const dead = virtualRuntime();
  void layerOf(2, dead).execute(REQUEST);
  await dead.advance(10);
  await runtime.advance(1_100);
  const last = layerOf(3, runtime).execute(REQUEST);
  await runtime.advance(10_000);
  expect((await last).status).toBe('success');
  // Its resource checks the key: the second does nothing there. What another was asked for would be a second payment.
  expect(paid).toEqual(['pay in life 2', 'pay in life 3']);
});
