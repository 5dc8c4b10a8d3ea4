import { interval, of, take, timer } from 'rxjs';
import { delay } from 'rxjs/operators';
import { describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../src/testing/index.ts';

/** Runs what is scheduled at these times, and tells in which order. */
const order = (scheduler: VirtualScheduler, delays: readonly number[]): number[] => {
  const ran: number[] = [];
  delays.forEach((ms, index) => scheduler.after(ms, () => ran.push(index)));
  scheduler.runUntil(1_000);
  return ran;
};

describe('VirtualScheduler', () => {
  it('runs by time, and at one instant in the order in which it was scheduled', () => {
    expect(order(new VirtualScheduler(), [5, 1, 5, 0, 1, 5])).toStrictEqual([3, 1, 4, 0, 2, 5]);
  });

  it('shuffles what is due at one instant by its seed, and nothing else', () => {
    const delays = [...Array.from({ length: 8 }, () => 3), ...Array.from({ length: 8 }, () => 7)];
    const [once, again, other] = [7, 7, 8].map((seed) => order(new VirtualScheduler({ seed }), delays));
    expect(again).toStrictEqual(once);
    expect(other).not.toStrictEqual(once);
    expect(once?.slice(0, 8).toSorted()).toStrictEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('a delay of zero yields to what is due, whatever the seed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const scheduler = new VirtualScheduler({ seed });
      const ran: string[] = [];
      scheduler.after(5, () => scheduler.after(0, () => scheduler.after(0, () => ran.push('twice'))));
      scheduler.after(5, () => scheduler.after(0, () => ran.push('once')));
      for (let i = 0; i < 3; i++) scheduler.after(5, () => ran.push('due'));
      scheduler.runUntil(5);
      expect(ran).toStrictEqual(['due', 'due', 'due', 'once', 'twice']);
    }
  });

  it('drives RxJS’s own operators', () => {
    const scheduler = new VirtualScheduler({ startMs: 1_000 });
    const seen: string[] = [];
    const tell =
      (what: string) =>
      (value: unknown): number =>
        seen.push(`${scheduler.now()} ${what} ${String(value)}`);
    timer(10, 5, scheduler).pipe(take(3)).subscribe(tell('timer'));
    interval(6, scheduler).pipe(take(2)).subscribe(tell('interval'));
    of('a').pipe(delay(12, scheduler)).subscribe(tell('delay'));
    while (scheduler.step());
    expect(seen).toStrictEqual([
      '1006 interval 0',
      '1010 timer 0',
      '1012 delay a',
      '1012 interval 1',
      '1015 timer 1',
      '1020 timer 2',
    ]);
    expect(scheduler.pending()).toBe(0);
  });

  it('what was canceled does not run and is not pending, however much of it there is', () => {
    const scheduler = new VirtualScheduler();
    let ran = 0;
    for (let round = 0; round < 20; round++) {
      const tasks = Array.from({ length: 500 }, (_, i) => scheduler.after(1_000 + i, () => ran++));
      for (const task of tasks.slice(1)) task.cancel();
      tasks[1]?.cancel();
    }
    expect(scheduler.pending()).toBe(20);
    const subscription = timer(5, scheduler).subscribe(() => (ran += 1_000));
    subscription.unsubscribe();
    expect(scheduler.nextMs()).toBe(1_000);
    scheduler.runUntil(5_000);
    expect(ran).toBe(20);
    expect(scheduler.nextMs()).toBe(Infinity);
  });

  it('a stall lets time pass; what became due meanwhile comes late, in the order in which it was due, and before what is set then', () => {
    const scheduler = new VirtualScheduler({ seed: 3 });
    const ran: string[] = [];
    scheduler.after(20, () => ran.push(`20 at ${scheduler.now()}`));
    scheduler.after(10, () => {
      ran.push(`10 at ${scheduler.now()}`);
      scheduler.after(0, () => ran.push(`0 at ${scheduler.now()}`));
    });
    scheduler.stall(50);
    expect([ran, scheduler.nextMs()]).toStrictEqual([[], 10]);
    scheduler.runUntil(50);
    expect(ran).toStrictEqual(['10 at 50', '20 at 50', '0 at 50']);
  });

  it('throws what its work throws, and goes on after it', () => {
    const scheduler = new VirtualScheduler();
    let ran = 0;
    scheduler.schedule(() => {
      throw new Error('mine');
    });
    scheduler.schedule(() => ran++);
    expect(() => scheduler.step()).toThrow('mine');
    expect([scheduler.step(), scheduler.step(), ran]).toStrictEqual([true, false, 1]);
  });
});
