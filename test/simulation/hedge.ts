import { Observable, type Subscription } from 'rxjs';
import { hedge, type HedgePolicy } from '../../src/operators/hedge.ts';
import { createRetryBudget, type RetryBudget } from '../../src/policy/retry/budget.ts';
import { Dice } from './dice.ts';
import type { Outcome } from './simulate.ts';
import { SideWorld } from './side-world.ts';

const SPAN_MS = 1_000;
/** The operator measures so many answers. */
const WINDOW = 100;
const LATENCIES = [0, 5, 5, 10, 10, 20, 40, 80, 200] as const;

interface Drawn {
  readonly delayMs: number | undefined;
  readonly quantile: number;
  readonly minimumSamples: number;
  readonly maxHedges: number;
  readonly budget: { readonly ratio: number; readonly minPerSecond: number; readonly windowMs: number } | undefined;
  readonly fails: number;
}

const draw = (seed: number): Drawn => {
  const dice = new Dice(seed, 70);
  return {
    delayMs: dice.chance(0.5) ? dice.pick([5, 10, 30]) : undefined,
    quantile: dice.pick([0.5, 0.8, 0.95]),
    minimumSamples: dice.pick([1, 3, 10]),
    maxHedges: dice.int(1, 3),
    budget: dice.chance(0.5)
      ? { ratio: dice.pick([0, 0.2, 1]), minPerSecond: dice.pick([0, 2]), windowMs: 1_000 }
      : undefined,
    fails: dice.pick([0, 0.2, 0.6]),
  };
};

/** One attempt of a race. */
interface Attempt {
  readonly number: number;
  readonly startedMs: number;
  ended: boolean;
}

/** One subscription: its attempts, and how it ended. */
class Race {
  readonly attempts: Attempt[] = [];
  /** When the next hedge is due; `undefined` where none is. */
  dueMs: number | undefined;
  winner: Attempt | undefined;
  over = false;
  gave: unknown;
  failed = 0;

  get running(): number {
    return this.attempts.filter(({ ended }) => !ended).length;
  }
}

/** Races over one hedge, which measures and counts for all of them. */
class HedgeWorld extends SideWorld {
  readonly #drawn: Drawn;
  readonly #operator: <T>(source: Observable<T>) => Observable<T>;
  readonly #budget: RetryBudget | undefined;
  /** Kept here once more: the latest durations, and the times of calls and hedges. */
  readonly #measured: number[] = [];
  readonly #callsMs: number[] = [];
  readonly #hedgesMs: number[] = [];
  readonly #races = new Map<number, Race>();

