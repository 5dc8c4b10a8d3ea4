// Was: a node that waited for its key when its turn's time was over took the key later, and ran its tool for nobody.
// Now: it starts nothing after the deadline.
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { records } from '../spec/tr-02-stores.ts';

it('R-4.4 DL-1 a node that waits for its key at the deadline starts nothing after it', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime, sweepMs: Infinity });
  let runs = 0;
  const layer = createSpillway({ tools: [tool({ name: 't', execute: () => ++runs })], store, runtime });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  // Another process claimed the key and died.
  layer.turn(plan.from([{ id: 'a', tool: 't', idempotencyKey: 'k' }])).subscribe();
  const [{ key, tool: name, idempotencyKey, request, version }] = (await records(store)) as [
    Awaited<ReturnType<typeof records>>[number],
  ];
  await store.delete(key, version);
  await store.setIfNotExists({
    key,
    tool: name,
    idempotencyKey,
    request: { ...request, requestId: 'dead' },
    leaseMs: 1_000,
    ttlMs: 60_000,
  });
  expect(runs).toBe(1);

  layer.turn(plan.from([{ id: 'a', tool: 't', idempotencyKey: 'k' }], { timeoutMs: 500 })).subscribe();
  await runtime.advance(500);
  expect(events.at(-1)).toMatchObject({ source: 'turn', type: 'settled', result: { nodes: [{ state: 'timed_out' }] } });
  await runtime.advance(60_000);
  expect(runs).toBe(1);
  expect(events.at(-1)).toMatchObject({ source: 'turn', type: 'settled' });
});
