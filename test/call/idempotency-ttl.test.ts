import { createSpillway, tool, ToolExecutionError, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

describe('R-10.2 how long a call is remembered, where its tool does not say', () => {
  it.each([
    ['a failure for five minutes', 5 * MINUTE_MS, true],
    ['a success for a day', DAY_MS, false],
  ])('R-10.2 %s', async (_name, ttlMs, fails) => {
    const runtime = virtualRuntime();
    const store: DedupeStore = memoryStore({ runtime });
    let runs = 0;
    const pay = tool({
      name: 'pay',
      policy: { effects: 'mutating', breaker: false },
      execute: () => {
        runs++;
        if (fails) throw new ToolExecutionError('execution_error', 'no such account', { status: 404 });
        return 'paid';
      },
    });
    const spillway = createSpillway({ tools: [pay], runtime, store });
    const call = async (): Promise<boolean> =>
      (await spillway.execute({ toolName: 'pay', idempotencyKey: 'k' })).fromCache;
    expect(await call()).toBe(false);
    await runtime.advance(ttlMs - 1);
    expect([await call(), runs]).toEqual([true, 1]);
    await runtime.advance(1);
    expect([await call(), runs]).toEqual([false, 2]);
    await spillway.close();
    await store.close?.();
  });
});
