import type { TraceEvent } from '../../src/contract/event.ts';
import type { TurnResult } from '../../src/contract/turn.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { ResumedTurn } from '../../src/saga/resume.ts';
import {
  Agency,
  FAULTS,
  LEASE_MS,
  Mortal,
  SITES,
  STOPS,
  TripProcess,
  type Fault,
  type Life,
  type Shape,
  type Site,
  type Stop,
  type TripOptions,
} from '../saga/trip.ts';
import { Dice } from './dice.ts';
import { SideWorld } from './side-world.ts';
import type { Outcome } from './simulate.ts';

/** Longer than any trip takes, its undoing included. */
const LONG_MS = 600_000;
/** Steps of a trip at which its process can die. */
const STEPS = 90;

const shapeOf = (dice: Dice): Shape => {
  const needs = STOPS.map((stop, place): [Stop, Stop[]] => [
    stop,
    STOPS.slice(0, place).filter(() => dice.chance(0.4)),
  ]);
  return Object.fromEntries(needs) as Record<Stop, Stop[]>;
};

const faultsOf = (dice: Dice): ReadonlyMap<Site, Fault> =>
  new Map(SITES.filter(() => dice.chance(0.2)).map((site): [Site, Fault] => [site, dice.pick(FAULTS)]));

/** A trip, the process that goes on with it, and the one after that. */
class SettleWorld extends SideWorld {
  readonly #dice: Dice;
  readonly #agency = new Agency();
  readonly #store = memoryStore({ runtime: this.runtime });
  told: TurnResult | undefined;
  resumed: readonly ResumedTurn[] = [];
  rest: readonly ResumedTurn[] = [];
  /** The second process died, maybe when it had told of the turn and not forgotten it. */
  #isCut = false;

  constructor(seed: number, log?: (line: string) => void) {
    super(seed, log);
    this.#dice = new Dice(seed, 81);
  }

  async run(): Promise<void> {
    const dice = this.#dice;
    const life = new Mortal(dice.chance(0.5) ? dice.int(0, STEPS) : Infinity);
    const abort = new AbortController();
    if (dice.chance(0.25)) this.runtime.after(dice.int(0, 40) * 100).subscribe(() => abort.abort());
    const trip = this.#process(life, {
      shape: shapeOf(dice),
      faults: faultsOf(dice),
      endsBadly: dice.chance(0.6),
      timeoutMs: dice.chance(0.3) ? dice.int(1, 30) * 200 : 300_000,
      onDeadline: dice.chance(0.5) ? 'detach' : 'abort',
    });
    trip.layer.turn(trip.plan, { signal: abort.signal }).subscribe((event) => {
      // What a dead process says nobody hears.
      if (life.isAlive() && event.source === 'turn' && event.type === 'settled') this.told = event.result;
    });
    await this.runtime.advance(LONG_MS);
    if (!life.isAlive()) this.findings.saw('a process dies in its turn');
    const second = new Mortal(dice.chance(0.3) ? dice.int(0, STEPS / 2) : Infinity);
    const next = await this.#resumedBy(second);
    if (next === undefined) this.findings.saw('a process dies while it undoes');
    this.#isCut = !second.isAlive();
    this.resumed = next ?? (await this.#resumedBy(new Mortal())) ?? [];
    this.rest = (await this.#resumedBy(new Mortal())) ?? [];
  }

  #process(life: Life, options: TripOptions = {}): TripProcess {
    const made = new TripProcess(this.runtime, this.#store, this.#agency, { ...options, life });
    made.layer.trace$.subscribe((event) => {
      if (life.isAlive()) this.#hears(event);
    });
    return made;
  }

  /** What a process finds left; nothing where it dies before it can say. */
  async #resumedBy(life: Mortal): Promise<readonly ResumedTurn[] | undefined> {
    const resuming = this.#process(life).layer.resume();
    let found: readonly ResumedTurn[] | undefined;
    void resuming.then((turns) => (found = life.isAlive() ? turns : undefined));
    await this.runtime.advance(LONG_MS + 2 * LEASE_MS);
    return found;
  }

  #hears(event: TraceEvent): void {
    this.heard(event);
    if (event.type === 'verified' || event.type === 'node_verified') {
      const { finding } = event;
      if (finding === 'done') this.findings.saw('an effect is found');
      else if (finding === 'not_done') this.findings.saw('it is found that there is no effect');
      else this.findings.saw('it cannot be found out');
    }
    if (event.type === 'deadline') this.findings.saw('the deadline passes');
    if (event.type === 'compensation_started' && event.reason === 'canceled') this.findings.saw('a turn is canceled');
    if (event.type === 'node_compensated')
      this.findings.saw(event.state === 'compensated' ? 'a turn is undone' : 'something stays');
  }

  review(): void {
    const { told, resumed, rest } = this;
    const agency = this.#agency;
    this.check(agency.doubled === 0, 'SET-1', () => `${agency.doubled} were booked twice`);
    for (const stop of STOPS) this.#reviewStop(stop);
    const wasCompleted = told?.status === 'completed';
    if (wasCompleted) this.findings.saw('a turn completes');
    this.check(
      !wasCompleted || resumed.every(({ outcome }) => outcome === 'completed'),
      'SET-4',
      () => 'a turn that had completed was undone',
    );
    // One that dies once it has told is told of once more, in the same words.
    const isTwice = this.#isCut && JSON.stringify(rest) === JSON.stringify(resumed);
    this.check(rest.length === 0 || isTwice, 'SET-4', () => 'something was left for a third process');
    const isAnywhere = STOPS.some((stop) => agency.booked(stop) > 0);
    this.check(
      told !== undefined || resumed.length > 0 || !isAnywhere,
      'SET-5',
      () => 'something is booked, and nobody has told how the turn ended',
    );
    if (told === undefined && resumed.length > 0) this.findings.saw('an end is told by another process');
  }

  #reviewStop(stop: Stop): void {
    const { told, resumed } = this;
    const count = this.#agency.booked(stop);
    const [turn] = resumed;
    const left = turn?.compensation?.stays.some(({ id }) => id === stop) === true;
    const state = told?.nodes.find(({ id }) => id === stop)?.state;
    const stays = left || state === 'compensation_failed';
    // A process that has told its end, and died before the store heard of that, is told of once more.
    const isDone = state === 'succeeded' || (told === undefined && turn?.done?.includes(stop) === true);
    if (isDone) this.check(count === 1, 'SET-2', () => `${stop} is told as done, and is there ${count} times`);
    else if (!stays) {
      const isUndone = state === 'compensated' || turn?.compensation?.compensated.includes(stop) === true;
      this.check(count === 0, isUndone || state !== undefined ? 'SET-2' : 'SET-3', () => `${stop} is there, untold`);
    }
  }
}

/**
 * One run of a trip that undoes what it did. What must be true is worked out from the agency's books and from what was
 * told alone.
 */
export async function simulateSettle(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new SettleWorld(seed, log);
  await world.run();
  world.review();
  return world.outcome;
}
