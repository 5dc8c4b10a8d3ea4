import type { Dice } from './dice.ts';

/**
 * Where things go wrong. Each point is on in a quarter of the runs: all of them always on would hide what needs one of
 * them alone.
 */
export const FAULT_POINTS = [
  'transient',
  'permanent',
  'retry_after',
  'outage',
  'hang',
  'slow',
  'throw',
  'sync',
  'ignore_signal',
  'silence',
  'stall',
  'wall_jump',
  'unsubscribe',
  'unsubscribe_in_next',
  'abort',
  'close',
  'admin',
  'slow_handler',
  'bad_subscriber',
] as const;
export type FaultPoint = (typeof FAULT_POINTS)[number];

const ON = 0.25;
/** How often a point fires where it is on: mostly as seldom, sometimes as good as always. */
const RATES = [0.25, 0.25, 0.25, 0.5, 0.9] as const;

/** The rate of each point that is on in this run. */
export type Rates<Point extends string> = Readonly<Partial<Record<Point, number>>>;
export type Faults = Rates<FaultPoint>;

/** @param usual one that is on in half of the runs */
export function drawRates<Point extends string>(dice: Dice, points: readonly Point[], usual?: Point): Rates<Point> {
  const rates: Partial<Record<Point, number>> = {};
  for (const point of points) {
    const rate = dice.pick(RATES);
    if (dice.chance(point === usual ? 0.5 : ON)) rates[point] = rate;
  }
  return rates;
}

export const drawFaults = (dice: Dice): Faults => drawRates(dice, FAULT_POINTS, 'transient');

export const fires = <Point extends string>(faults: Rates<Point>, point: Point, dice: Dice): boolean => {
  const rate = faults[point];
  return rate !== undefined && dice.chance(rate);
};
