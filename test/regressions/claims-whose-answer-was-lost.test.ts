// Was: a store that granted a key and lost its answer left the key to a call that had ended, so that asking again, as
// the error says, waited for the whole lease; a safety-critical tool was refused for good. Now: the process ends its
// own lost claim.
import { ToolExecutionError, createSpillway, tool, type DedupeStore, type Spillway } from 'spillway';
import type { DedupeRecord } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const unanswered = (): ToolExecutionError => new ToolExecutionError('store_unavailable', 'the connection was lost');

/** A store that hears what it is asked, and whose answers to claims are lost for as long as it is told. */
const losing = (memory: DedupeStore) => {
  const state = { isLost: true };
  const setIfNotExists: DedupeStore['setIfNotExists'] = (claim, over) => {
    const answer = memory.setIfNotExists(claim, over);
    return state.isLost ? Promise.reject(unanswered()) : answer;
  };
  return { store: { ...memory, setIfNotExists }, state };
};

const recordsOf = async (memory: DedupeStore): Promise<readonly DedupeRecord[]> => {
  const records: DedupeRecord[] = [];
  for await (const record of memory.byTool('pay')) records.push(record);
  return records;
};

const layerOn = (runtime: VirtualRuntime, store: DedupeStore, isSafetyCritical = false) => {
  const runs: string[] = [];
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', safetyCritical: isSafetyCritical },
    execute: (_input, { callKey }) => (runs.push(callKey), 'paid'),
  });
  const hook = { blocks: false };
  const hooks = { beforeToolCall: () => (hook.blocks ? { block: 'not now' } : undefined) };
  return { layer: createSpillway({ runtime, store, tools: [pay], hooks }), runs, hook };
};

const asked = { toolName: 'pay', idempotencyKey: 'k' };
const codeOf = async (layer: Spillway): Promise<string> => {
  const { status, error } = await layer.execute(asked);
  return error?.code ?? status;
};

describe.each([
  ['mutating', false],
  ['safety-critical', true],
])('a %s tool', (_kind, isSafetyCritical) => {
  it('R-9.6 runs when it is asked for again after the answer to its claim was lost', async () => {
    const runtime = virtualRuntime();
    const { store, state } = losing(memoryStore({ runtime }));
    const { layer, runs } = layerOn(runtime, store, isSafetyCritical);
    // The claim of the first is in the way of the second.
    for (let calls = 0; calls < 2; calls++) {
      const call = codeOf(layer);
      await runtime.advance(0);
      expect([await call, runs.length]).toEqual(['store_unavailable', 0]);
    }
    state.isLost = false;
    const again = codeOf(layer);
    await runtime.advance(10);
    expect([await again, runs.length]).toEqual(['success', 1]);
    expect([await codeOf(layer), runs.length]).toEqual(['success', 1]);
  });
});

it('R-9.6 the claim of a caller who left while the answer was on its way is ended as well', async () => {
  const runtime = virtualRuntime();
  const { store, state } = losing(memoryStore({ runtime }));
  const { layer, runs } = layerOn(runtime, store);
  layer.call(asked).subscribe().unsubscribe();
  await runtime.advance(0);
  state.isLost = false;
  const again = codeOf(layer);
  await runtime.advance(10);
  expect([await again, runs.length]).toEqual(['success', 1]);
});

it('R-9.6 so is a key that was given back, which the store did not hear', async () => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime });
  const store: DedupeStore = { ...memory, delete: () => Promise.reject(unanswered()) };
  const { layer, runs, hook } = layerOn(runtime, store);
  hook.blocks = true;
  expect(await codeOf(layer)).toBe('blocked');
  await runtime.advance(0);
  expect(await recordsOf(memory)).toMatchObject([{ state: 'inflight' }]);
  hook.blocks = false;
  Object.assign(store, { delete: memory.delete });
  const again = codeOf(layer);
  await runtime.advance(10);
  expect([await again, runs.length]).toEqual(['success', 1]);
});

it("R-9.6 another process's claim is waited for, also after an own one was lost", async () => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime });
  const { store, state } = losing(memory);
  const { layer, runs } = layerOn(runtime, store);
  void codeOf(layer);
  await runtime.advance(0);
  const [lost] = await recordsOf(memory);
  if (lost === undefined) throw new Error('the lost claim stands in the store');
  // Its lease passes, and another process takes the key.
  await runtime.advance(120_000);
  const request = { ...lost.request, requestId: 'of another process' };
  const taken = await memory.setIfNotExists({ ...lost, request, leaseMs: 60_000 }, lost.version);
  expect(taken.created).toBe(true);
  state.isLost = false;
  void codeOf(layer);
  await runtime.advance(30_000);
  expect([runs, (await memory.get(lost.key))?.record.request]).toEqual([[], request]);
});
