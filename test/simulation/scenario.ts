import { breakerSettings, type BreakerSettings } from '../../src/policy/breaker/settings.ts';
import type {
  BreakerOptions,
  Effects,
  RetryBudgetOptions,
  RetryPolicy,
  ToolPolicy,
} from '../../src/contract/policy.ts';
import { Dice } from './dice.ts';
import { drawFaults, fires, type Faults } from './faults.ts';

/**
 * Everything of one run that is drawn beforehand; the fate of each attempt is drawn when it starts, from its call's own
 * stream.
 */
export interface Scenario {
  readonly seed: number;
  readonly faults: Faults;
  readonly tools: readonly ToolSpec[];
  readonly retryBudget: Required<RetryBudgetOptions> | false;
  readonly operations: readonly Operation[];
  /** A watcher of each breaker's state, whose timer makes it change at its instant. */
  readonly watchBreakers: boolean;
}

export interface ToolSpec {
  readonly index: number;
  readonly name: string;
  readonly dependency?: string;
  readonly timeoutMs: number;
  readonly idleTimeoutMs?: number;
  readonly retry: RetryPolicy;
  readonly breaker: BreakerOptions | undefined;
  readonly settings: BreakerSettings | undefined;
  readonly alternatives: readonly string[];
  readonly effects: Effects;
  readonly enforcesKey: boolean;
  readonly safetyCritical: boolean;
  /** From when to when everything fails. */
  readonly outage?: readonly [number, number];
}

/** How a subscriber goes: of itself, at a time, in the middle of an event, or by its signal. */
export type Ending =
  | { readonly how: 'stay' }
  | { readonly how: 'unsubscribe' | 'abort'; readonly afterMs: number }
  | { readonly how: 'in_next'; readonly event: number };

export interface CallOperation {
  readonly kind: 'call';
  /** The call's number: its stream of chance, and what its input and output carry. */
  readonly n: number;
  readonly atMs: number;
  readonly tool: number;
  readonly promise: boolean;
  readonly ending: Ending;
  readonly tenant?: string;
  /** With these it is a whole envelope. */
  readonly envelope?: {
    readonly deadlineInMs?: number;
    readonly maxAttempts: number;
    readonly maxElapsedMs: number;
    readonly timeoutMs?: number;
    readonly retrySafe?: boolean;
    readonly safetyCritical?: boolean;
    readonly breakerHint?: 'tool' | 'dependency' | 'global';
  };
}

export interface NodeSpec {
  readonly id: string;
  readonly n: number;
  readonly tool: number;
  readonly needs: readonly string[];
  readonly optional: boolean;
  readonly hasDefault: boolean;
  readonly computesInput: boolean;
}

export interface TurnOperation {
  readonly kind: 'turn';
  readonly n: number;
  readonly atMs: number;
  readonly nodes: readonly NodeSpec[];
  readonly timeoutMs: number;
  readonly onDeadline: 'detach' | 'abort';
  readonly concurrency: number;
  readonly ending: Ending;
}

export type Operation =
  | CallOperation
  | TurnOperation
  | { readonly kind: 'stall' | 'wall_jump'; readonly atMs: number; readonly ms: number }
  | AdminOperation
  | { readonly kind: 'close'; readonly atMs: number };

export interface AdminOperation {
  readonly kind: 'admin';
  readonly atMs: number;
  readonly tool: number;
  readonly verb: 'forceOpen' | 'reset' | 'disable';
}

/** The span in which things begin. */
const SPAN_MS = 400;
const HOUR_MS = 3_600_000;

