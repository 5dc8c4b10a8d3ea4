import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { dirname, join } from 'node:path';
import { setImmediate as soon, setTimeout as sleep } from 'node:timers/promises';
import { lastValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { guardTools } from 'spillway/adapters/ai-sdk';
import { replayTrace } from 'spillway/simulate';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { memoryStore } from 'spillway/stores/memory';
import type { DedupeStore } from '../../../src/contract/store.ts';
import { seededRandom } from '../../../src/policy/random.ts';

/** What clocks may differ by, less some. */
const STALLED_MS = 200;

/** Records until the process was let run: one that stood still for longer than clocks may differ is refused. */
const recorded = async (record: () => Promise<TraceEvent[]>): Promise<TraceEvent[]> => {
  for (;;) {
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const events = await record();
    delay.disable();
    if (delay.max / 1e6 < STALLED_MS) return events;
  }
};

const flakyTrips = async (): Promise<TraceEvent[]> => {
  const random = seededRandom(5);
  const flaky = tool({
    name: 'flaky',
    policy: {
      effects: 'read',
      retry: { initialDelayMs: 2, maxAttempts: 4 },
      breaker: { failureThreshold: 50, failureRate: 1 },
    },
    execute: async () => {
      for (let turns = Math.floor(random() * 5); turns > 0; turns--) await soon();
      if (random() < 0.4) throw Object.assign(new Error('unavailable'), { status: 503 });
      return 'found';
    },
  });
  const steady = tool({ name: 'steady', policy: { effects: 'read' }, execute: () => soon('well') });
  const layer = createSpillway({ tools: [flaky, steady] });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const trip = plan()
    .call('a', flaky, {})
    .call('b', steady, {})
    .call('c', steady, {}, { needs: ['a'], optional: true });
  for (let round = 0; round < 10; round++) {
    const calls = Array.from({ length: 12 }, () => layer.execute({ toolName: 'flaky', input: {} }));
    await Promise.all([...calls, new Promise<void>((resolve) => layer.turn(trip).subscribe({ complete: resolve }))]);
  }
  await layer.close();
  return events;
};

it('RPL-1 replays what a live process recorded, with its own clock, timers and chance', async () => {
  const events = await recorded(flakyTrips);
  const { identity, candidates } = replayTrace(events, { set: ['flaky.retry.maxAttempts=4'] });
  expect(identity).toMatchObject({ turns: 10, events: events.length });
  expect(candidates[0]?.flips).toEqual([]);
});

it('RPL-4 under its own policies a trace is sure, however late its busy process was', async () => {
  const busy = (ms: number): void => {
    for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
  };
  const slow = tool({
    name: 'slow',
    policy: { effects: 'read' },
    execute: async () => {
      busy(70);
      await sleep(5);
      return 'found';
    },
  });
  const layer = createSpillway({ tools: [slow] });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  // Each begins when the one before has let go of the process.
  const nodes = ['a', 'b', 'c'].map((id) => ({ id, tool: 'slow' }));
  await lastValueFrom(layer.turn(plan.from([...nodes, { id: 'd', tool: 'slow', needs: ['a', 'c'] }])));
  await layer.close();
  const { identity, candidates } = replayTrace(events, { set: ['slow.retry.maxAttempts=5'] });
  expect(identity).toMatchObject({ turns: 1, calls: 4 });
  const [same] = candidates;
  expect(same?.unknown).toMatchObject({ moved: 0, shifted: 0, unmade: 0, calls: 0 });
  expect(same?.verdict.text).toBe('safe to ship');
  expect(same?.bounds.bad).toMatchObject({ successes: 4, attempts: 4 });
});

it('RPL-1 replays calls under keys as slowly as their store answered them', async () => {
  const kept = memoryStore();
  const store: DedupeStore = {
    ...kept,
    setIfNotExists: async (claim, over) => {
      await sleep(20);
      return kept.setIfNotExists(claim, over);
    },
    compareAndSet: async (key, version, outcome) => {
      await sleep(200);
      const answer = await kept.compareAndSet(key, version, outcome);
      await sleep(200);
      return answer;
    },
  };
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', enforcesKey: true },
    execute: () => soon('paid'),
  });
  const layer = createSpillway({ tools: [pay], store });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  for (const key of ['a', 'b', 'a']) await layer.execute({ toolName: 'pay', input: { key }, idempotencyKey: key });
  await layer.close();
  const keptAfterMs = events.flatMap((event, index) =>
    event.type === 'dedupe' && event.step === 'recorded' ? [event.atMs - (events[index - 1]?.atMs ?? 0)] : [],
  );
  // Longer than the slack that clocks have, so that a store that answers at once would be another world.
  expect(Math.min(...keptAfterMs)).toBeGreaterThan(300);
  expect(replayTrace(events).identity).toMatchObject({ calls: 3, events: events.length });
});

it('RPL-1 replays the file of an agent’s run: tools guarded for the AI SDK, one of which its caller left', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'live-')), 'trace.ndjson');
  const layer = createSpillway({ tools: [] });
  const sink = await ndjsonSink(file);
  layer.trace$.subscribe(sink);
  let asked = 0;
  const weather = {
    execute: async (city: string): Promise<string> => {
      await soon();
      if (asked++ === 0) throw Object.assign(new Error('unavailable'), { status: 503 });
      return `21 in ${city}`;
    },
  };
  const slow = {
    execute: (_: object, __: { readonly abortSignal: AbortSignal }) => new Promise<never>(() => undefined),
  };
  const policy = { effects: 'read', retry: { initialDelayMs: 5 } } as const;
  const tools = guardTools({ weather, slow }, { spillway: layer, policies: { weather: policy, slow: policy } });
  expect(await tools.weather.execute('Oulu')).toBe('21 in Oulu');
  const left = new AbortController();
  const abandoned = tools.slow.execute({}, { abortSignal: left.signal });
  await soon();
  left.abort();
  await expect(abandoned).rejects.toThrow('canceled the call');
  await Promise.all(['Turku', 'Vaasa'].map((city) => tools.weather.execute(city)));
  await layer.close();
  await sink.close();
  const { identity, candidates } = replayTrace(await readNdjson(file), { set: ['weather.retry.maxAttempts=1'] });
  expect(identity.calls).toBe(4);
  // Who left leaves under the other policy, too: nothing hangs on what its attempt would have come to.
  expect(candidates[0]?.unknown).toMatchObject({ censored: 0, calls: 0 });
  expect(candidates[0]?.verdict).toMatchObject({ code: 'worse', calls: 1 });
  expect(candidates[0]?.flips).toMatchObject([{ change: 'worse', before: { attempts: 2 }, after: { attempts: 1 } }]);
  rmSync(dirname(file), { recursive: true });
});
