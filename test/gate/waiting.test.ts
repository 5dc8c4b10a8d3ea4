import { Observable, Subject, of } from 'rxjs';
import { createSpillway, plan, tool, type TurnResult } from 'spillway';
import { createApprovals, type ApprovalAnswer } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { runtimeOn, virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { scene, silent, typed } from './kit.ts';

describe('the time in which a person is waited for', () => {
  it(
    'R-22.4 as marbles: the call runs when the answer comes',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler, 1);
      const called = (answer: string): Observable<string> =>
        new Observable<string>((subscriber) => {
          const ask = (): Observable<ApprovalAnswer> => m.cold(answer, { y: true, n: false });
          const approvals = createApprovals({ ask, ttlMs: 8, pollMs: 1 });
          const pay = tool({
            name: 'pay',
            needsApproval: true,
            policy: { effects: 'mutating', timeoutMs: 2 },
            execute: () => of('paid'),
          });
          const store = memoryStore({ runtime, sweepMs: Infinity });
          const call$ = createSpillway({ tools: [pay], approvals, runtime, store }).call({ toolName: 'pay' });
          return call$.subscribe((event) => {
            if (event.type === 'attempt_started') subscriber.next('r');
            if (event.type === 'settled') {
              subscriber.next(event.result.error === undefined ? 's' : 'e');
              subscriber.complete();
            }
          });
        });
      m.expect(called('  -----y')).toBeObservable('-----(rs|)');
      m.expect(called('  -----n')).toBeObservable('-----(e|)');
      // Nobody answers: at the end of its time to live.
      m.expect(called('  ------')).toBeObservable('--------(e|)');
      // Nobody answers here, and the answer would come from the store.
      m.expect(called('  --|')).toBeObservable('   --------(e|)');
    }),
  );

  it('R-22.4 does not count against timeoutMs and maxTotalTimeMs of the call', async () => {
    const answer$ = new Subject<boolean>();
    let tries = 0;
    const at = scene({
      tool: {
        policy: {
          effects: 'mutating',
          timeoutMs: 100,
          retry: { maxTotalTimeMs: 1_000, initialDelayMs: 100, jitterPercent: 0 },
        },
      },
      approvals: { ask: () => answer$ },
      execute: () => (++tries === 1 ? Promise.reject(Object.assign(new Error('x'), { status: 503 })) : 'paid'),
    });
    const call = at.pay();
    await at.pass(600_000);
    answer$.next(true);
    await at.pass(200);
    expect(call.result).toMatchObject({ status: 'success', attempts: 2 });
  });

  it('R-22.4 the wait before a retry that asks anew does not count against maxTotalTimeMs', async () => {
    const answers = [new Subject<boolean>(), new Subject<boolean>()];
    let asks = 0;
    let tries = 0;
    const lost = (): unknown => Promise.reject(Object.assign(new Error('x'), { code: 'ECONNRESET' }));
    const policy = {
      effects: 'mutating',
      enforcesKey: true,
      retry: { maxTotalTimeMs: 1_000, initialDelayMs: 100, jitterPercent: 0 },
    } as const;
    const at = scene({
      tool: { policy },
      approvals: { ask: () => answers[asks++] ?? silent() },
      execute: () => (++tries === 1 ? lost() : 'paid'),
    });
    const call = at.pay();
    answers[0]?.next(true);
    await at.pass(300_000);
    expect(at.runs).toHaveLength(1);
    answers[1]?.next(true);
    await at.pass(0);
    expect(call.result).toMatchObject({ status: 'success', attempts: 2 });
  });

  it('R-22.4 unsubscribing calls it off: nobody’s later answer runs anything', async () => {
    let isOver = false;
    const ask = (): Observable<never> => new Observable(() => () => (isOver = true));
    const at = scene({ approvals: { ask } });
    const call = at.pay();
    await at.pass(0);
    const [asked] = await at.approvals.pending();
    call.cancel();
    await at.pass(0);
    expect([isOver, await at.approvals.pending()]).toEqual([true, []]);
    expect(await at.approvals.answer(asked?.id ?? '', true)).toMatchObject({ counts: false });
    expect(typed(at.trace, 'approval').map(({ step }) => step)).toEqual(['asked', 'withdrawn']);
    await at.pass(5_000);
    expect(at.runs).toEqual([]);
  });

  it('R-22.4 when one of two that share a question leaves, the other asks anew', async () => {
    const at = scene({ approvals: { ask: silent } });
    const one = at.pay();
    at.pay();
    await at.pass(0);
    one.cancel();
    await at.pass(2_000);
    const [asked, ...more] = await at.approvals.pending();
    expect(more).toEqual([]);
    await at.approvals.answer(asked?.id ?? '', true);
    await at.pass(0);
    expect(at.runs).toHaveLength(1);
  });
});

/** A turn of a call that needs approval beside one that takes its time. */
const turnOf = (countsAgainstTurn: boolean | undefined, timeoutMs = 1_000) => {
  const runtime = virtualRuntime();
  const answer$ = new Subject<boolean>();
  const approvals = createApprovals({
    ask: () => answer$,
    ...(countsAgainstTurn === undefined ? {} : { countsAgainstTurn }),
  });
  const pay = tool({ name: 'pay', needsApproval: true, policy: { effects: 'mutating' }, execute: () => 'paid' });
  const slow = tool({
    name: 'slow',
    policy: { effects: 'read', timeoutMs: 100_000_000, retry: { maxAttempts: 1 } },
    execute: () => runtime.after(2_000_000),
  });
  const spillway = createSpillway({ tools: [pay, slow], approvals, runtime });
  const seen: { result?: TurnResult; atMs?: number } = {};
  const startMs = runtime.now();
  spillway.turn(plan({ timeoutMs }).call('pay', pay, {}).call('slow', slow, undefined)).subscribe((event) => {
    if (event.source === 'turn' && event.type === 'settled')
      Object.assign(seen, { result: event.result, atMs: runtime.now() - startMs });
  });
  return { runtime, answer$, seen };
};

describe('a turn that waits for a person', () => {
  it('R-22.4 stands still meanwhile, and has what was left of its time after', async () => {
    const { runtime, answer$, seen } = turnOf(undefined);
    await runtime.advance(600_000);
    expect(seen.result).toBeUndefined();
    answer$.next(true);
    await runtime.advance(999);
    expect(seen.result).toBeUndefined();
    await runtime.advance(1);
    expect(seen.result?.nodes.map(({ state }) => state)).toEqual(['succeeded', 'timed_out']);
    expect(seen.atMs).toBe(601_000);
  });

  it('R-22.4 runs on where that is asked: what waits then never begins', async () => {
    const { runtime, answer$, seen } = turnOf(true);
    await runtime.advance(1_000);
    expect(seen.result?.nodes.map(({ state }) => state)).toEqual(['timed_out', 'timed_out']);
    answer$.next(true);
    await runtime.advance(1_000);
    expect(seen.result?.executedTools).toBe(1);
  });

  it('R-22.4 goes on when the answer is no, or does not come in time', async () => {
    const { runtime, answer$, seen } = turnOf(undefined);
    await runtime.advance(50_000);
    answer$.next(false);
    await runtime.advance(1_000);
    expect(seen.result?.nodes.map(({ state }) => state)).toEqual(['failed', 'timed_out']);
    const other = turnOf(undefined);
    await other.runtime.advance(901_000);
    expect(other.seen.result?.nodes.map(({ state }) => state)).toEqual(['failed', 'timed_out']);
  });
});
