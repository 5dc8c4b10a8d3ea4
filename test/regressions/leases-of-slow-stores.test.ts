// Was: a claim or a write that took long lost a lease that the store still granted, and the effect was made twice. Now:
// it is renewed in time, and while its outcome is recorded.
import { defer, firstValueFrom, lastValueFrom } from 'rxjs';
import { createSpillway, dedupe, tool, type DedupeStore, type ToolResultEnvelope, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';

const LEASE_MS = 12_000;
type Method = 'setIfNotExists' | 'renew' | 'compareAndSet';
/**
 * For the n-th question of a kind, counted from 1: how long until the store has done it, and how long its answer takes
 * then.
 */
type Delays = Partial<Record<Method, (n: number) => readonly [doneMs: number, answerMs: number]>>;

interface Slow {
  readonly store: DedupeStore;
  /** When each was asked. */
  readonly asked: Record<Method, number[]>;
}

/** A store that does what it is asked, and takes its time. */
const slow = (runtime: VirtualRuntime, memory: DedupeStore, delays: Delays): Slow => {
  const asked: Record<Method, number[]> = { setIfNotExists: [], renew: [], compareAndSet: [] };
  const late =
    <A extends readonly unknown[], T>(method: Method, act: (...args: A) => T) =>
    async (...args: A): Promise<Awaited<T>> => {
      const n = asked[method].push(runtime.now());
      const [doneMs, answerMs] = delays[method]?.(n) ?? [0, 0];
      await firstValueFrom(runtime.after(doneMs));
      const answer = await act(...args);
      await firstValueFrom(runtime.after(answerMs));
      return answer;
    };
  const store: DedupeStore = {
    ...memory,
    setIfNotExists: late('setIfNotExists', memory.setIfNotExists),
    renew: late('renew', memory.renew),
    compareAndSet: late('compareAndSet', memory.compareAndSet),
  };
  return { store, asked };
};

interface Layer {
  readonly run: () => Promise<ToolResultEnvelope>;
  readonly steps: () => string[];
  /** When the tool was begun, and aborted. */
  readonly begun: number[];
  readonly aborted: number[];
}

const layerOn = (runtime: VirtualRuntime, store: DedupeStore, toolMs: number, storeTimeoutMs = 60_000): Layer => {
  const begun: number[] = [];
  const aborted: number[] = [];
  const events: TraceEvent[] = [];
  const execute = async (_input: unknown, { signal }: { readonly signal: AbortSignal }): Promise<string> => {
    begun.push(runtime.now());
    signal.addEventListener('abort', () => aborted.push(runtime.now()));
    await firstValueFrom(runtime.after(toolMs));
    return 'ran';
  };
  const layer = createSpillway({
    runtime,
    store,
    storeTimeoutMs,
    tools: [
      tool({
        name: 't',
        policy: { timeoutMs: 600_000, retry: { maxAttempts: 1 }, dedupe: { leaseMs: LEASE_MS } },
        execute,
      }),
    ],
  });
  layer.trace$.subscribe((event) => events.push(event));
  return {
    run: () => layer.execute(asked()),
    steps: () => events.flatMap((event) => (event.type === 'dedupe' ? [event.step] : [])),
    begun,
    aborted,
  };
};

const answered = async (runtime: VirtualRuntime, result: Promise<ToolResultEnvelope>): Promise<ToolResultEnvelope> => {
  await runtime.advance(400_000);
  return result;
};

describe('R-9.6 renewals over a slow store', () => {
  it.each([0.1, 0.5, 0.7, 0.9])(
    'R-9.6 a claim answered after %f of its lease keeps it, and its tool is not aborted',
    async (part) => {
      const runtime = virtualRuntime();
      const { store, asked: questions } = slow(runtime, memoryStore({ runtime }), {
        setIfNotExists: () => [0, part * LEASE_MS],
      });
      const layer = layerOn(runtime, store, 3 * LEASE_MS);
      expect(await answered(runtime, layer.run())).toMatchObject({ status: 'success', fromCache: false });
      expect([layer.begun.length, layer.aborted]).toEqual([1, []]);
      // By the lesser of a third of the lease and half of what is left, from when it was begun.
      const leftMs = (0.95 - part) * LEASE_MS;
      expect((questions.renew[0] ?? Infinity) - (layer.begun[0] ?? 0)).toBeLessThanOrEqual(
        Math.min(LEASE_MS / 3, leftMs / 2) + 1,
      );
    },
  );

  it('R-9.6 a claim answered after its lease is renewed before anything is run', async () => {
    const runtime = virtualRuntime();
    const { store, asked: questions } = slow(runtime, memoryStore({ runtime }), {
      setIfNotExists: () => [0, 1.5 * LEASE_MS],
    });
    const layer = layerOn(runtime, store, 3 * LEASE_MS);
    expect(await answered(runtime, layer.run())).toMatchObject({ status: 'success', fromCache: false });
    expect(layer.aborted).toEqual([]);
    expect(questions.renew[0]).toBeLessThanOrEqual(layer.begun[0] ?? 0);
  });

  it('R-9.6 a claim answered after its lease, and taken over meanwhile, runs nothing and gets what the other found', async () => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    const late = layerOn(
      runtime,
      slow(runtime, memory, { setIfNotExists: (n) => [0, n === 1 ? 3 * LEASE_MS : 0] }).store,
      100,
    );
    const prompt = layerOn(runtime, memory, 100);
    const first = late.run();
    await runtime.advance(1);
    const second = prompt.run();
    expect(await answered(runtime, first)).toMatchObject({ status: 'success', fromCache: true });
    expect(await second).toMatchObject({ status: 'success', fromCache: false });
    expect([late.begun.length, prompt.begun.length]).toEqual([0, 1]);
    // It never had the key, and so has none to lose.
    expect(late.steps()).not.toContain('claimed');
    expect(late.steps()).toContain('replayed');
  });

  it('R-9.6 a store that always takes longer than a lease runs nothing, says so, and keeps no key', async () => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    const always = (): readonly [number, number] => [0, 1.2 * LEASE_MS];
    const layer = layerOn(runtime, slow(runtime, memory, { setIfNotExists: always, renew: always }).store, 100);
    expect((await answered(runtime, layer.run())).error).toMatchObject({
      code: 'store_unavailable',
      terminal: false,
      message: expect.stringContaining('raise leaseMs') as string,
    });
    expect(layer.begun).toEqual([]);
    expect(await answered(runtime, layerOn(runtime, memory, 1).run())).toMatchObject({
      status: 'success',
      fromCache: false,
    });
  });

  it('R-9.6 an answer that takes half a lease each time loses nothing', async () => {
    const runtime = virtualRuntime();
    const layer = layerOn(
      runtime,
      slow(runtime, memoryStore({ runtime }), { renew: () => [0, 0.5 * LEASE_MS] }).store,
      10 * LEASE_MS,
    );
    expect(await answered(runtime, layer.run())).toMatchObject({ status: 'success', fromCache: false });
    expect([layer.aborted, layer.steps()]).toEqual([[], ['claimed', 'recorded']]);
  });

  it('R-9.6 a renewal that gets no answer at all is asked for again in time', async () => {
    const runtime = virtualRuntime();
    const { store } = slow(runtime, memoryStore({ runtime }), { renew: (n) => [0, n === 1 ? 100 * LEASE_MS : 0] });
    const layer = layerOn(runtime, store, 5 * LEASE_MS);
    expect(await answered(runtime, layer.run())).toMatchObject({ status: 'success', fromCache: false });
    expect(layer.aborted).toEqual([]);
  });

  it('R-9.6 a store that is gone is asked less than 25 times in a lease, and the tool is aborted at its end', async () => {
    const runtime = virtualRuntime();
    const { store, asked: questions } = slow(runtime, memoryStore({ runtime }), { renew: () => [0, 1e9] });
    const layer = layerOn(runtime, store, 5 * LEASE_MS);
    expect((await answered(runtime, layer.run())).error).toMatchObject({ code: 'store_unavailable', uncertain: true });
    expect((layer.aborted[0] ?? 0) - (layer.begun[0] ?? 0)).toBeLessThanOrEqual(LEASE_MS);
    expect((layer.aborted[0] ?? 0) - (layer.begun[0] ?? 0)).toBeGreaterThan(0.9 * LEASE_MS);
    expect(questions.renew.length).toBeLessThan(25);
  });
});

