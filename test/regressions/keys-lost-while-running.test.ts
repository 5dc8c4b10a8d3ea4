// Was: a call that lost its key while its tool ran told of what it found there: busy, conflict, "nothing was run". Now:
// it says that it may have taken effect.
import { expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, records, watched } from '../spec/tr-02-stores.ts';

it.each([
  ['the store is lost next', 'enforced', 'down'],
  ['another runs', 'bestEffort', 'running'],
  ['another asked for something else', 'enforced', 'other'],
  ['another was canceled', 'enforced', 'cancelled'],
  ['nobody has it', 'enforced', 'gone'],
] as const)(
  'R-9.6 IDEM-5 a call that lost its key while its tool ran is uncertain, also when %s',
  async (_what, mode, then) => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    let down = false;
    const store: DedupeStore = {
      ...memory,
      get: (key) => {
        if (down) throw new Error('connect ECONNREFUSED');
        return memory.get(key);
      },
    };
    let aborts = 0;
    const { call, steps } = watched(
      store,
      (_input, { signal }) => {
        signal.addEventListener('abort', () => aborts++);
        return new Promise(() => undefined);
      },
      { dedupe: { leaseMs: 900 } },
      { runtime },
    );
    const result = call({ mode });
    await runtime.advance(10);
    const [record] = await records(memory);
    if (record === undefined) throw new Error('there is no record');
    const { key, tool, idempotencyKey, request } = record;
    await memory.delete(key);
    if (then !== 'gone' && then !== 'down') {
      const paramsDigest = then === 'other' ? 'another' : request.paramsDigest;
      const claimed = await memory.setIfNotExists({
        key,
        tool,
        idempotencyKey,
        request: { ...request, requestId: 'other', paramsDigest },
        leaseMs: 60_000,
        ttlMs: 60_000,
      });
      if (then === 'cancelled')
        await memory.compareAndSet(key, claimed.record.version, {
          state: 'cancelled',
          ttlMs: 60_000,
          error: { code: 'canceled', message: '', terminal: true, shouldRetriable: false },
        });
    }
    down = then === 'down';
    await runtime.advance(5_000);
    expect(await result).toMatchObject({
      status: 'retriable_error',
      attempts: 1,
      fromCache: false,
      error: {
        code: 'store_unavailable',
        uncertain: true,
        message: expect.stringContaining('may have taken effect') as string,
      },
    });
    expect([steps()[1], aborts]).toEqual(['lease_lost', 1]);
  },
);

it.each([
  ['safetyCritical', { safetyCritical: true }, undefined],
  ['named so by its caller', {}, { callHints: { safetyCritical: true } }],
] as const)(
  'R-2.5 a call %s whose key is deleted under it is not to be asked for again: nothing would keep it from running',
  async (_what, policy, hints) => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime, sweepMs: Infinity });
    const { layer } = watched(
      store,
      () => new Promise(() => undefined),
      { effects: 'mutating', ...policy, dedupe: { leaseMs: 900 } },
      { runtime },
    );
    const { payload, ...call } = asked();
    const result = layer.execute({ ...call, payload: { ...payload, ...hints } });
    await runtime.advance(10);
    const [record] = await records(store);
    await store.delete(record?.key ?? '');
    await runtime.advance(5_000);
    expect(await result).toMatchObject({
      status: 'error',
      error: {
        code: 'store_unavailable',
        uncertain: true,
        message: expect.stringContaining('find out, then clear the key') as string,
        // It said that the call was not made, too.
        modelText:
          'The store that guards against duplicates is unavailable. The tool may have run and taken effect. ' +
          'Check first whether it took effect. Do not try again.',
      },
    });
  },
);

it('R-12.4 a call that the store lets not run says so to its model, and one that ran does not', async () => {
  const down: DedupeStore = {
    ...memoryStore(),
    setIfNotExists: () => {
      throw new Error('connect ECONNREFUSED');
    },
  };
  const { call } = watched(down, () => 'done', { effects: 'mutating' }, { runtime: virtualRuntime() });
  const { error } = await call();
  expect(error?.modelText).toMatch(
    /^The store that guards against duplicates is unavailable\. The tool did not run\. /,
  );
});

it('R-2.5 nor is one whose verify does not know: without a record it is not asked before the tool runs', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, sweepMs: Infinity });
  let paid = 0;
  const pay = tool({
    name: 't',
    policy: { effects: 'mutating', safetyCritical: true, dedupe: { leaseMs: 900 } },
    execute: () => {
      paid++;
      return new Promise(() => undefined);
    },
    verify: async () => 'unknown' as const,
  });
  const layer = createSpillway({ tools: [pay], store, runtime });
  const result = layer.execute(asked());
  await runtime.advance(10);
  const [record] = await records(store);
  await store.delete(record?.key ?? '');
  await runtime.advance(5_000);
  expect(paid).toBe(1);
  expect(await result).toMatchObject({
    status: 'error',
    error: {
      code: 'store_unavailable',
      uncertain: true,
      message: expect.stringContaining('find out') as string,
    },
  });
  // Why: whoever asks again runs it.
  void layer.execute(asked());
  await runtime.advance(5_000);
  expect(paid).toBe(2);
});
