import { Observable, of, throwError } from 'rxjs';
import type { HookAnswer, HookAttempt, HookCall, HookReport, Hooks } from '../../src/contract/hooks.ts';
import type { CallWatch } from './call-watch.ts';
import { Dice } from './dice.ts';
import type { HookPoint } from './extras.ts';
import { fires, type Rates } from './faults.ts';
import type { InvariantId } from './findings.ts';
import type { Input } from './schemas.ts';
import type { World } from './world.ts';

/** Less than every wait for a hook that never answers. */
export const HOOK_TIMEOUT_MS = 30;
const LATE_MS = [5, 10, 25] as const;

/** What the hooks of one call were asked and said. */
class Asked {
  prepared = 0;
  refused = false;
  stamp: number | undefined;
  /** Attempts that they were asked about, and whether they may be made. */
  readonly before: Map<number, boolean> = new Map();
  readonly after: Set<number> = new Set();
  readonly executed: Set<number> = new Set();
}

type Said<T> = { readonly answer: T; readonly refuses: boolean };

/** The host's hooks, as drawn, with what they may expect of the layer. */
export class HookWatch {
  readonly hooks: Hooks;
  readonly #world: World;
  readonly #rates: Rates<HookPoint>;
  readonly #asked = new Map<string, Asked>();

  constructor(world: World, rates: Rates<HookPoint>) {
    this.#world = world;
    this.#rates = rates;
    this.hooks = {
      prepareCall: (call) => this.#prepare(call),
      beforeToolCall: (attempt) => this.#before(attempt),
      afterToolCall: (report) => this.#after(report),
    };
  }

  /** A tool runs. */
  executes({ callId, running }: CallWatch, input: Input): void {
    const asked = this.#of(callId);
    const number = running?.number ?? 0;
    this.#check(
      asked.prepared === 1 && !asked.refused,
      'HOOK-1',
      () =>
        `the tool runs in a call that was prepared ${asked.prepared} times, and ${asked.refused ? 'blocked' : 'passed'}`,
    );
    this.#check(
      asked.before.get(number) === true,
      'HOOK-1',
      () =>
        `the tool runs as attempt ${number}, which ${asked.before.has(number) ? 'was blocked' : 'no hook was asked about'}`,
    );
    this.#check(
      input.stamp === asked.stamp,
      'HOOK-1',
      () => `the tool gets ${JSON.stringify(input)}, the hook stamped it ${asked.stamp}`,
    );
    asked.executed.add(number);
  }

  /** Once quiet. */
  review(): void {
    for (const [callId, { executed, after }] of this.#asked) {
      for (const number of executed)
        this.#check(
          after.has(number),
          'HOOK-1',
          () => `attempt ${number} of ${callId} ran, and no hook heard how it ended`,
        );
    }
  }

  #check(holds: boolean, invariant: InvariantId, message: () => string): void {
    this.#world.findings.check(holds, invariant, message);
  }

  #of(callId: string): Asked {
    let asked = this.#asked.get(callId);
    if (asked === undefined) this.#asked.set(callId, (asked = new Asked()));
    return asked;
  }

  #prepare({ callId, input }: HookCall): HookAnswer<{ readonly input?: unknown; readonly block?: string } | undefined> {
    const asked = this.#of(callId);
    const call = this.#world.calls.get(callId);
    asked.prepared++;
    this.#check(
      asked.prepared === 1 && call !== undefined,
      'HOOK-1',
      () => `prepareCall is asked ${asked.prepared} times about ${callId}`,
    );
    const n = call?.place.n ?? 0;
    const dice = new Dice(this.#world.scenario.seed, 31, n, 0);
    const changes = !this.#world.calm && fires(this.#rates, 'change', dice);
    if (changes) this.#world.findings.saw('a hook changes a call');
    if (changes) asked.stamp = n;
    const { answer, refuses } = this.#say(
      dice,
      changes ? { input: { ...(input as Input), stamp: n } } : undefined,
      true,
    );
    asked.refused = refuses;
    return answer;
  }

  #before({ callId, attempt, input }: HookAttempt): HookAnswer<{ readonly block?: string } | undefined> {
    const asked = this.#of(callId);
    const call = this.#world.calls.get(callId);
    const dice = new Dice(this.#world.scenario.seed, 31, call?.place.n ?? 0, attempt + 1);
    // About a call that ends without an attempt.
    if (attempt === 0) return undefined;
    this.#check(
      !asked.before.has(attempt),
      'HOOK-1',
      () => `beforeToolCall is asked twice about attempt ${attempt} of ${callId}`,
    );
    this.#check(
      (input as Input).stamp === asked.stamp,
      'HOOK-1',
      () => `beforeToolCall is shown ${JSON.stringify(input)}, prepareCall stamped it ${asked.stamp}`,
    );
    const { answer, refuses } = this.#say(dice, undefined, false);
    asked.before.set(attempt, !refuses);
    call?.admits();
    return answer;
  }

  #after({ callId, attempt, error }: HookReport): void {
    const asked = this.#of(callId);
    const call = this.#world.calls.get(callId);
    if (attempt === 0) return;
    this.#check(
      asked.before.has(attempt) && !asked.after.has(attempt),
      'HOOK-1',
      () =>
        `afterToolCall hears of attempt ${attempt} of ${callId} ${asked.after.has(attempt) ? 'twice' : 'and beforeToolCall did not'}`,
    );
    this.#check(
      asked.before.get(attempt) !== false || error !== undefined,
      'HOOK-1',
      () => `attempt ${attempt} of ${callId} was blocked, and afterToolCall hears of no error`,
    );
    asked.after.add(attempt);
    call?.givesBack();
  }

  /** @param mayBeLate whether virtual time may go on before it answers */
  #say<T>(dice: Dice, value: T, mayBeLate: boolean): Said<HookAnswer<T | { readonly block: string }>> {
    const { findings, runtime, calm } = this.#world;
    if (calm) return { answer: value, refuses: false };
    const [block, fail, late, hang] = (['block', 'fail', 'late', 'hang'] as const).map((point) =>
      fires(this.#rates, point, dice),
    );
    if (mayBeLate && hang === true) {
      findings.saw('a hook never answers');
      return { answer: new Observable<never>(), refuses: true };
    }
    if (fail === true) {
      findings.saw('a hook fails');
      return {
        answer: dice.chance(0.5)
          ? throwError(() => new Error('the hook fails'))
          : Promise.reject(new Error('the hook fails')),
        refuses: true,
      };
    }
    if (block === true) findings.saw(mayBeLate ? 'a hook blocks a call' : 'a hook blocks an attempt');
    const answer = block === true ? { block: 'no' } : value;
    const ms = dice.pick(LATE_MS);
    if (mayBeLate && late === true) {
      findings.saw('a hook answers later');
      return {
        answer: new Observable((subscriber) => {
          const task = runtime.scheduler.after(ms, () => subscriber.next(answer));
          return () => task.cancel();
        }),
        refuses: block === true,
      };
    }
    return {
      answer: dice.pick<HookAnswer<T | { readonly block: string }>>([answer, Promise.resolve(answer), of(answer)]),
      refuses: block === true,
    };
  }
}
