// Was: three changes of the lease, its place in this process and the heap of leases that no test noticed. Now: each has
// the test that states its rule.
import { BehaviorSubject, NEVER } from 'rxjs';
import { createSpillway, tool, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { Deadlines, type Deadline } from '../../src/stores/memory/deadlines.ts';
import { seededRandom } from '../../src/policy/random.ts';
import { claimOf, own } from '../../src/testing/store-conformance/check.ts';
import { asked } from '../spec/tr-02-stores.ts';

const LEASE_MS = 10_000;

describe('R-9.6 a takeover that runs nothing', () => {
  it('R-9.6 leaves what it took over as something that may have run: the record stays, and its lease has passed', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const steps: string[] = [];
    const layerOf = (block: boolean, execute: () => unknown) => {
      const layer = createSpillway({
        runtime,
        store,
        hooks: { beforeToolCall: () => (block ? { block: 'not now' } : undefined) },
        tools: [
          tool({
            name: 't',
            policy: { timeoutMs: 900_000, safetyCritical: false, dedupe: { leaseMs: LEASE_MS } },
            execute,
          }),
        ],
      });
      layer.trace$.subscribe((event: TraceEvent) => void (event.type === 'dedupe' && steps.push(event.step)));
      return layer;
    };
    // A worker that was killed in mid-call: its record is there, and nobody renews it.
    let record: { readonly key: string; readonly version: number } | undefined;
    const killed = createSpillway({
      runtime,
      store: {
        ...store,
        renew: () => new Promise(() => undefined),
        setIfNotExists: async (claim, over) => {
          const answer = await store.setIfNotExists(claim, over);
          record = answer.record;
          return answer;
        },
      },
      tools: [tool({ name: 't', policy: { timeoutMs: 900_000, dedupe: { leaseMs: LEASE_MS } }, execute: () => NEVER })],
    });
    killed.call(asked()).subscribe();
    await runtime.advance(LEASE_MS + 1);
    const blocked = layerOf(true, () => 'never').execute(asked());
    await runtime.advance(10);
    expect((await blocked).error?.code).toBe('blocked');
    expect(steps).toEqual(['taken_over', 'released']);
    const left = await store.get(record?.key ?? '');
    expect(left?.record).toMatchObject({ state: 'inflight' });
    await runtime.advance(2);
    const later = await store.get(record?.key ?? '');
    expect(later?.record.lockUntilMs).toBeLessThanOrEqual(later?.atMs ?? 0);
    // Whoever must not follow on one that may have run still sees that something may have.
    const critical = createSpillway({
      runtime,
      store,
      tools: [tool({ name: 't', policy: { safetyCritical: true }, execute: () => 'twice' })],
    });
    expect((await critical.execute(asked())).error).toMatchObject({ code: 'duplicate_in_flight', uncertain: true });
  });
});

describe('R-9.6 who is waited for in this process', () => {
  it('R-9.6 a claim that ends after its record was cleared takes nobody else from their place: the next one is still kept alive for those who wait', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const gates = [new BehaviorSubject(false), new BehaviorSubject(false)];
    const aborted: number[] = [];
    let begun = 0;
    const layer = createSpillway({
      runtime,
      store,
      tools: [
        tool({
          name: 't',
          policy: { timeoutMs: 900_000, retry: { maxAttempts: 1 } },
          execute: async (_input: unknown, { signal }) => {
            const n = begun++;
            signal.addEventListener('abort', () => aborted.push(n));
            await new Promise<void>((resolve) => void gates[n]?.subscribe((open) => open && resolve()));
            return n;
          },
        }),
      ],
    });
    const a = layer.execute(asked());
    await runtime.advance(1);
    for await (const { key } of store.byTool('t')) await store.delete(key);
    const b = layer.call(asked()).subscribe();
    await runtime.advance(1);
    expect(begun).toBe(2);
    gates[0]?.next(true);
    await runtime.advance(1);
    const c = layer.execute(asked());
    await runtime.advance(1);
    b.unsubscribe();
    await runtime.advance(1);
    expect(aborted).toEqual([]);
    gates[1]?.next(true);
    await runtime.advance(10_000);
    expect((await c).output?.content).toBe(1);
    expect((await a).status).toBe('success');
    expect(begun).toBe(2);
  });
});

describe('R-10.2 the heap of leases', () => {
  it('R-10.2 has the earliest first, whatever was put, moved and dropped', () => {
    const random = seededRandom(5);
    const heap = new Deadlines<Deadline>();
    const members = new Set<Deadline>();
    const pick = (): Deadline | undefined =>
      random() < 0.5 ? heap.first : [...members][Math.floor(random() * members.size)];
    for (let step = 0; step < 20_000; step++) {
      const dueMs = Math.floor(random() * 1_000);
      const dice = random();
      const chosen = pick();
      if (dice < 0.5 || chosen === undefined) {
        const member: Deadline = { dueMs: 0, place: -1 };
        heap.put(member, dueMs);
        members.add(member);
      } else if (dice < 0.6) heap.put(chosen, dueMs);
      else {
        heap.drop(chosen);
        members.delete(chosen);
      }
      expect(heap.first?.dueMs).toBe(
        members.size === 0 ? undefined : Math.min(...Array.from(members, (member) => member.dueMs)),
      );
      for (const member of members.size > 60 ? [...members].slice(0, 30) : []) {
        members.delete(member);
        heap.drop(member);
      }
    }
  });

  it('R-10.2 a full store takes the place of any lease that has passed, among leases of random length that end in any order', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = seededRandom(seed);
      const runtime = virtualRuntime();
      const store = memoryStore({ runtime, maxKeys: 40, sweepMs: Infinity });
      const dueMs = new Map<string, number>();
      for (let n = 0; n < 40; n++) {
        const leaseMs = 1 + Math.floor(random() * 1_000);
        await own(store, claimOf(`k${n}`, { leaseMs }));
        dueMs.set(`k${n}`, leaseMs);
      }
      for (const key of [...dueMs.keys()].filter(() => random() < 0.5)) {
        expect(await store.delete(key)).toBe(true);
        dueMs.delete(key);
      }
      for (let n = dueMs.size; n < 40; n++) await own(store, claimOf(`forever ${n}`, { leaseMs: 600_000 }));
      await runtime.advance(random() * 1_000);
      const passedMs = runtime.now() - 1_234_567;
      const lapsed = [...dueMs.values()].filter((ms) => ms <= passedMs).length;
      for (let n = 0; n < lapsed; n++) await own(store, claimOf(`new ${n}`, { leaseMs: 600_000 }));
      await expect((async () => store.setIfNotExists(claimOf('one too many')))()).rejects.toMatchObject({
        code: 'store_full',
      });
    }
  });
});
