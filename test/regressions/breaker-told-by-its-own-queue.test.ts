// Was: breakers told their changes through RxJS's queueScheduler, where a user's task that throws drops them. Now:
// through a queue of their own.
import { queueScheduler, scan } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createBreaker, type Breaker } from 'spillway';
import { initialBreaker, reduceBreaker } from 'spillway/policy';
import { breakerSettings } from '../../src/policy/breaker/settings.ts';
import { fail, handClock, permit, transient } from '../support.ts';

const options = { failureThreshold: 1, cooldownMs: 1_000 } as const;
const types = (breaker: Breaker, into: string[]): void => void breaker.state$.subscribe(({ type }) => into.push(type));

describe('R-3.4 how a breaker tells', () => {
  it('R-3.1 R-3.4 a task on RxJS’s queue that throws drops nothing: state$, onChange and inputs$ hear of the opening', () => {
    const changes: string[] = [];
    const { runtime } = handClock();
    const breaker = createBreaker(options, runtime, (from, to) => changes.push(`${from} ${to}`));
    const seen: string[] = [];
    const settings = breakerSettings(options);
    let replayed = initialBreaker(settings);
    types(breaker, seen);
    breaker.inputs$
      .pipe(scan((memory, input) => reduceBreaker(memory, input, settings), replayed))
      .subscribe((memory) => (replayed = memory));
    const mine = new Error('mine');
    expect(() =>
      queueScheduler.schedule(() => {
        permit(breaker).failure(transient);
        throw mine;
      }),
    ).toThrow(mine);
    expect(breaker.state.type).toBe('open');
    expect([seen, changes, replayed.type]).toEqual([['closed', 'open'], ['closed open'], 'open']);
  });

  it('R-3.4 in a task on RxJS’s queue, watchers hear of it before the next thing is done', () => {
    const breaker = createBreaker(options, handClock().runtime);
    const seen: string[] = [];
    types(breaker, seen);
    queueScheduler.schedule(() => {
      fail(breaker);
      seen.push('after');
    });
    expect(seen).toEqual(['closed', 'open', 'after']);
  });

  it('R-3.4 one order for who watches two breakers, whoever of them trips the one by the other', () => {
    const { runtime } = handClock();
    const [first, second] = [createBreaker(options, runtime), createBreaker(options, runtime)];
    first.state$.subscribe(({ type }) => {
      if (type === 'open') second.forceOpen();
    });
    const seen: string[] = [];
    second.state$.subscribe(({ type }) => seen.push(`second ${type}`));
    first.state$.subscribe(({ type }) => seen.push(`first ${type}`));
    fail(first);
    expect(seen).toEqual(['second closed', 'first closed', 'first open', 'second forced_open']);
  });

  it('R-3.4 a watcher that throws, and a listener that throws, drop nothing for the others', () => {
    const seen: string[] = [];
    const breaker = createBreaker(options, handClock().runtime, () => {
      throw new Error('listener');
    });
    breaker.state$.subscribe(() => {
      throw new Error('watcher');
    });
    types(breaker, seen);
    fail(breaker);
    breaker.reset();
    expect(seen).toEqual(['closed', 'open', 'closed']);
  });
});
