import { Observable } from 'rxjs';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import type { AnyTool, ToolContext } from '../../../src/contract/tool.ts';
import { replayPage } from '../../../src/simulate/replay/page/page.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { replayText } from '../../../src/simulate/replay/report.ts';
import type { WhatIf } from '../../../src/simulate/replay/what-if.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

/** Turns of three nodes, each after the one before. In every `nth` of them the first fails: the others are not made. */
const recordTurns = (turns: number, nth: number): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  let made = 0;
  const toolOf = (name: string): AnyTool => ({
    name,
    policy: { effects: 'read', timeoutMs: 1_000, retry: { maxAttempts: 1 }, breaker: false },
    execute: (_: unknown, { attempt }: ToolContext) =>
      new Observable((subscriber) => {
        const fails = name === 'first' && attempt === 1 && ++made % nth === 0;
        const task = time.at(time.now() + 10, 0, () => {
          if (fails) return subscriber.error(Object.assign(new Error('unavailable'), { status: 503 }));
          subscriber.next('done');
          subscriber.complete();
        });
        return () => task.cancel();
      }),
  });
  const layer = createSpillway({ tools: ['first', 'second', 'third'].map(toolOf), runtime: time, retryBudget: false });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const trip = plan.from([
    { id: 'a', tool: 'first', input: {} },
    { id: 'b', tool: 'second', input: {}, needs: ['a'] },
    { id: 'c', tool: 'third', input: {}, needs: ['b'] },
  ]);
  for (let turn = 0; turn < turns; turn++)
    time.at(1_000_000 + turn * 5_000, 0, () => void layer.turn(trip).subscribe());
  time.run();
  return events;
};

describe('RPL-3 a plan of which more, or less, is made than the trace holds', () => {
  const found = (trace: readonly TraceEvent[], set: string): readonly [WhatIf, string] => {
    const report = replayTrace(trace, { set: [set] });
    const [what] = report.candidates;
    if (what === undefined) throw new Error('nothing was asked');
    return [what, replayText(report)];
  };
  const holds = ({ bounds, recorded, unknown, flips, calls }: WhatIf): void => {
    for (const { calls: made, successes, worse, better } of Object.values(bounds)) {
      expect(successes).toBeLessThanOrEqual(made);
      expect(worse + better).toBeLessThanOrEqual(bounds.good.calls + calls);
    }
    expect(recorded.calls).toBe(calls);
    expect(bounds.bad.calls).toBeLessThanOrEqual(bounds.fitted.calls);
    expect(bounds.fitted.calls).toBeLessThanOrEqual(bounds.good.calls);
    const ofFlips = (side: 'before' | 'after'): number => flips.filter((f) => f[side].status === 'not_made').length;
    expect(bounds.fitted.calls).toBe(calls + ofFlips('before') - ofFlips('after'));
    expect(unknown.share).toBeLessThanOrEqual(1);
  };

  it('has as many calls as are made, of which no more than all succeed or hang on something', () => {
    const [what, text] = found(recordTurns(10, 2), 'first.retry.maxAttempts=3');
    holds(what);
    expect(what).toMatchObject({
      recorded: { calls: 20, successes: 15 },
      bounds: { good: { calls: 30, successes: 30 } },
      verdict: { because: '21 of 30 calls hang on what the trace does not tell, and 20.0 % is the most' },
    });
    expect(text).toMatch(/successes 15 of 20 -> \d+ \(\d+ to 30\) of \d+ \(\d+ to 30\)\n/);
  });

  it('says the number once where it is the same', () => {
    const [what, text] = found(recordTurns(10, 2), 'first.timeoutMs=900');
    holds(what);
    expect(text).toContain('successes 15 -> 15 of 20\n');
  });

  it('holds for plans of any luck', () => {
    for (const nth of [1, 2, 3, 5, 9, 40])
      for (const set of [
        'first.retry.maxAttempts=2',
        'first.timeoutMs=9',
        '*.timeoutMs=5',
        'third.retry.maxAttempts=4',
      ])
        holds(found(recordTurns(20, nth), set)[0]);
  });

  it('is said on the page as well', () => {
    const report = replayTrace(recordTurns(10, 2), { set: ['first.retry.maxAttempts=3'] });
    const html = replayPage(report);
    const made = report.candidates[0]?.flips.filter(({ before }) => before.status === 'not_made').length;
    expect(html).toContain(`number of attempts. ${made} more are made that the trace holds nothing of.</p>`);
    expect(html).toContain('data-figure="bounds.good.calls">30<');
  });
});
