import { Subscription, firstValueFrom, map, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { BreakerOptions } from '../../src/contract/policy.ts';
import { createBreaker, type Breaker } from '../../src/operators/breaker/breaker.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, fail, handClock, permit, succeed } from '../support.ts';

const quick: BreakerOptions = { failureThreshold: 1, successThreshold: 1, cooldownMs: 5, halfOpenTimeoutMs: 10 };
const types = (breaker: Breaker) => breaker.state$.pipe(map(({ type }) => type));
const values = { c: 'closed', o: 'open', h: 'half_open', f: 'forced_open', d: 'disabled' } as const;

describe('R-3.4 state$ in time', () => {
  it(
    'R-3.4 it starts with the present state, and shows half-open at the very instant of the cooldown, without traffic',
    marbles((m) => {
      const calls = '       --f------f-------s--';
      const early = '       ^-------------------';
      const expectedEarly = 'c-o----h-o----h--c--';
      const late = '        ----^---------------';
      const expectedLate = ' ----o--h-o----h--c--';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot<string>(calls).subscribe((call) => (call === 'f' ? fail(breaker) : succeed(breaker)));
      m.expect(types(breaker), early).toBeObservable(expectedEarly, values);
      m.expect(types(breaker), late).toBeObservable(expectedLate, values);
    }),
  );

  it(
    'R-3.4 a late watcher sees time that has passed unseen',
    marbles((m) => {
      const calls = '   f---------------';
      const watch = '   --------^-------';
      const expected = '--------h-------';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot<string>(calls).subscribe(() => fail(breaker));
      m.expect(types(breaker), watch).toBeObservable(expected, values);
    }),
  );

  it(
    'R-3.5 half-open’s own deadline shows at its instant: revoked, open, and half-open once more',
    marbles((m) => {
      const calls = '   -f----a--------------------';
      //                      a + 10 ----^
      const expected = 'co----h---------o----h-----';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot<string>(calls).subscribe((call) => void (call === 'f' ? fail(breaker) : permit(breaker)));
      m.expect(types(breaker), '^').toBeObservable(expected, values);
    }),
  );

  it(
    'R-3.4 it emits when its type changes, and only then',
    marbles((m) => {
      const calls = '   -s-s-r-s-x-x-d-d-r';
      const expected = 'c--------f---d---c';
      const breaker = createBreaker({ failureThreshold: 3 }, runtimeOn(m.scheduler));
      const acts: Readonly<Record<string, () => void>> = {
        s: () => succeed(breaker),
        r: () => breaker.reset(),
        x: () => breaker.forceOpen(),
        d: () => breaker.disable(),
      };
      m.hot<string>(calls).subscribe((call) => acts[call]?.());
      m.expect(types(breaker)).toBeObservable(expected, values);
    }),
  );

  it(
    'R-3.4 unsubscribing ends it, and it can be watched again',
    marbles((m) => {
      const calls = '         --f-------------';
      const first = '         ^---!           ';
      const expectedFirst = ' c-o--           ';
      const second = '        -----^----------';
      const expectedSecond = '-----o-h--------';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot<string>(calls).subscribe(() => fail(breaker));
      m.expect(types(breaker), first).toBeObservable(expectedFirst, values);
      m.expect(types(breaker), second).toBeObservable(expectedSecond, values);
    }),
  );

  it(
    'R-3.4 the state seen says when it ends, and keeps the count',
    marbles((m) => {
      const states = {
        c: { type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 },
        o: { type: 'open', consecutiveFailures: 1, measured: 1, failures: 1, retryAfterMs: 5 },
        p: { type: 'open', consecutiveFailures: 1, measured: 1, failures: 1, retryAfterMs: 3 },
        h: { type: 'half_open', consecutiveFailures: 1, measured: 1, failures: 1 },
      } as const;
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      const calls = '        -f-----';
      const early = '        ^------';
      const expectedEarly = 'co----h';
      const late = '         ---^---';
      const expectedLate = ' ---p--h';
      m.hot(calls).subscribe(() => fail(breaker));
      m.expect(breaker.state$, early).toBeObservable(expectedEarly, states);
      m.expect(breaker.state$, late).toBeObservable(expectedLate, states);
    }),
  );
});

describe('R-3.4 timers', () => {
  it('R-3.4 nobody watches: no timer, whatever happens', () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    fail(breaker);
    clock.pass(5);
    permit(breaker);
    clock.pass(100);
    breaker.forceOpen();
    breaker.reset();
    expect(clock.runtime.started).toBe(0);
  });

  it('R-3.4 watched: none while closed, one while open however many watch, none once the last has gone', () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    const watchers = Array.from({ length: 3 }, () => breaker.state$.subscribe());
    expect(clock.runtime.timers).toBe(0);
    fail(breaker);
    expect(clock.runtime.timers).toBe(1);
    clock.pass(5);
    expect(clock.runtime.timers).toBe(0);
    const probe = permit(breaker);
    expect(clock.runtime.timers).toBe(1);
    probe.failure();
    expect(clock.runtime.timers).toBe(1);
    watchers.forEach((watcher) => watcher.unsubscribe());
    expect(clock.runtime.timers).toBe(0);
  });

  it('R-3.4 a forced or reset breaker has no timer left', () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    const watcher = breaker.state$.subscribe();
    fail(breaker);
    breaker.forceOpen();
    expect(clock.runtime.timers).toBe(0);
    breaker.reset();
    fail(breaker);
    breaker.reset();
    expect(clock.runtime.timers).toBe(0);
    watcher.unsubscribe();
  });

  it('R-3.4 a look at the state needs no timer', async () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    fail(breaker);
    expect(await firstValueFrom(breaker.state$)).toMatchObject({ type: 'open' });
    expect(clock.runtime.timers).toBe(0);
  });

  it(
    'R-3.4 a timer that comes a fraction early still shows half-open',
    marbles((m) => {
      const onTime = runtimeOn(m.scheduler);
      const early = { ...onTime, after: (ms: number) => onTime.after(ms - 1) };
      const breaker = createBreaker(quick, counting(early));
      const calls = '   -f-----';
      const expected = 'co---h-';
      m.hot(calls).subscribe(() => fail(breaker));
      m.expect(types(breaker)).toBeObservable(expected, values);
    }),
  );
});

