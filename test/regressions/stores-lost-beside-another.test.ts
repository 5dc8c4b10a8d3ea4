// Was: where the store was lost while another call stood in the way, a `bestEffort` call that was about to take its
// place paid again without its `verify` being asked, and one that waited told its model only that the tool did not run.
// Now: verify is asked, and the model hears of the other call.
import { ToolExecutionError, tool, type DedupeStore } from 'spillway';
import { firstValueFrom, of } from 'rxjs';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import { acquireKey } from '../../src/operators/dedupe/key-acquisition.ts';
import { LEASE_MS, process } from '../call/paying-process.ts';
import { asked } from '../spec/tr-02-stores.ts';

const BESIDE_ANOTHER =
  'The same call is already running. Do not make it a second time: try again later to have its result.';

/** A store that is lost to who would take a key over, or to who looks again at a key that it waits for. */
const losing = (store: DedupeStore, lost: { readonly takeOver?: boolean; readonly look?: boolean }): DedupeStore => ({
  ...store,
  setIfNotExists: (claim, over) => {
    if (lost.takeOver === true && over !== undefined) throw new Error('the connection is gone');
    return store.setIfNotExists(claim, over);
  },
  get: (key) => {
    if (lost.look === true) throw new Error('the connection is gone');
    return store.get(key);
  },
});

/** Another process began the payment; how long ago decides whether its claim still holds. */
const begunElsewhere = async (agoMs: number) => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  void process(virtualRuntime(), store, () => new Promise(() => undefined)).layer.execute(asked({ toolName: 'pay' }));
  await runtime.advance(agoMs);
  return { runtime, store };
};

it.each([
  ['is not made again where it took effect', { done: true, output: 'paid' }, 'success', 0],
  ['is made where it did not', { done: false }, 'success', 1],
  ['is not made where that cannot be known', 'unknown', 'retriable_error', 0],
] as const)('R-18.4 a payment whose claim cannot be taken over %s', async (_what, found, status, ran) => {
  const { runtime, store } = await begunElsewhere(LEASE_MS + 1);
  const next = process(
    runtime,
    losing(store, { takeOver: true }),
    () => 'paid',
    () => found,
  );
  const result = next.layer.execute(asked({ toolName: 'pay', mode: 'bestEffort' }));
  await runtime.advance(LEASE_MS);
  expect((await result).status).toBe(status);
  expect(next.ran).toBe(ran);
});

it('R-18.4 nor where the dead process may have been at an alternative', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  let paid = 0;
  const other = tool({
    name: 'other',
    policy: { effects: 'mutating' },
    execute: () => (paid++, new Promise(() => undefined)),
  });
  const refused = (): never => {
    throw new ToolExecutionError('execution_error', 'not here', { executed: false, classification: 'permanent' });
  };
  const alternatives = { alternatives: ['other'] };
  const dead = process(virtualRuntime(), store, refused, undefined, alternatives, [other]);
  void dead.layer.execute(asked({ toolName: 'pay' }));
  await runtime.advance(LEASE_MS + 1);
  expect(paid).toBe(1);
  const lost = losing(store, { takeOver: true });
  const next = process(
    runtime,
    lost,
    () => 'paid',
    () => ({ done: false }),
    alternatives,
    [other],
  );
  const result = next.layer.execute(asked({ toolName: 'pay', mode: 'bestEffort' }));
  await runtime.advance(LEASE_MS);
  expect(await result).toMatchObject({ status: 'retriable_error', error: { uncertain: true } });
  expect([next.ran, paid]).toEqual([0, 1]);
});

it.each([
  ['waits for another', 1, { look: true }],
  ['is about to take over from another', LEASE_MS + 1, { takeOver: true }],
])('R-12.4 the model of a call that %s when the store is lost hears of that one', async (_what, agoMs, lost) => {
  const { runtime, store } = await begunElsewhere(agoMs);
  const next = process(runtime, losing(store, lost), () => 'paid');
  const result = next.layer.execute(asked({ toolName: 'pay' }));
  await runtime.advance(LEASE_MS / 2);
  const { error } = await result;
  expect(error).toMatchObject({
    code: 'store_unavailable',
    retriable: true,
    modelText: BESIDE_ANOTHER,
  });
  expect(next.ran).toBe(0);
});

it('R-10.3 a call whose store is lost while a given-up claim is ended hears of that one', async () => {
  const { runtime, store } = await begunElsewhere(1);
  const lost = { ...store, renew: () => Promise.reject(new Error('the connection is gone')) };
  const request = { sessionKey: 's', actorId: 'ada', requestId: 'r', paramsDigest: '' };
  const claim = { key: 'k', tool: 'pay', idempotencyKey: 'k', request, leaseMs: LEASE_MS, ttlMs: LEASE_MS };
  await store.setIfNotExists({ ...claim, request: { ...request, requestId: 'dead' } });
  const terms = { runtime, leaseMs: LEASE_MS, storeTimeoutMs: 100, hasOwnId: true, global: false, neverTwice: false };
  const givenUp = () => of(true);
  const answer$ = acquireKey(claim, { ...terms, store: lost, mode: 'enforced', givenUp }, () => undefined);
  expect(await firstValueFrom(answer$)).toMatchObject({ act: 'refuse', error: { safeMessage: BESIDE_ANOTHER } });
});
