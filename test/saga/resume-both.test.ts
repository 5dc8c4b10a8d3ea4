import type { ResumedTurn } from 'spillway/operate';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { Agency, LEASE_MS, Mortal, STOPS, TripProcess, type Fault, type Site } from './trip.ts';

const LONG_MS = 600_000;

/** Says how often each booking was canceled: a refund that is paid twice is as bad as a booking. */
class Ledger extends Agency {
  readonly canceled: Map<string, number> = new Map<string, number>();

  override cancel(key: string): void {
    this.canceled.set(key, (this.canceled.get(key) ?? 0) + 1);
    super.cancel(key);
  }
}

interface Ending {
  readonly problems: readonly string[];
  readonly steps: readonly string[];
}

/** What is wrong once everything that was told was heard. */
const problemsOf = (ledger: Ledger, told: readonly ResumedTurn[]): readonly string[] => {
  const stays = new Set(told.flatMap(({ compensation }) => compensation?.stays.map(({ id }) => id) ?? []));
  return [
    ...STOPS.filter((stop) => ledger.booked(stop) > 0 && !stays.has(stop)).map((stop) => `${stop} stays, untold`),
    ...[...ledger.canceled].filter(([, times]) => times > 1).map(([key]) => `${key} was canceled twice`),
    ...(ledger.doubled > 0 ? ['one was booked twice'] : []),
  ];
};

/** A first process dies, two others resume at once, of which one dies as well, and a last one finds what is left. */
const ending = async (
  first: number,
  second: number,
  behindMs: number,
  faults: ReadonlyMap<Site, Fault>,
): Promise<Ending> => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const ledger = new Ledger();
  const told: ResumedTurn[] = [];
  const resumes = (life: Mortal): void =>
    void new TripProcess(runtime, store, ledger, { life }).layer.resume().then((turns) => {
      // What a dead process says nobody hears.
      if (life.isAlive()) told.push(...turns);
    });
  const dead = new TripProcess(runtime, store, ledger, { life: new Mortal(first), faults });
  dead.layer.turn(dead.plan).subscribe();
  await runtime.advance(2 * LEASE_MS);
  const life = new Mortal(second);
  resumes(life);
  await runtime.advance(behindMs);
  resumes(new Mortal());
  await runtime.advance(LONG_MS);
  resumes(new Mortal());
  await runtime.advance(LONG_MS);
  return { problems: problemsOf(ledger, told), steps: life.steps };
};

const cases: ReadonlyArray<readonly [string, number, number, ReadonlyMap<Site, Fault>]> = [
  ['at the same moment', 46, 0, new Map()],
  ['a lease apart, in the middle of the undoing', 58, LEASE_MS, new Map()],
  ['and one booking has lost its answer', 33, 3, new Map([['book hotel', 'acts_and_hangs']])],
];

describe('two processes that resume at once', () => {
  it.each(cases)(
    'R-18.6 %s undo each booking once, wherever one of them dies',
    { timeout: 300_000 },
    async (_, first, behindMs, faults) => {
      const { steps, problems: whole } = await ending(first, Infinity, behindMs, faults);
      const problems = [...whole];
      expect(steps.length).toBeGreaterThan(60);
      for (const [second, step] of steps.entries()) {
        const found = (await ending(first, second, behindMs, faults)).problems;
        problems.push(...found.map((problem) => `died at ${second}, ${step}: ${problem}`));
      }
      expect(problems).toEqual([]);
    },
  );
});
