// Was: `equals: null` never matched, an answer without the key was "not done", and a payment was made again.
// Now: null is a value, and a key that is missing leaves it unknown unless the author says what it means.
import { createSpillway } from 'spillway';
import type { VerifyPolicy } from 'spillway/contract';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const paidTimes = async (answer: unknown, lookup: Pick<VerifyPolicy, 'done' | 'otherwise'>): Promise<number> => {
  const runtime = virtualRuntime();
  let paid = 0;
  const layer = createSpillway({
    runtime,
    tools: [
      { name: 'look', policy: { effects: 'read' }, execute: () => answer },
      {
        name: 'pay',
        policy: {
          effects: 'mutating',
          retry: { maxTotalTimeMs: 60_000 },
          verify: { tool: 'look', settleMs: 0, ...lookup },
        },
        execute: () => {
          paid++;
          throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        },
      },
    ],
  });
  const settled = layer.execute({ toolName: 'pay', input: {} });
  await runtime.advance(60_000);
  await settled;
  return paid;
};

it.for<[unknown, Pick<VerifyPolicy, 'done' | 'otherwise'>, number]>([
  [{ failedAt: null }, { done: { path: 'failedAt', equals: null } }, 1],
  [{ error: 'try later' }, { done: { path: 'status', equals: 'captured' } }, 1],
  [{ error: 'try later' }, { done: { path: 'status' } }, 1],
  [{}, { done: { path: 'status' }, otherwise: 'not_done' }, 5],
  [{ status: 'none' }, { done: { path: 'status', equals: 'captured' } }, 5],
  [[], { done: { path: 'x' } }, 1],
  [{ items: [] }, { done: { path: 'items[0]' } }, 5],
  [{ items: [] }, { done: { path: 'items[*].id', equals: 'p1' } }, 5],
  [{ id: null }, { done: { path: 'id' } }, 5],
])('R-18.3 the answer %j to %j: made %i times', async ([answer, lookup, times]) => {
  expect(await paidTimes(answer, lookup)).toBe(times);
});
