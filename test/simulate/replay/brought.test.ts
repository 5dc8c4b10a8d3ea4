import { Observable } from 'rxjs';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import { replayTrace } from '../../../src/simulate/index.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

/** A layer without tools: the plans of its turns bring theirs along, which fails every other time. */
const recordBrought = (): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  let asked = 0;
  const search = tool({
    name: 'search',
    policy: { effects: 'read', timeoutMs: 700, retry: { maxAttempts: 2, initialDelayMs: 30 }, breaker: false },
    execute: () =>
      new Observable((subscriber) => {
        const fails = asked++ % 2 === 0;
        const task = time.at(time.now() + 40, 0, () => {
          if (fails) return subscriber.error(Object.assign(new Error('unavailable'), { status: 503 }));
          subscriber.next('found');
          subscriber.complete();
        });
        return () => task.cancel();
      }),
  });
  const layer = createSpillway({ tools: [], runtime: time });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const trip = plan()
    .call('a', search, {})
    .call('b', search, {}, { needs: ['a'] });
  for (let turn = 0; turn < 10; turn++) time.at(1_000_000 + turn * 500, 0, () => void layer.turn(trip).subscribe());
  time.run();
  return events;
};

const events = recordBrought();
const isTold = (event: TraceEvent): boolean => event.type === 'call_started' && event.tool !== undefined;

describe('a tool that a plan brought along', () => {
  it('RPL-1 replays under the policy that its first call tells', () => {
    expect(events.filter(isTold)).toHaveLength(1);
    const { identity, candidates } = replayTrace(events, { set: ['search.retry.maxAttempts=2'] });
    expect(identity).toMatchObject({ calls: 20, turns: 10, events: events.length });
    expect(candidates[0]).toMatchObject({ flips: [], verdict: { code: 'safe' } });
  });

  it('RPL-2 is asked about as any other', () => {
    const [once] = replayTrace(events, { set: ['search.retry.maxAttempts=1'] }).candidates;
    // In each turn the first node fails at once, and the second is not begun.
    expect(once?.verdict).toMatchObject({ code: 'worse', calls: 20 });
    expect(() => replayTrace(events, { set: ['other.timeoutMs=5'] })).toThrow(
      /is of no tool; there is search, retryBudget/,
    );
  });

  it('RPL-6 is refused where the trace does not tell its policy, or tells two', () => {
    const at = events.findIndex(isTold);
    const { tool: told, ...bare } = events[at] as Extract<TraceEvent, { type: 'call_started' }>;
    expect(() => replayTrace(events.with(at, bare))).toThrow(/"search", a tool that nobody registered/);
    const later = events.findLastIndex(({ type }) => type === 'call_started');
    const other = { ...told, policy: { ...told?.policy, timeoutMs: 900 } };
    expect(() => replayTrace(events.with(later, { ...events[later], tool: other } as TraceEvent))).toThrow(
      /"search" under another policy/,
    );
    const edited = { ...told, policy: { ...told?.policy, retry: { ...told?.policy.retry, maxAttempts: 1 } } };
    expect(() => replayTrace(events.with(at, { ...bare, tool: edited } as TraceEvent))).toThrow(/do not decide/);
  });
});
