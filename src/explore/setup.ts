import type { AnyTool } from '../contract/tool.ts';
import { checkKeys, checkNumber, checkOneOf, duration, integer } from '../policy/check.ts';
import type { SpillwayOptions } from '../options.ts';
import type { Plan } from '../contract/turn.ts';
import { FAULTS, checkSchedule, type Fault, type Schedule } from './schedule.ts';
import type { World } from './world.ts';

/** The tools of a plan, made for one world; called anew for each process of each schedule. */
export type ExploredTools = (world: World) => readonly AnyTool[];

/** Parts of a layer that decide beside its tools, as the program that is explored has them. */
export type ExploredLayer = Pick<
  SpillwayOptions,
  'profile' | 'defaults' | 'breakerKey' | 'retryBudget' | 'hooks' | 'errorHandler' | 'mode'
>;

/** How faults are explored. Units are milliseconds. */
export interface ExploreOptions {
  /** What can strike an attempt. Default: all of `FAULTS`. */
  readonly faults?: readonly Fault[];
  /** How many faults strike in one run at most: 1 or 2. Default 2. */
  readonly depth?: 1 | 2;
  /**
   * Whether faults strike questions to the store, too: the process dies before or after one, it breaks off, hangs, or
   * loses its answer. Default false: it is many more schedules.
   */
  readonly storeFaults?: boolean;
  /**
   * What follows when the process has died. `resume`: another one calls `resume()`. `again`: and then it runs the plan
   * once more, as a queue does that delivers what was not acknowledged; effects are then kept apart by idempotency keys
   * alone. Default `resume`.
   */
  readonly afterDeath?: 'resume' | 'again';
  /**
   * How long after its caller has gone a request can still act. Default: half of the `settleMs` that the tool's
   * `verify` counts on (500 without one). Give what is true of your servers, and a `settleMs` that is too short is
   * found.
   */
  readonly lateMs?: number;
  /** Chance, such as jitter. Default 1: the same seed and plan give the same bytes. */
  readonly seed?: number;
  /** More schedules than this are refused and not cut off. Default 100,000: about ten minutes. */
  readonly maxSchedules?: number;
  /** How many findings are drawn and written as tests; the others are counted. Default 20. */
  readonly maxFindings?: number;
  /** Exactly these schedules in place of all: what a pasted test gives. Default: all up to `depth`. */
  readonly schedules?: readonly Schedule[];
  /** The other options of the layer that runs the plan in production. Default: those of `createSpillway`. */
  readonly layer?: ExploredLayer;
}

/** What an exploration is made of. */
export interface Setup {
  readonly plan: Plan;
  readonly tools: ExploredTools;
  readonly options: ExploreOptions;
  readonly faults: readonly Fault[];
  readonly depth: number;
  readonly seed: number;
  readonly maxSchedules: number;
  readonly maxFindings: number;
}

const KEYS = [
  'faults',
  'depth',
  'storeFaults',
  'afterDeath',
  'lateMs',
  'seed',
  'maxSchedules',
  'maxFindings',
  'schedules',
  'layer',
];
const LAYER_KEYS = ['profile', 'defaults', 'breakerKey', 'retryBudget', 'hooks', 'errorHandler', 'mode'];
const COUNT_MAX = 10_000_000;

/** @throws RangeError naming the option that cannot be used */
export const setupOf = (plan: Plan, tools: ExploredTools, options: ExploreOptions): Setup => {
  checkKeys('exploreFaults', options, KEYS);
  const { faults = FAULTS, depth = 2, seed = 1, maxSchedules = 100_000, maxFindings = 20 } = options;
  if (typeof tools !== 'function')
    throw new RangeError(
      `tools of exploreFaults must be a function of a world that gives the tools, not ${typeof tools}: ` +
        'each schedule has a world of its own',
    );
  for (const fault of faults) checkOneOf('faults of exploreFaults', fault, FAULTS);
  checkNumber('depth', depth, integer(1, 2));
  checkNumber('seed', seed, integer(0, Number.MAX_SAFE_INTEGER));
  checkNumber('maxSchedules', maxSchedules, integer(1, COUNT_MAX));
  checkNumber('maxFindings', maxFindings, integer(0, COUNT_MAX));
  if (options.lateMs !== undefined) checkNumber('lateMs', options.lateMs, duration);
  if (options.afterDeath !== undefined) checkOneOf('afterDeath', options.afterDeath, ['resume', 'again']);
  if (options.layer !== undefined) checkKeys('layer of exploreFaults', options.layer, LAYER_KEYS);
  options.schedules?.forEach(checkSchedule);
  return { plan, tools, options, faults, depth, seed, maxSchedules, maxFindings };
};
