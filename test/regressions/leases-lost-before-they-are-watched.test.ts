// Was: a call whose event loop stalled between its claim and its first attempt never settled. Now: its lease is found
// lost, and nothing runs.
import { createSpillway, tool } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

it.each([
  ['shorter than the lease', 100, { status: 'success', output: { content: 1 } }, 1],
  [
    'longer than the lease',
    10_000,
    { status: 'retriable_error', error: { code: 'store_unavailable', retriable: true } },
    0,
  ],
])(
  'R-9.6 a stall %s behind the claim: no attempt starts without a valid one, and the call settles',
  async (_what, stallMs, expected, runs) => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime, sweepMs: Infinity });
    let ran = 0;
    const once = tool({ name: 'once', policy: { dedupe: { leaseMs: 1_000 } }, execute: () => ++ran });
    const spillway = createSpillway({ tools: [once], store, runtime });
    spillway.trace$.subscribe((event) => {
      if (event.type === 'dedupe' && event.step === 'claimed') runtime.stall(stallMs);
    });
    const result = spillway.execute({ toolName: 'once', input: {}, idempotencyKey: 'k' });
    await runtime.run();
    expect(
      await Promise.race([result, new Promise((resolve) => setTimeout(() => resolve('it never settled'), 1_000))]),
    ).toMatchObject(expected);
    expect(ran).toBe(runs);
  },
);

it('R-2.5 a safety-critical call whose lease was lost before it ran is no doubt for the next one', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, sweepMs: Infinity });
  let ran = 0;
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', safetyCritical: true, dedupe: { leaseMs: 1_000 } },
    execute: () => ++ran,
  });
  const spillway = createSpillway({ tools: [pay], store, runtime });
  let stalls = 1;
  spillway.trace$.subscribe((event) => {
    if (event.type === 'dedupe' && event.step === 'claimed' && stalls-- > 0) runtime.stall(10_000);
  });
  const call = async (): Promise<string> => {
    const result = spillway.execute({ toolName: 'pay', input: {}, idempotencyKey: 'k' });
    await runtime.run();
    return (await result).status;
  };
  expect([await call(), await call(), ran]).toEqual(['retriable_error', 'success', 1]);
});
