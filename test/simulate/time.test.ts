import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimulatedTime, type Task } from '../../src/simulate/time.ts';
import { StormDeadlines } from '../../src/simulate/storm/fleet/deadlines.ts';

interface Waiting {
  readonly atMs: number;
  readonly round: number;
  readonly order: number;
  readonly sequence: number;
  readonly work: () => void;
}

/** What simulated time is, said as plainly as it can be: a list, of which the first is run. */
class ListedTime {
  #waiting: Waiting[] = [];
  #nowMs: number;
  #round = 0;
  #sequence = 0;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  readonly now = (): number => this.#nowMs;

  get pending(): number {
    return this.#waiting.length;
  }

  at(atMs: number, order: number, work: () => void): Task {
    const dueMs = Math.max(atMs, this.#nowMs);
    const round = dueMs === this.#nowMs ? this.#round + 1 : 0;
    const entry = { atMs: dueMs, round, order, sequence: this.#sequence++, work };
    this.#waiting.push(entry);
    return { cancel: () => void (this.#waiting = this.#waiting.filter((other) => other !== entry)) };
  }

  run(untilMs = Infinity): number {
    let done = 0;
    for (;;) {
      this.#waiting.sort(
        (a, b) => a.atMs - b.atMs || a.round - b.round || a.order - b.order || a.sequence - b.sequence,
      );
      const [first] = this.#waiting;
      if (first === undefined || first.atMs > untilMs) break;
      this.#waiting.shift();
      [this.#nowMs, this.#round] = [first.atMs, first.round];
      first.work();
      done++;
    }
    if (untilMs !== Infinity && untilMs > this.#nowMs) [this.#nowMs, this.#round] = [untilMs, 0];
    return done;
  }
}

type AnyTime = Pick<SimulatedTime, 'at' | 'run' | 'now' | 'pending'>;

/** A step of a program, at the top or within work. */
type Step =
  | { readonly do: 'set'; readonly inMs: number; readonly order: number; readonly count: number; readonly then: Step[] }
  | { readonly do: 'cancel'; readonly which: number; readonly count: number }
  | { readonly do: 'throw' }
  | { readonly do: 'run'; readonly forMs: number };

/** All that can be seen of a time that a program was run on. */
const seenOf = (time: AnyTime, steps: readonly Step[]): unknown[] => {
  const seen: unknown[] = [];
  const tasks: Task[] = [];
  const take = (step: Step): void => {
    if (step.do === 'throw') throw new Error('work fails');
    if (step.do === 'set')
      for (let i = 0; i < step.count; i++) {
        const name = tasks.length;
        tasks.push(
          time.at(time.now() + step.inMs, step.order, () => {
            seen.push([name, time.now(), time.pending]);
            step.then.forEach(take);
          }),
        );
      }
    if (step.do === 'cancel' && tasks.length > 0)
      for (let i = 0; i < step.count; i++) tasks[(step.which + i) % tasks.length]?.cancel();
    if (step.do === 'run') seen.push(['ran', time.run(time.now() + step.forMs)]);
    seen.push(time.pending);
  };
  for (const step of [...steps, { do: 'run', forMs: Infinity } as const])
    try {
      take(step);
    } catch {
      seen.push(['threw', time.now(), time.pending]);
    }
  while (time.pending > 0)
    try {
      time.run();
    } catch {
      seen.push(['threw', time.now(), time.pending]);
    }
  return [...seen, time.now(), time.pending];
};

const programs = (count: fc.Arbitrary<number>): fc.Arbitrary<Step[]> => {
  const inMs = fc.oneof(fc.integer({ min: -2, max: 4 }), fc.constantFrom(0, 0.5, 0.1, 1e-9));
  const leaf: fc.Arbitrary<Step>[] = [
    fc.record({ do: fc.constant('cancel'), which: fc.nat(40), count }),
    fc.record({ do: fc.constant('throw') }),
  ];
  const within = fc.letrec<{ steps: Step[]; step: Step }>((tie) => ({
    steps: fc.array(tie('step'), { maxLength: 3, depthIdentifier: 'step' }),
    step: fc.oneof(
      { depthSize: 'small', depthIdentifier: 'step' },
      ...leaf,
      fc.record({ do: fc.constant('set'), inMs, order: fc.nat(2), count: fc.constantFrom(1, 2), then: tie('steps') }),
    ),
  }));
  const top: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constant('set'), inMs, order: fc.nat(2), count, then: within.steps }),
    fc.record({ do: fc.constant('run'), forMs: fc.constantFrom(-1, 0, 0.5, 1, 2, 3) }),
    ...leaf,
  );
  return fc.array(top, { maxLength: 12 });
};

describe('simulated time', () => {
  it('SIM-1 does what waits in the order of a sorted list, whatever is set, canceled, stopped or thrown', () => {
    fc.assert(
      fc.property(programs(fc.constantFrom(1, 1, 2, 3)), (steps) => {
        expect(seenOf(new SimulatedTime(10), steps)).toEqual(seenOf(new ListedTime(10), steps));
      }),
      { numRuns: 3_000, seed: 19 },
    );
  });

  it('SIM-1 and the same where thousands are canceled, and swept out', () => {
    const count = fc.constantFrom(1, 3, 600, 1_100);
    fc.assert(
      fc.property(programs(count), (steps) => {
        const small = steps.map((step) => (step.do === 'set' && step.count > 3 ? { ...step, then: [] } : step));
        expect(seenOf(new SimulatedTime(10), small)).toEqual(seenOf(new ListedTime(10), small));
      }),
      { numRuns: 30, seed: 20 },
    );
  });

  it('SIM-1 looks at what waits for later now and then, however many are canceled at one instant', () => {
    const time = new SimulatedTime(0);
    const work = (): void => undefined;
    for (let i = 0; i < 30_000; i++) time.at(2, 0, work);
    const others: Task[] = [];
    time.at(1, 0, () => others.forEach((other) => other.cancel()));
    for (let i = 0; i < 30_000; i++) others.push(time.at(1, 1, work));
    const beganMs = performance.now();
    expect(time.run()).toBe(30_001);
    // A sweep for each that is canceled would take a minute.
    expect(performance.now() - beganMs).toBeLessThan(20_000);
    expect(time.pending).toBe(0);
  });
});

describe('deadlines of one duration', () => {
  type Deed = { readonly do: 'add' | 'cancel' | 'wait' | 'flood'; readonly by: number };

  it('SIM-1 each is told when its time is over, unless it was called off, and none else', () => {
    const deeds = fc.array(
      fc.record({ do: fc.constantFrom('add', 'add', 'cancel', 'wait', 'flood'), by: fc.nat(30) }),
      { maxLength: 40 },
    ) as fc.Arbitrary<Deed[]>;
    fc.assert(
      fc.property(deeds, fc.nat(12), (all, ms) => {
        const time = new SimulatedTime(0);
        const deadlines = new StormDeadlines(time, ms);
        const [told, expected] = [[] as string[], new Map<number, number>()];
        const tasks: Task[] = [];
        const add = (): void => {
          const name = tasks.length;
          expected.set(name, time.now() + ms);
          // Every seventh sets another one when it is told.
          tasks.push(
            deadlines.add({
              expired: () => {
                told.push(`${name} ${time.now()}`);
                if (name % 7 === 6 && ms > 0) add();
              },
            }),
          );
        };
        const cancel = (name: number): void => {
          if (!told.some((line) => line.startsWith(`${name} `))) expected.delete(name);
          tasks[name]?.cancel();
        };
        for (const deed of all) {
          if (deed.do === 'add') add();
          if (deed.do === 'cancel' && tasks.length > 0) cancel(deed.by % tasks.length);
          if (deed.do === 'wait') time.run(time.now() + deed.by / 4);
          if (deed.do === 'flood')
            for (let i = 0; i < 1_200; i++) {
              add();
              cancel(tasks.length - 1);
            }
        }
        time.run(time.now() + 100 * ms);
        const due = [...expected].filter(([, dueMs]) => dueMs <= time.now());
        expect(told.filter((line) => Number(line.split(' ')[1]) <= time.now())).toEqual(
          due.toSorted(([a, aMs], [b, bMs]) => aMs - bMs || a - b).map(([name, dueMs]) => `${name} ${dueMs}`),
        );
      }),
      { numRuns: 150, seed: 21 },
    );
  });
});
