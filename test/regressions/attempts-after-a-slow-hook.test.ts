// Was: lease and deadline were looked at before `beforeToolCall` was asked, and not when it had answered. Now: an
// attempt whose lease or turn is over by then does not start.
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, watched } from '../spec/tr-02-stores.ts';

describe('an attempt whose hook took its time', () => {
  it('IDEM-2 a process that stood still meanwhile no longer holds its key: no attempt', async () => {
    const runtime = virtualRuntime();
    let runs = 0;
    const hooks = { beforeToolCall: () => runtime.after(100) as never };
    const { layer, steps } = watched(
      memoryStore({ runtime, sweepMs: Infinity }),
      () => ++runs,
      { dedupe: { leaseMs: 900 } },
      { runtime, hooks },
    );
    const result = layer.execute(asked());
    await runtime.advance(1);
    runtime.stall(5_000);
    await runtime.advance(10_000);
    expect(await result).toMatchObject({
      status: 'retriable_error',
      attempts: 0,
      error: { code: 'store_unavailable' },
    });
    expect((await result).error?.uncertain).toBeUndefined();
    expect([runs, steps()]).toEqual([0, ['claimed', 'lease_lost']]);
    expect(layer.breakers.get('t').state).toMatchObject({ type: 'closed', measured: 0 });
  });

  it('DL-1 R-4.4 a turn that is over by then starts nothing', async () => {
    const runtime = virtualRuntime();
    let runs = 0;
    const hooks = { beforeToolCall: () => runtime.after(300) as never };
    const layer = createSpillway({ tools: [tool({ name: 't', execute: () => ++runs })], runtime, hooks });
    layer.turn(plan.from([{ id: 'a', tool: 't' }], { timeoutMs: 100 })).subscribe();
    await runtime.advance(10_000);
    expect(runs).toBe(0);
  });
});
