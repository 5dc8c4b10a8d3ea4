// Was: what may have happened was forgotten after five minutes, and then happened again under its key.
// Now: it is kept as long as what did happen, unless its resource checks the key.
import { createSpillway } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const paidIn = async (enforcesKey: boolean, waits: readonly number[]): Promise<number[]> => {
  const runtime = virtualRuntime();
  let paid = 0;
  const layer = createSpillway({
    runtime,
    tools: [
      {
        name: 'pay',
        policy: { effects: 'mutating', timeoutMs: 1_000, enforcesKey, retry: { maxAttempts: 1 } },
        execute: () => {
          paid++;
          return new Promise(() => undefined);
        },
      },
    ],
  });
  const counts: number[] = [];
  for (const wait of [0, ...waits]) {
    await runtime.advance(wait);
    const settled = layer.execute({ toolName: 'pay', input: {}, idempotencyKey: 'order-1' });
    await runtime.advance(2_000);
    await settled;
    counts.push(paid);
  }
  return counts;
};

it('R-10.2 an uncertain payment is remembered for a day, as one that was made', async () => {
  const minute = 60_000;
  expect(await paidIn(false, [6 * minute, 23 * 60 * minute])).toEqual([1, 1, 1]);
  expect(await paidIn(false, [25 * 60 * minute])).toEqual([1, 2]);
});

it('R-10.2 one that its resource refuses to make twice may be asked for again after five minutes', async () => {
  expect(await paidIn(true, [60_000, 6 * 60_000])).toEqual([1, 1, 2]);
});
