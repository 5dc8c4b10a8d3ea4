import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

it('R-10.2 a sweep removes what has expired, at the very moment it has, and not before', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, sweepMs: Infinity });
  const request = { sessionKey: 's', actorId: 'a', requestId: 'r', paramsDigest: 'p' };
  const { record } = await store.setIfNotExists({
    key: 'k',
    tool: 't',
    idempotencyKey: 'k',
    request,
    leaseMs: 50,
    ttlMs: 50,
  });
  await store.compareAndSet('k', record.version, { state: 'done', ttlMs: 100, payload: '1' });
  runtime.stall(99);
  expect(await store.sweep()).toBe(0);
  expect(await store.get('k')).toBeDefined();
  runtime.stall(1);
  expect(await store.get('k')).toBeUndefined();
  expect(await store.sweep()).toBe(1);
});
