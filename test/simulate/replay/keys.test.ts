import { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import type { AnyTool } from '../../../src/contract/tool.ts';
import { ReplayRefusal } from '../../../src/simulate/replay/refusal.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

/** Calls under keys, three of each: one runs, one joins it, and one comes when it is over. The first attempts fail. */
const recordKeyed = (): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  let runs = 0;
  const pay: AnyTool = {
    name: 'pay',
    policy: { effects: 'mutating', enforcesKey: true, retry: { maxAttempts: 2, initialDelayMs: 10 }, breaker: false },
    execute: () =>
      new Observable((subscriber) => {
        const fails = ++runs % 2 === 1;
        const task = time.at(time.now() + 30, 0, () => {
          if (fails) return subscriber.error(Object.assign(new Error('unavailable'), { status: 503 }));
          subscriber.next('paid');
          subscriber.complete();
        });
        return () => task.cancel();
      }),
  };
  const store = memoryStore({ runtime: time, sweepMs: Infinity });
  const spillway = createSpillway({ tools: [pay], runtime: time, store });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => void events.push(event));
  for (const [index, key] of ['a', 'b', 'c', 'd'].entries())
    for (const afterMs of [0, 15, 500])
      time.at(1_000_000 + index * 1_000 + afterMs, 0, () => {
        const request = { toolName: 'pay', input: { key }, idempotencyKey: key };
        spillway.call(request).subscribe();
      });
  time.at(1_004_600, 0, () => {
    spillway.call({ toolName: 'pay', input: { key: 'another' }, idempotencyKey: 'd' }).subscribe();
  });
  time.run(1_100_000);
  return events;
};

describe('RPL-1 calls under keys', () => {
  const events = recordKeyed();

  it('replay as they were: run, joined, replayed and in conflict', () => {
    const steps = events.flatMap((event) => (event.type === 'dedupe' ? [event.step] : []));
    expect([...new Set(steps)].toSorted()).toEqual(['claimed', 'conflict', 'recorded', 'replayed', 'waiting']);
    const { identity } = replayTrace(events);
    expect(identity).toMatchObject({ calls: 13, events: events.length });
  });

  it('RPL-2 tell what becomes of all that shared a key', () => {
    const [once] = replayTrace(events, { set: ['pay.retry.maxAttempts=1'] }).candidates;
    // Without the second attempt the one that ran fails, and so do the two that got its outcome.
    expect(once?.verdict).toMatchObject({ code: 'worse', calls: 12 });
  });

  it.each(['superseded', 'lease_lost', 'unrecorded', 'unprotected', 'taken_over'])(
    'RPL-6 are refused where their store did what no healthy one of one process does: %s',
    (step) => {
      const index = events.findIndex((event) => event.type === 'dedupe');
      const changed = events.with(index, { ...events[index], step } as TraceEvent);
      expect(() => replayTrace(changed)).toThrow(ReplayRefusal);
      expect(() => replayTrace(changed)).toThrow(/is of a call under an idempotency key, and/);
    },
  );

  it('RPL-6 are refused where a store gave a key to two at once, or forgot an outcome', () => {
    const told = events.findIndex((event) => event.type === 'dedupe' && event.step === 'waiting');
    const claimed = events.with(told, { ...events[told], step: 'claimed' } as TraceEvent);
    expect(() => replayTrace(claimed)).toThrow(/its store gave its key to two calls at once/);
    const again = events.findIndex(
      (event) => event.type === 'dedupe' && event.step === 'replayed' && event.atMs > 1_000_400,
    );
    const forgotten = events.with(again, { ...events[again], step: 'claimed' } as TraceEvent);
    expect(() => replayTrace(forgotten)).toThrow(/its store had forgotten the outcome of its key/);
  });

  it('RPL-6 are refused where one is put under another key', () => {
    const index = events.findLastIndex((event) => event.type === 'dedupe' && event.step === 'replayed');
    const changed = events.with(index, { ...events[index], keyFingerprint: '0123456789abcdef' } as TraceEvent);
    expect(() => replayTrace(changed)).toThrow(/do not decide what the trace says/);
  });
});