  constructor(seed: number, log?: (line: string) => void) {
    super(seed, log);
    this.#drawn = draw(seed);
    const { delayMs, quantile, minimumSamples, maxHedges, budget } = this.#drawn;
    this.#budget = budget === undefined ? undefined : createRetryBudget(budget);
    const wait: HedgePolicy = delayMs === undefined ? { quantile, minimumSamples } : { delayMs };
    this.#operator = hedge(
      { ...wait, maxHedges, ...(this.#budget === undefined ? {} : { budget: this.#budget }) },
      this.runtime,
    );
  }

  race(n: number, leavesAfterMs: number | undefined): void {
    const race = new Race();
    this.#races.set(n, race);
    this.#budget?.recordCall(this.runtime.now());
    this.#callsMs.push(this.runtime.now());
    const subscription = this.#source(n, race)
      .pipe(this.#operator)
      .subscribe({
        next: (value) => {
          this.check(race.gave === undefined && !race.over, 'HDG-4', () => `race ${n} gives a second value`);
          race.gave = value;
        },
        error: () => this.#ends(n, race, true),
        complete: () => this.#ends(n, race, false),
      });
    if (leavesAfterMs !== undefined)
      this.runtime.scheduler.after(leavesAfterMs, () => this.#leaves(n, race, subscription));
  }

  override leaving(): void {
    const now = this.runtime.now();
    for (const [n, race] of this.#races) {
      const { over, dueMs } = race;
      if (over || dueMs === undefined || dueMs > now) continue;
      // Calls of this very instant may have been counted after the budget was asked.
      const isForbidden = dueMs === now && this.#hedgesLeft(now, now) < 1;
      this.check(isForbidden, 'HDG-2', () => `the hedge of race ${n} was due ${now - dueMs} ms ago`);
      this.findings.saw('the budget forbids a hedge');
      race.dueMs = undefined;
    }
  }

  review(): void {
    for (const [n, race] of this.#races)
      this.check(
        race.over && race.running === 0,
        'HDG-1',
        () => `race ${n} has ${race.running} attempts that never end`,
      );
  }

  #source(n: number, race: Race): Observable<number> {
    return new Observable((subscriber) => {
      const attempt = this.#starts(n, race);
      const dice = new Dice(this.seed, 71, n, attempt.number);
      const fails = dice.chance(this.#drawn.fails);
      const { scheduler } = this.runtime;
      // A stream goes on for a while after the value that wins.
      const restMs = dice.chance(0.3) ? dice.pick([5, 40, 100]) : 0;
      const ends = (): void => {
        attempt.ended = true;
        subscriber.complete();
      };
      let task = scheduler.after(dice.pick(LATENCIES), () => {
        this.#answers(n, race, attempt, fails);
        if (fails) return subscriber.error(new Error('failed'));
        if (restMs > 0) task = scheduler.after(restMs, ends);
        subscriber.next(attempt.number);
        if (restMs === 0) ends();
      });
      return () => {
        task.cancel();
        this.#stops(race, attempt);
      };
    });
  }

  #starts(n: number, race: Race): Attempt {
    const now = this.runtime.now();
    const number = race.attempts.length + 1;
    this.log?.(`${this.elapsedMs.toFixed(1).padStart(8)} race ${n}: attempt ${number}`);
    this.digest.add({
      source: 'call',
      type: 'attempt_started',
      attempt: number,
      atMs: now,
      seq: 0,
      callId: '',
      toolName: `${n}`,
    });
    this.check(
      !race.over && number <= 1 + this.#drawn.maxHedges,
      'HDG-1',
      () => `race ${n} starts attempt ${number}${race.over ? ' after its end' : ''}`,
    );
    if (number > 1) {
      this.findings.saw('a hedge is made');
      this.check(
        race.dueMs === now && race.winner === undefined,
        'HDG-2',
        () => `a hedge of race ${n} starts at ${now}, it is due at ${race.dueMs}`,
      );
      this.#hedgesMs.push(now);
      this.check(this.#hedgesLeft(now) >= 0, 'HDG-3', () => `race ${n} makes a hedge that the budget has no place for`);
    }
    const attempt: Attempt = { number, startedMs: now, ended: false };
    race.attempts.push(attempt);
    race.dueMs = undefined;
    const waitMs = this.#waitMs();
    if (number <= this.#drawn.maxHedges && waitMs !== undefined) race.dueMs = now + waitMs;
    return attempt;
  }

  #waitMs(): number | undefined {
    const { delayMs, quantile, minimumSamples } = this.#drawn;
    if (delayMs !== undefined) return delayMs;
    if (this.#measured.length < minimumSamples) {
      this.findings.saw('too few are measured');
      return undefined;
    }
    this.findings.saw('a measured wait');
    // The least duration that at least this share did not exceed.
    const sorted = this.#measured.toSorted((a, b) => a - b);
    return sorted.find((ms) => sorted.filter((other) => other <= ms).length >= quantile * sorted.length - 1e-9);
  }

  /** What the budget has left. @param callsBeforeMs of which calls */
  #hedgesLeft(now: number, callsBeforeMs: number = Infinity): number {
    const { budget } = this.#drawn;
    if (budget === undefined) return Infinity;
    const within = (times: readonly number[]): number =>
      times.filter((ms) => Math.floor(ms) > Math.floor(now) - budget.windowMs).length;
    return (
      budget.ratio * within(this.#callsMs.filter((ms) => ms < callsBeforeMs)) +
      (budget.minPerSecond * budget.windowMs) / 1_000 -
      within(this.#hedgesMs) +
      1e-6
    );
  }

  #measure({ startedMs }: Attempt): void {
    this.#measured.push(this.runtime.now() - startedMs);
    if (this.#measured.length > WINDOW) this.#measured.shift();
  }

  #answers(n: number, race: Race, attempt: Attempt, fails: boolean): void {
    this.check(
      !attempt.ended && race.winner === undefined && !race.over,
      'HDG-1',
      () => `attempt ${attempt.number} of race ${n} answers, and the race was over`,
    );
    if (fails) {
      attempt.ended = true;
      race.failed++;
      if (race.running > 0) this.findings.saw('an attempt drops out of the race');
      return;
    }
    race.winner = attempt;
    race.dueMs = undefined;
    this.#measure(attempt);
    if (attempt.number > 1) this.findings.saw('a hedge wins');
    else if (race.attempts.length > 1) this.findings.saw('the first wins over its hedge');
  }

  /** Taken down: a loser is measured as far as it came. */
  #stops(race: Race, attempt: Attempt): void {
    if (attempt.ended) return;
    attempt.ended = true;
    if (race.winner !== undefined && race.winner !== attempt) this.#measure(attempt);
  }

  #ends(n: number, race: Race, failed: boolean): void {
    this.check(!race.over, 'HDG-4', () => `race ${n} ends twice`);
    race.over = true;
    race.dueMs = undefined;
    const isRight = failed
      ? race.failed === race.attempts.length
      : race.winner !== undefined && race.gave === race.winner.number;
    this.check(
      isRight,
      'HDG-4',
      () =>
        `race ${n} ${failed ? 'fails' : `gives ${String(race.gave)}`}; ${race.failed} of ${race.attempts.length} attempts failed, ${race.winner?.number} answered first`,
    );
    this.check(race.running === 0, 'HDG-1', () => `race ${n} is over and ${race.running} attempts run on`);
    if (failed && race.attempts.length > 1) this.findings.saw('all attempts fail');
  }

  #leaves(n: number, race: Race, subscription: Subscription): void {
    if (race.over) return;
    if (race.running > 1) this.findings.saw('unsubscribed while two run');
    race.over = true;
    race.dueMs = undefined;
    subscription.unsubscribe();
    this.check(race.running === 0, 'HDG-1', () => `race ${n} was given up and ${race.running} attempts run on`);
  }
}

/**
 * One run of hedged work: subscriptions over one `hedge()`, which share what it measures and its budget. Who wins, when
 * a hedge is due and whether the budget has a place for it is worked out from the attempts alone.
 */
export async function simulateHedge(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new HedgeWorld(seed, log);
  const dice = new Dice(seed, 72);
  const count = dice.int(4, 30);
  for (let n = 1; n <= count; n++) {
    const leavesAfterMs = dice.chance(0.15) ? dice.int(0, 20) * 5 : undefined;
    world.runtime.scheduler.after(dice.int(0, SPAN_MS), () => world.race(n, leavesAfterMs));
  }
  await world.toTheEnd();
  if (world.findings.violations.length === 0) world.review();
  return world.outcome;
}