describe('R-9.6 renewals while an outcome is recorded', () => {
  it.each([1.2, 3])(
    'R-9.6 a write that takes %f leases makes the effect once, and everyone gets it',
    async (leases) => {
      const runtime = virtualRuntime();
      const memory = memoryStore({ runtime });
      const first = layerOn(runtime, slow(runtime, memory, { compareAndSet: () => [leases * LEASE_MS, 0] }).store, 100);
      const second = layerOn(runtime, memory, 100);
      const one = first.run();
      await runtime.advance(200);
      const other = second.run();
      expect(await answered(runtime, one)).toMatchObject({ status: 'success', fromCache: false });
      expect(await other).toMatchObject({ status: 'success', fromCache: true });
      expect([first.begun.length, second.begun.length, first.steps().at(-1)]).toEqual([1, 0, 'recorded']);
    },
  );

  it('R-9.6 a store that never writes is renewed for a while only: then the key is free again', async () => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    const { store, asked: questions } = slow(runtime, memory, { compareAndSet: () => [1e9, 0] });
    const layer = layerOn(runtime, store, 100, 5_000);
    expect(await answered(runtime, layer.run())).toMatchObject({ status: 'success' });
    expect(layer.steps()).toEqual(['claimed', 'unrecorded']);
    expect((questions.renew.at(-1) ?? Infinity) - (layer.begun[0] ?? 0)).toBeLessThan(1.1 * LEASE_MS);
  });

  it('R-9.4 the operator too: a write that takes longer than the lease makes the effect once', async () => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    let effects = 0;
    const source = defer(async () => ++effects);
    const options = { leaseMs: LEASE_MS, storeTimeoutMs: 60_000 };
    const first = lastValueFrom(
      source.pipe(
        dedupe(slow(runtime, memory, { compareAndSet: () => [2 * LEASE_MS, 0] }).store, 'k', options, runtime),
      ),
    );
    await runtime.advance(10);
    const second = lastValueFrom(source.pipe(dedupe(memory, 'k', options, runtime)));
    await runtime.advance(400_000);
    expect([await first, await second, effects]).toEqual([1, 1, 1]);
  });
});
