import { NEVER, of, type Observable } from 'rxjs';
import { createSpillway, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import type { AnyTool } from '../../../src/contract/tool.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';
import { recordStorm } from './storm.ts';

/** Calls of `pay`, some of which never answer and are cut off; nobody calls `spare`. */
const recordCut = (calls: number, cut: number): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  const policy = { effects: 'read', timeoutMs: 100, retry: { maxAttempts: 1 }, breaker: false } as const;
  const execute = (input: unknown): Observable<unknown> => (input === 'never' ? NEVER : of('paid'));
  const tools = ['pay', 'spare'].map((name): AnyTool => ({ name, policy, execute }));
  const layer = createSpillway({ tools, runtime: time });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  for (let call = 0; call < calls; call++) {
    // Spread evenly: a server that mostly fails is another matter.
    const input = Math.floor(((call + 1) * cut) / calls) > Math.floor((call * cut) / calls) ? 'never' : 'now';
    time.at(1_000_000 + call * 1_000, 0, () => void layer.call({ toolName: 'pay', input }).subscribe());
  }
  time.run();
  return events;
};

describe('a what-if', () => {
  const storm = recordStorm({ calls: 1_500, outage: [5_000, 12_000] });
  /** Without a breaker: what one call meets is no matter of what others met. */
  const alone = recordStorm({ calls: 1_500, outage: [5_000, 12_000], policy: { breaker: false } });

  it('RPL-2 changes nothing where the policy is the recorded one', () => {
    const { identity, candidates } = replayTrace(storm, { set: ['pay.retry.maxAttempts=3'] });
    expect(identity).toMatchObject({ calls: 1_500, turns: 0, events: storm.length });
    const [same] = candidates;
    expect(same?.flips).toEqual([]);
    expect(same?.unknown).toMatchObject({ censored: 0, unmade: 0, feedback: 0, share: 0 });
    expect(same?.verdict).toEqual({ code: 'safe', text: 'safe to ship' });
  });

  it('RPL-2 surfaces what retries had hidden, without anything unknown', () => {
    const [once] = replayTrace(alone, { set: ['pay.retry.maxAttempts=1'] }).candidates;
    const recovered = new Set(
      alone.flatMap((event) =>
        event.type === 'settled' &&
        event.source === 'call' &&
        event.result.status === 'success' &&
        event.result.attempts > 1
          ? [event.callId]
          : [],
      ),
    );
    expect(recovered.size).toBeGreaterThan(30);
    const worse = once?.flips.filter(({ change }) => change === 'worse') ?? [];
    expect(new Set(worse.map(({ callId }) => callId))).toEqual(recovered);
    expect(once?.verdict).toMatchObject({ code: 'worse', calls: recovered.size });
    // Worst first, and each says how it ended on both sides.
    expect(once?.flips.slice(0, worse.length).every(({ change }) => change === 'worse')).toBe(true);
    expect(worse[0]).toMatchObject({ before: { status: 'success' }, after: { attempts: 1 } });
  });

  it('RPL-3 bounds what the trace does not tell by all good and all bad, the fitted between them', () => {
    const [more] = replayTrace(alone, { set: ['pay.retry.maxAttempts=4'] }).candidates;
    expect(more?.unknown.unmade).toBeGreaterThan(0);
    const { good, fitted, bad } = more?.bounds ?? {};
    expect(good?.successes).toBeGreaterThanOrEqual(fitted?.successes ?? Infinity);
    expect(fitted?.successes).toBeGreaterThanOrEqual(bad?.successes ?? Infinity);
    expect(more?.unknown.feedback).toBeLessThanOrEqual(more?.unknown.unmade ?? 0);
  });

  it('RPL-3 counts attempts that were cut off and are now waited for, and no others', () => {
    const cut = alone.filter((event) => event.type === 'attempt_failed' && event.timeoutMs !== undefined).length;
    expect(cut).toBeGreaterThan(10);
    const [longer] = replayTrace(alone, { set: ['pay.timeoutMs=3000'] }).candidates;
    expect(longer?.unknown.censored).toBeGreaterThan(10);
    // Where the first is waited for and succeeds, the second that was cut off is not made.
    expect(longer?.unknown.censored).toBeLessThanOrEqual(cut);
    const [shorter] = replayTrace(alone, { set: ['pay.timeoutMs=900', 'pay.retry.maxAttempts=1'] }).candidates;
    expect(shorter?.unknown).toMatchObject({ censored: 0 });
  });

  it('RPL-4 cannot tell above 20 % of unknown attempts', () => {
    const refused = recordStorm({ calls: 600, outage: [0, 12_000], policy: { retry: { maxAttempts: 1 } } });
    const [open] = replayTrace(refused, { set: ['pay.breaker=off', 'pay.retry.maxAttempts=5'] }).candidates;
    expect(open?.unknown.share).toBeGreaterThan(0.2);
    expect(open?.verdict).toMatchObject({ code: 'cannot_tell', text: 'cannot tell' });
  });

  it.each([
    [20, 'safe'],
    [21, 'cannot_tell'],
  ])('RPL-4 of 100 calls, %d of which were cut off and are waited for now: %s', (cut, code) => {
    const [longer] = replayTrace(recordCut(100, cut), { set: ['pay.timeoutMs=300'] }).candidates;
    expect(longer?.unknown).toMatchObject({ censored: cut, calls: cut, share: cut / 100 });
    expect(longer?.verdict.code).toBe(code);
  });

  it('RPL-4 cannot tell where no call is of what is changed, and says so', () => {
    const verdictOf = (events: readonly TraceEvent[], set: string): unknown =>
      replayTrace(events, { set: [set] }).candidates[0]?.verdict;
    const none = verdictOf(recordCut(0, 0), 'pay.timeoutMs=300');
    expect(none).toMatchObject({ code: 'cannot_tell', because: 'there is no call in the trace' });
    const some = recordCut(3, 0);
    expect(verdictOf(some, 'spare.timeoutMs=1')).toMatchObject({
      code: 'cannot_tell',
      because: 'no call of spare is in the trace, and no other policy is changed',
    });
    // What is as it was is safe; what is changed for all is told of those that were called.
    expect(verdictOf(some, 'spare.timeoutMs=100')).toMatchObject({ code: 'safe' });
    expect(verdictOf(some, '*.timeoutMs=90')).toMatchObject({ code: 'safe' });
    expect(verdictOf(some, 'retryBudget=off')).toMatchObject({ code: 'safe' });
  });

  it('ranks the combinations of a grid, the best first', () => {
    const { candidates } = replayTrace(storm, {
      rank: { 'pay.retry.maxAttempts': [1, 2, 3], 'pay.timeoutMs': [500, 1_000] },
    });
    expect(candidates).toHaveLength(6);
    expect(candidates[0]?.name).toBe('pay.retry.maxAttempts=3 pay.timeoutMs=1000');
    expect(candidates[0]?.verdict.code).toBe('safe');
  });

  it('RPL-5 calls a repeated effect worse than a lost success', () => {
    const trace = recordStorm({ calls: 400, outage: [1_000, 4_000], policy: { effects: 'mutating', breaker: false } });
    const [careless] = replayTrace(trace, { set: ['pay.effects=read'] }).candidates;
    expect(careless?.flips[0]?.after.repeatsEffect).toBe(true);
    expect(careless?.verdict.code).not.toBe('safe');
  });
});