const drawBreaker = (dice: Dice): BreakerOptions => {
  const windowSize = dice.int(2, 8);
  return {
    failureThreshold: dice.pick([1, 1, 2, 3, Infinity]),
    failureRate: dice.pick([0.5, 0.75, 1, Infinity]),
    windowSize,
    windowMs: dice.pick([60, 200, 1_000]),
    minimumCalls: dice.int(1, windowSize),
    cooldownMs: dice.pick([0, 10, 20, 40, 100]),
    cooldownMultiplier: dice.pick([1, 1, 2]),
    probes: dice.pick([1, 1, 2, 3]),
    successThreshold: dice.int(1, 3),
    halfOpenTimeoutMs: dice.pick([30, 100, 1_000]),
    ...(dice.chance(0.2) ? { rampMs: 60 } : {}),
    ...(dice.chance(0.2) ? { slowCallMs: 25 } : {}),
    ...(dice.chance(0.05) ? { initialState: dice.pick(['forced_open', 'disabled']) } : {}),
  };
};

const drawRetry = (dice: Dice): RetryPolicy => ({
  strategy: dice.pick(['exponential', 'full_jitter', 'decorrelated', 'constant']),
  initialDelayMs: dice.pick([0, 5, 10, 20, 50]),
  maxDelayMs: dice.pick([50, 80]),
  multiplier: dice.pick([1, 2, 3]),
  jitterPercent: dice.pick([0, 0, 10, 50]),
  maxAttempts: dice.int(1, 4),
  maxTotalTimeMs: dice.pick([40, 100, 300, 1_000]),
});

const drawTool = (dice: Dice, index: number, count: number, shared: BreakerOptions, faults: Faults): ToolSpec => {
  const inDependency = dice.chance(0.3);
  const breaker = dice.chance(0.1) ? undefined : inDependency ? shared : drawBreaker(dice);
  const from = dice.int(0, 30) * 10;
  return {
    index,
    name: `t${index}`,
    timeoutMs: dice.pick([20, 40, 60, 150, 300]),
    ...(dice.chance(0.15) ? { idleTimeoutMs: dice.pick([15, 30]) } : {}),
    ...(inDependency ? { dependency: 'dep' } : {}),
    retry: drawRetry(dice),
    breaker,
    settings: breaker === undefined ? undefined : breakerSettings(breaker),
    // Only later ones, so that no two tools stand in for each other.
    alternatives: Array.from({ length: count }, (_, other) => other).flatMap((other) =>
      other > index && dice.chance(0.3) ? [`t${other}`] : [],
    ),
    effects: dice.chance(0.3) ? 'mutating' : 'read',
    enforcesKey: dice.chance(0.1),
    safetyCritical: dice.chance(0.1),
    ...(fires(faults, 'outage', dice) ? { outage: [from, from + dice.int(2, 20) * 10] as const } : {}),
  };
};

const drawEnding = (dice: Dice, faults: Faults): Ending => {
  if (fires(faults, 'unsubscribe_in_next', dice)) return { how: 'in_next', event: dice.int(1, 8) };
  if (fires(faults, 'unsubscribe', dice)) return { how: 'unsubscribe', afterMs: dice.int(0, 20) * 5 };
  return fires(faults, 'abort', dice) ? { how: 'abort', afterMs: dice.int(0, 20) * 5 } : { how: 'stay' };
};

const drawCall = (dice: Dice, n: number, atMs: number, tools: number, faults: Faults): CallOperation => {
  const withEnvelope = dice.chance(0.3);
  const ending = drawEnding(dice, faults);
  return {
    kind: 'call',
    n,
    atMs,
    tool: dice.int(0, tools - 1),
    promise: dice.chance(0.2) && ending.how !== 'in_next' && ending.how !== 'unsubscribe',
    ending,
    ...(dice.chance(0.1) ? { tenant: 'a' } : {}),
    ...(withEnvelope
      ? {
          envelope: {
            maxAttempts: dice.int(1, 4),
            maxElapsedMs: dice.pick([30, 100, 500]),
            ...(dice.chance(0.6) ? { deadlineInMs: dice.int(-1, 20) * 5 } : {}),
            ...(dice.chance(0.3) ? { timeoutMs: dice.pick([10, 30, 500]) } : {}),
            ...(dice.chance(0.2) ? { retrySafe: true } : {}),
            ...(dice.chance(0.1) ? { safetyCritical: true } : {}),
            ...(dice.chance(0.4) ? { breakerHint: dice.pick(['tool', 'dependency', 'global']) } : {}),
          },
        }
      : {}),
  };
};

