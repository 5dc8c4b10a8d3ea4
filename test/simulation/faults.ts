import type { Dice } from './dice.ts';

/** Where things go wrong. Each point is on in a quarter of the runs: all of them always on would hide what needs one of them alone. */
export const FAULT_POINTS = [
  'transient', 'permanent', 'retry_after', 'outage', 'hang', 'slow', 'throw', 'sync', 'ignore_signal', 'silence', 'stall', 'wall_jump',
  'unsubscribe', 'unsubscribe_in_next', 'abort', 'close', 'admin', 'slow_handler', 'bad_subscriber',
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

const ON = 0.25;
/** How often a point fires where it is on: mostly as seldom, sometimes as good as always. */
const RATES = [0.25, 0.25, 0.25, 0.5, 0.9] as const;

/** The rate of each point that is on in this run. */
export type Faults = Readonly<Partial<Record<FaultPoint, number>>>;

export const drawFaults = (dice: Dice): Faults => {
  const faults: Partial<Record<FaultPoint, number>> = {};
  for (const point of FAULT_POINTS) {
    const rate = dice.pick(RATES);
    if (dice.chance(point === 'transient' ? 0.5 : ON)) faults[point] = rate;
  }
  return faults;
};

export const fires = (faults: Faults, point: FaultPoint, dice: Dice): boolean => {
  const rate = faults[point];
  return rate !== undefined && dice.chance(rate);
};