describe('R-3.4 watchers that call back', () => {
  it('R-3.4 all watchers see one order, whoever calls back into the breaker', () => {
    const breaker = createBreaker(quick, handClock().runtime);
    const seen: string[][] = [[], [], []];
    const changed: string[] = [];
    const watchers = new Subscription();
    watchers.add(types(breaker).subscribe((type) => seen[0]?.push(type)));
    watchers.add(
      types(breaker).subscribe((type) => {
        seen[1]?.push(type);
        if (type === 'open') breaker.forceOpen();
        if (type === 'forced_open') breaker.reset();
      }),
    );
    watchers.add(types(breaker).subscribe((type) => seen[2]?.push(type)));
    fail(breaker);
    const order = ['closed', 'open', 'forced_open', 'closed'];
    expect(seen).toStrictEqual([order, order, order]);
    expect(changed).toStrictEqual([]);
    watchers.unsubscribe();
  });

  it('R-3.4 a watcher that throws disturbs neither the breaker nor the others', () => {
    const errors: unknown[] = [];
    const report = (error: unknown): void => void errors.push(error);
    const breaker = createBreaker(quick, handClock().runtime, () => {
      throw new Error('a listener’s own');
    });
    const seen: string[] = [];
    const watchers = new Subscription();
    watchers.add(
      breaker.state$.subscribe({
        next: () => {
          try {
            throw new Error('a watcher’s own');
          } catch (error) {
            report(error);
          }
        },
      }),
    );
    watchers.add(types(breaker).subscribe((type) => seen.push(type)));
    fail(breaker);
    expect(seen).toStrictEqual(['closed', 'open']);
    expect(errors).toHaveLength(2);
    watchers.unsubscribe();
  });

  it('R-3.4 a watcher may leave in the middle of it', () => {
    const breaker = createBreaker(quick, handClock().runtime);
    const seen: string[] = [];
    types(breaker)
      .pipe(take(2))
      .subscribe((type) => seen.push(type));
    fail(breaker);
    breaker.reset();
    expect(seen).toStrictEqual(['closed', 'open']);
  });
});