const drawTurn = (dice: Dice, n: number, atMs: number, tools: number, faults: Faults): TurnOperation => {
  const count = dice.chance(0.03) ? 0 : dice.int(1, 5);
  const density = dice.pick([0, 0.3, 0.8]);
  const nodes = Array.from({ length: count }, (_, index): NodeSpec => ({
    id: `n${index}`,
    n: n + index,
    tool: dice.int(0, tools - 1),
    needs: Array.from({ length: index }, (_, other) => `n${other}`).filter(() => dice.chance(density)),
    optional: dice.chance(0.3),
    hasDefault: dice.chance(0.25),
    computesInput: dice.chance(0.3),
  }));
  return {
    kind: 'turn',
    n,
    atMs,
    // A plan may name its nodes in any order.
    nodes: dice.chance(0.3) ? nodes.toReversed() : nodes,
    timeoutMs: dice.pick([20, 40, 60, 100, 200, 600]),
    onDeadline: dice.pick(['detach', 'abort']),
    concurrency: dice.pick([1, 2, Infinity, Infinity]),
    ending: drawEnding(dice, faults),
  };
};

/** Room for the nodes of a turn between the numbers of two operations. */
const NUMBERS_PER_OPERATION = 10;

export function drawScenario(seed: number): Scenario {
  const dice = new Dice(seed, 0);
  const faults = drawFaults(dice);
  const shared = drawBreaker(dice);
  const count = dice.int(1, 3);
  const tools = Array.from({ length: count }, (_, index) => drawTool(dice, index, count, shared, faults));
  // Some seeds are crowded: what needs many attempts at once is rare otherwise.
  const busy = dice.int(3, dice.chance(0.3) ? 14 : 7);
  const turns = dice.pick([0, 0.3, 0.6]);
  const operations = Array.from({ length: busy }, (_, index): Operation => {
    const [n, atMs] = [(index + 1) * NUMBERS_PER_OPERATION, dice.int(0, SPAN_MS / 5) * 5];
    return dice.chance(turns) ? drawTurn(dice, n, atMs, count, faults) : drawCall(dice, n, atMs, count, faults);
  });
  const at = (): number => dice.int(0, SPAN_MS / 5) * 5;
  for (let i = 0; i < 2; i++) {
    if (fires(faults, 'stall', dice))
      operations.push({ kind: 'stall', atMs: at(), ms: dice.pick([10, 50, 300, 5_000]) });
    if (fires(faults, 'wall_jump', dice))
      operations.push({ kind: 'wall_jump', atMs: at(), ms: dice.pick([-HOUR_MS, HOUR_MS]) });
    if (fires(faults, 'admin', dice))
      operations.push({
        kind: 'admin',
        atMs: at(),
        tool: dice.int(0, count - 1),
        verb: dice.pick(['forceOpen', 'reset', 'disable']),
      });
  }
  if (fires(faults, 'close', dice) && dice.chance(0.5)) operations.push({ kind: 'close', atMs: at() });
  const windowMs = dice.pick([100, 1_000]);
  return {
    seed,
    faults,
    tools,
    retryBudget: dice.chance(0.4)
      ? { ratio: dice.pick([0, 0.2, 1]), minPerSecond: dice.pick([0, 1, 10]), windowMs }
      : false,
    operations,
    watchBreakers: dice.chance(0.5),
  };
}

/** A tool's policy, as its author would write it. */
export const policyOf = ({
  timeoutMs,
  idleTimeoutMs,
  retry,
  breaker,
  alternatives,
  effects,
  enforcesKey,
  safetyCritical,
}: ToolSpec): ToolPolicy => ({
  timeoutMs,
  ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
  retry,
  breaker: breaker ?? false,
  alternatives,
  effects,
  enforcesKey,
  safetyCritical,
});
