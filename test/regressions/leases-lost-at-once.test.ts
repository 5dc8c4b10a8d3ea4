// Was: a lease that had passed before its work gave way for the first time was lost unheard, and the call never ended.
// Now: the loss is told to who watches next.
import { createSpillway, tool, ToolExecutionError, type AnyTool, type Spillway, type SpillwayOptions } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const LEASE_MS = 1_000;
const STALL_MS = 2 * LEASE_MS;

interface World {
  readonly runtime: VirtualRuntime;
  readonly runs: string[];
  layer(options?: SpillwayOptions, execute?: () => unknown): Spillway;
}

const world = (): World => {
  const runtime = virtualRuntime();
  const runs: string[] = [];
  const named = (name: string, execute: () => unknown): AnyTool =>
    tool({
      name,
      policy: {
        effects: 'read',
        retry: { maxAttempts: 1 },
        dedupe: { leaseMs: LEASE_MS },
        ...(name === 'first' ? { alternatives: ['second'] } : {}),
      },
      execute: () => {
        runs.push(name);
        return execute();
      },
    });
  return {
    runtime,
    runs,
    layer: (options = {}, execute = () => 'done') =>
      createSpillway({
        runtime,
        store: memoryStore({ runtime }),
        tools: [named('first', execute), named('second', () => 'other')],
        ...options,
      }),
  };
};

describe('a lease that passes before its work first gives way', () => {
  it('R-9.6 while its claim is told: the call ends, and nothing has run', async () => {
    const { runtime, runs, layer } = world();
    const spillway = layer();
    spillway.trace$.subscribe((event) => {
      if (event.type === 'dedupe' && event.step === 'claimed') runtime.stall(STALL_MS);
    });
    const result = spillway.execute({ toolName: 'first', idempotencyKey: 'k' });
    await runtime.run();
    expect((await result).error).toMatchObject({ code: 'store_unavailable', retriable: true });
    expect(runs).toEqual([]);
  });

  it('R-9.6 while a hook is asked: the call ends, and nothing has run', async () => {
    const { runtime, runs, layer } = world();
    const spillway = layer({ hooks: { beforeToolCall: () => runtime.stall(STALL_MS) } });
    const result = spillway.execute({ toolName: 'first', idempotencyKey: 'k' });
    await runtime.run();
    expect((await result).error).toMatchObject({ code: 'store_unavailable', retriable: true });
    expect(runs).toEqual([]);
  });

  it('R-9.6 while the tool runs, and fails: no alternative runs, and the call ends in doubt', async () => {
    const { runtime, runs, layer } = world();
    const spillway = layer({}, () => {
      runtime.stall(STALL_MS);
      throw new ToolExecutionError('execution_error', 'busy', { status: 503 });
    });
    const result = spillway.execute({ toolName: 'first', idempotencyKey: 'k' });
    await runtime.run();
    expect((await result).error).toMatchObject({ code: 'store_unavailable', uncertain: true });
    expect(runs).toEqual(['first']);
  });
});
