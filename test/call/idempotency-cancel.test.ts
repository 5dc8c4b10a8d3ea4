import { Subscription, NEVER, Observable, defer, firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, dedupe, tool, type DedupeStore, type ToolEvent, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, records, type Execute } from '../spec/tr-02-stores.ts';
import { counting } from '../support.ts';
import { traceFaults } from './kit.ts';

const LEASE_MS = 90_000;

/** A layer on a memory store under virtual time; `answers` says when the store does. */
const world = (execute: Execute, storeMs?: number) => {
  const virtual = virtualRuntime();
  const runtime = counting(virtual);
  const memory = memoryStore({ runtime: virtual, sweepMs: Infinity });
  const later = async <T>(answer: () => T): Promise<Awaited<T>> => {
    await firstValueFrom(virtual.after(storeMs ?? 0));
    return await answer();
  };
  const slow: DedupeStore = {
    ...memory,
    get: (key) => later(() => memory.get(key)),
    setIfNotExists: (claim, over) => later(() => memory.setIfNotExists(claim, over)),
    compareAndSet: (key, version, outcome) => later(() => memory.compareAndSet(key, version, outcome)),
    renew: (key, version, leaseMs) => later(() => memory.renew(key, version, leaseMs)),
    delete: (key, version) => later(() => memory.delete(key, version)),
  };
  const flaky = tool({
    name: 't',
    policy: { timeoutMs: 60_000, dedupe: { leaseMs: LEASE_MS }, retry: { initialDelayMs: 10, jitterPercent: 0 } },
    execute,
  });
  const layer = createSpillway({ tools: [flaky], store: storeMs === undefined ? memory : slow, runtime });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  const start = (
    parts: Parameters<typeof asked>[0] = {},
  ): { readonly events: ToolEvent[]; readonly subscription: Subscription } => {
    const own: ToolEvent[] = [];
    return { events: own, subscription: layer.call(asked(parts)).subscribe((event) => own.push(event)) };
  };
  const states = async (): Promise<string[]> => (await records(memory)).map(({ state }) => state);
  return { layer, memory, runtime, virtual, events, start, states };
};

const ends = (events: readonly TraceEvent[]): Record<string, string[]> => {
  const found: Record<string, string[]> = {};
  for (const event of events)
    if (event.source === 'call' && (event.type === 'settled' || event.type === 'abandoned'))
      (found[event.callId] ??= []).push(event.type);
  return found;
};

/** What holds however a call ended: one end each, sequence without gaps, only late notes after it. */
const sound = (events: readonly TraceEvent[]): void => {
  expect(traceFaults(events).filter((fault) => !fault.includes('after the end of'))).toEqual([]);
  const over = new Set<string>();
  for (const event of events) {
    if (event.source !== 'call') continue;
    if (over.has(event.callId)) expect(event.late, `${event.type} after the end of ${event.callId}`).toBe(true);
    if (event.type === 'settled' || event.type === 'abandoned') over.add(event.callId);
  }
  const started = new Set(events.flatMap((event) => (event.source === 'call' ? [event.callId] : [])));
  for (const callId of started) expect(ends(events)[callId], `ends of ${callId}`).toHaveLength(1);
};

const slowly =
  (virtual: () => { after(ms: number): Observable<0> }, seen: { runs: number; aborts: number }): Execute =>
  (_input, { signal }) => {
    seen.runs++;
    signal.addEventListener('abort', () => seen.aborts++);
    return new Promise((resolve) => {
      virtual()
        .after(1_000)
        .subscribe(() => resolve('found'));
    });
  };

const party = (storeMs?: number) => {
  const seen = { runs: 0, aborts: 0 };
  const made: ReturnType<typeof world> = world(
    slowly(() => made.virtual, seen),
    storeMs,
  );
  return { ...made, seen };
};

