import { setImmediate as soon } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { replayTrace } from 'spillway/simulate';
import { seededRandom } from '../../../src/policy/random.ts';

it('RPL-1 replays what a live process recorded, with its own clock, timers and chance', async () => {
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
  const { identity, candidates } = replayTrace(events, { set: ['flaky.retry.maxAttempts=4'] });
  expect(identity).toMatchObject({ turns: 10, events: events.length });
  expect(candidates[0]?.flips).toEqual([]);
});