describe.each([
  ['at once', undefined],
  ['20 ms later', 20],
] as const)('R-9.6 who leaves, with a store that answers %s', (_when, storeMs) => {
  it('R-9.6 the leader’s caller is told at once, and it runs on for those who wait', async () => {
    const { layer, virtual, start, events, seen } = party(storeMs);
    const abort = new AbortController();
    const leader = layer.execute(asked(), { signal: abort.signal });
    await virtual.advance(100);
    const follower = start();
    await virtual.advance(100);
    abort.abort();
    const told = await leader;
    expect(told).toMatchObject({ error: { code: 'canceled', uncertain: true }, durationMs: 200 });
    await virtual.advance(2_000);
    expect(follower.events.at(-1)).toMatchObject({
      type: 'settled',
      result: { status: 'success', fromCache: true, output: { content: 'found' } },
    });
    expect(seen).toEqual({ runs: 1, aborts: 0 });
    sound(events);
  });

  it('R-9.6 a leader that is unsubscribed leaves its work to two followers; the last to go stops it, and the key waits to be cleared', async () => {
    const { virtual, start, events, seen, states, runtime } = party(storeMs);
    const leader = start();
    await virtual.advance(100);
    const followers = [start(), start()];
    await virtual.advance(100);
    leader.subscription.unsubscribe();
    followers[0]?.subscription.unsubscribe();
    await virtual.advance(100);
    expect(seen).toEqual({ runs: 1, aborts: 0 });
    followers[1]?.subscription.unsubscribe();
    expect(seen).toEqual({ runs: 1, aborts: 1 });
    await virtual.advance(200);
    expect(await states()).toEqual(['cancelled']);
    expect(runtime.timers).toBe(0);
    sound(events);
  });

  it('R-9.6 followers leave alone', async () => {
    const { virtual, start, seen, events } = party(storeMs);
    const leader = start();
    await virtual.advance(100);
    for (let n = 0; n < 5; n++) {
      const { subscription } = start();
      await virtual.advance(n * 30);
      subscription.unsubscribe();
    }
    await virtual.advance(2_000);
    expect(leader.events.at(-1)).toMatchObject({ type: 'settled', result: { status: 'success', fromCache: false } });
    expect(seen).toEqual({ runs: 1, aborts: 0 });
    sound(events);
  });

  it('R-9.6 a deadline of the leader ends it for the leader only', async () => {
    const { layer, virtual, start, seen, events } = party(storeMs);
    const timed = layer.execute({ ...asked(), control: { deadlineAtMs: virtual.wallNow() + 500 } });
    await virtual.advance(100);
    const follower = start();
    await virtual.advance(400);
    expect(await timed).toMatchObject({
      status: 'timeout',
      error: { code: 'deadline_exceeded', uncertain: true },
      durationMs: 500,
    });
    await virtual.advance(2_000);
    expect(follower.events.at(-1)).toMatchObject({ result: { status: 'success', output: { content: 'found' } } });
    expect(seen).toEqual({ runs: 1, aborts: 0 });
    sound(events);
  });

  it.each([0, 10, 30, 500, 1_010, 1_030, 3_000])(
    'R-9.6 close() after %i ms: all are told, nothing runs on, no timer is left',
    async (afterMs) => {
      const { layer, virtual, start, seen, events, states, runtime } = party(storeMs);
      const calls = [
        start(),
        start(),
        start({ mode: 'bestEffort' }),
        start({ params: { other: 1 } }),
        start({ key: 'k2' }),
      ];
      calls[0]?.subscription.add(() => undefined);
      await virtual.advance(afterMs);
      if (afterMs === 500) calls[0]?.subscription.unsubscribe();
      const closing = layer.close();
      // The store may have to be told.
      await virtual.advance(30);
      await closing;
      const runs = seen.runs;
      for (const { events: own, subscription } of calls)
        if (!subscription.closed || own.length > 0)
          expect(afterMs === 500 && own === calls[0]?.events ? 'settled' : own.at(-1)?.type).toBe('settled');
      await virtual.advance(10_000);
      expect(seen.runs).toBe(runs);
      expect(runtime.timers).toBe(0);
      for (const state of await states()) expect(['done', 'cancelled']).toContain(state);
      sound(events);
      expect(await layer.execute(asked())).toMatchObject({ attempts: 0, error: { code: 'canceled' } });
    },
  );

  it('R-9.6 whoever unsubscribes at any event of a deduped call: nothing starts after it, nothing is left', async () => {
    for (let at = 0; at < 60; at++) {
      let runs = 0;
      const made: ReturnType<typeof world> = world((_input, { attempt, progress }) => {
        runs++;
        progress({ progress: 1 });
        if (attempt === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        return 'found';
      }, storeMs);
      const { layer, virtual, runtime, states, events } = made;
      const request = {
        ...asked(),
        transport: { dedupeMode: 'enforced' as const, retryBudget: { maxAttempts: 3, maxElapsedMs: 60_000 } },
      };
      const own = new Subscription();
      let seen = 0;
      let runsThen = 0;
      // Leaves inside `next`, from the trace, which hears each event of each of the three calls.
      layer.trace$.subscribe(() => {
        if (seen++ !== at) return;
        own.unsubscribe();
        runsThen = runs;
      });
      const left = new Observable<ToolEvent>((subscriber) => {
        own.add(subscriber);
        return layer.call(request).subscribe(subscriber);
      });
      left.subscribe({ error: () => undefined });
      await virtual.advance(500);
      if (seen <= at) {
        expect(at).toBeGreaterThan(8);
        return;
      }
      expect(runs, `runs after the unsubscribe at event ${at}: ${events.map(({ type }) => type).join(' ')}`).toBe(
        runsThen,
      );
      await virtual.advance(LEASE_MS);
      expect(runtime.timers, `timers after the unsubscribe at event ${at}`).toBe(0);
      expect(await states(), `records after the unsubscribe at event ${at}`).not.toContain('inflight');
      sound(events);
    }
    expect.fail('it never came to an end');
  });
});

describe('re-entrance', () => {
  it('R-9.6 a tool that asks for its own key waits for itself until its timeout: it ends, and says so', async () => {
    const made: ReturnType<typeof world> = world(() =>
      made.layer.execute(asked()).then(({ error }) => ({ inner: error?.code })),
    );
    const result = made.layer.execute(asked());
    await made.virtual.advance(60_000);
    expect(await result).toMatchObject({ error: { code: 'timeout', uncertain: true } });
    await made.virtual.advance(1_000);
    sound(made.events);
    expect(Object.values(ends(made.events))).toHaveLength(2);
  });

  it('R-9.6 in bestEffort it is refused at once, and can go on', async () => {
    const made: ReturnType<typeof world> = world(() =>
      made.layer.execute(asked({ mode: 'bestEffort' })).then(({ error }) => ({ inner: error?.code })),
    );
    expect(await made.layer.execute(asked({ mode: 'bestEffort' }))).toMatchObject({
      status: 'success',
      output: { content: { inner: 'duplicate_in_flight' } },
    });
  });

  it('R-9.6 synchronous tools and a synchronous store: a call inside the last event of another gets its result', () => {
    const { layer } = world(() => 'found');
    const seen: unknown[] = [];
    const dive = (depth: number): void => {
      layer.call(asked()).subscribe((event) => {
        if (event.type !== 'settled') return;
        seen.push([event.result.fromCache, event.result.output?.content]);
        if (depth > 0) dive(depth - 1);
      });
    };
    dive(3);
    expect(seen).toEqual([
      [false, 'found'],
      [true, 'found'],
      [true, 'found'],
      [true, 'found'],
    ]);
  });

  it('R-9.4 an operator inside a tool: the same key of another place is another claim', async () => {
    const store = memoryStore();
    let runs = 0;
    const once$ = defer(() => of(++runs)).pipe(dedupe(store, 'inner'));
    const layer = createSpillway({ tools: [tool({ name: 't', execute: () => once$ })], store });
    expect([
      (await layer.execute(asked({ key: 'a' }))).output?.content,
      (await layer.execute(asked({ key: 'b' }))).output?.content,
    ]).toEqual([1, 1]);
    expect(NEVER).toBeDefined();
  });
});
