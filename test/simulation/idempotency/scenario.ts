import type { BreakerOptions, RetryBudgetOptions, ToolPolicy } from '../../../src/contract/policy.ts';
import { Dice } from '../dice.ts';
import { drawRates, fires, type Rates } from '../faults.ts';
import type { ProcessSpec } from './process.ts';

export { fires };

/** Where calls with a key, their processes and their store go wrong. */
const KEY_FAULT_POINTS = [
  'slow_store',
  'lost_request',
  'lost_reply',
  'duplicate',
  'no_notice',
  'store_down',
  'failover',
  'flush',
  'clear',
  'stall',
  'kill',
  'close',
  'drift',
  'wall_jump',
  'transient',
  'permanent',
  'uncertain',
  'hang',
  'slow',
  'ignore_signal',
  'unsubscribe',
  'abort',
  'deadline',
  'short_ttl',
] as const;
export type KeyFaultPoint = (typeof KEY_FAULT_POINTS)[number];
export type KeyFaults = Rates<KeyFaultPoint>;

export interface KeyedTool {
  readonly index: number;
  readonly name: string;
  readonly effects: 'read' | 'mutating';
  readonly scope: 'session' | 'global';
  readonly safetyCritical: boolean;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly backoffMs: number;
  readonly leaseMs: number;
  readonly doneTtlMs: number;
  readonly failedTtlMs: number;
  /** The resource refuses a fence below one that it has seen. */
  readonly checksFence: boolean;
  readonly breaker?: BreakerOptions;
  readonly alternatives?: readonly string[];
}

/** What else stands round the calls of some runs: a breaker, an alternative, needs, a budget. */
export interface Company {
  readonly retryBudget: RetryBudgetOptions | false;
  /** How often a node of a turn needs the one before it. */
  readonly needs: number;
}

export type Leaving = { readonly how: 'stay' } | { readonly how: 'unsubscribe' | 'abort'; readonly afterMs: number };

/** One call under a key. */
export interface KeyedCall {
  readonly n: number;
  readonly tool: number;
  /** The caller's own key; without one it is computed. */
  readonly key: string | undefined;
  /** What is asked: another one under the same key is a conflict. */
  readonly params: string;
  readonly tenant: string | undefined;
  readonly session: string;
  readonly mode: 'enforced' | 'bestEffort';
  readonly deadlineInMs?: number;
  /** In a turn: the calls whose values it needs. */
  readonly needs?: readonly number[];
}

export type KeyOperation = { readonly atMs: number } & (
  | {
      readonly kind: 'call';
      readonly process: number;
      readonly call: KeyedCall;
      readonly promise: boolean;
      readonly leaving: Leaving;
    }
  /** Calls of one turn, side by side; the deadline may detach them. */
  | {
      readonly kind: 'turn';
      readonly process: number;
      readonly calls: readonly KeyedCall[];
      readonly timeoutMs: number;
      readonly onDeadline: 'detach' | 'abort';
      readonly leaving: Leaving;
    }
  | { readonly kind: 'stall' | 'wall_jump'; readonly process: number; readonly ms: number }
  | { readonly kind: 'kill' | 'close'; readonly process: number }
  | { readonly kind: 'down'; readonly ms: number; readonly how: 'refuses' | 'hangs' }
  | { readonly kind: 'failover'; readonly lagMs: number }
  | { readonly kind: 'clear'; readonly all: boolean }
);

export interface KeyScenario {
  readonly seed: number;
  readonly faults: KeyFaults;
  readonly processes: readonly ProcessSpec[];
  readonly tools: readonly KeyedTool[];
  readonly company: Company;
  readonly operations: readonly KeyOperation[];
  /** The records are in this package's memory store, behind the same network; else in the model. */
  readonly inMemory: boolean;
  readonly direct: boolean;
  readonly notifies: boolean;
  readonly storeTimeoutMs: number;
}

/** The span in which things begin. */
const SPAN_MS = 300;
const MINUTES_MS = 600_000;
const FOREVER_MS = 10_000_000;

const drawTool = (dice: Dice, index: number, faults: KeyFaults): KeyedTool => {
  const effects = dice.chance(0.7) ? 'mutating' : 'read';
  const leaseMs = dice.pick([30, 40, 60, 60, 100, 200]);
  const short = fires(faults, 'short_ttl', dice);
  return {
    index,
    name: `t${index}`,
    effects,
    scope: effects === 'read' && dice.chance(0.5) ? 'global' : 'session',
    safetyCritical: dice.chance(0.1),
    timeoutMs: dice.pick([20, 60, 150, 300]),
    maxAttempts: dice.int(1, 3),
    backoffMs: dice.pick([0, 5, 20, 60]),
    leaseMs,
    doneTtlMs: short ? dice.pick([60, 150]) : FOREVER_MS,
    failedTtlMs: short ? dice.pick([30, 100]) : FOREVER_MS,
    checksFence: dice.chance(0.5),
  };
};

/** Off in most runs; drawn from a stream of its own, so that those stay what they were. */
const ACCOMPANIED = 0.3;

const drawBreaker = (dice: Dice): BreakerOptions => ({
  failureThreshold: dice.int(1, 3),
  windowSize: 4,
  windowMs: 1_000,
  minimumCalls: 2,
  failureRate: dice.pick([0.5, 1]),
  cooldownMs: dice.pick([10, 40, 200]),
  probes: 1,
  successThreshold: 1,
  halfOpenTimeoutMs: 100,
});

/** The same tools with breakers, and the last one standing in for the others. */
const accompanied = (dice: Dice, tools: readonly KeyedTool[], faults: KeyFaults): readonly KeyedTool[] => {
  const more = tools.length > 1 ? tools : [...tools, drawTool(dice, tools.length, faults)];
  return more.map((tool, index) => ({
    ...tool,
    ...(dice.chance(0.6) ? { breaker: drawBreaker(dice) } : {}),
    ...(index < more.length - 1 && dice.chance(0.7)
      ? { alternatives: more.slice(index + 1).map(({ name }) => name) }
      : {}),
  }));
};

const drawCompany = (dice: Dice): Company => ({
  retryBudget: dice.chance(0.5)
    ? { ratio: dice.pick([0, 0.2]), minPerSecond: dice.pick([0, 5]), windowMs: 1_000 }
    : false,
  needs: dice.pick([0, 0.5, 0.9]),
});
const ALONE: Company = { retryBudget: false, needs: 0 };

const drawLeaving = (dice: Dice, faults: KeyFaults): Leaving => {
  if (fires(faults, 'unsubscribe', dice)) return { how: 'unsubscribe', afterMs: dice.int(0, 24) * 5 };
  return fires(faults, 'abort', dice) ? { how: 'abort', afterMs: dice.int(0, 24) * 5 } : { how: 'stay' };
};

/** What the calls of a run have in common: the fewer keys, the more they meet. */
interface Spread {
  readonly tools: number;
  readonly keys: number;
  readonly tenants: boolean;
  readonly sessions: boolean;
  readonly otherParams: number;
  readonly bestEffort: number;
  readonly computed: number;
}

const drawCall = (dice: Dice, n: number, spread: Spread, faults: KeyFaults): KeyedCall => ({
  n,
  tool: dice.int(0, spread.tools - 1),
  key: dice.chance(spread.computed) ? undefined : `k${dice.int(1, spread.keys)}`,
  params: dice.chance(spread.otherParams) ? 'other' : 'usual',
  tenant: spread.tenants ? dice.pick(['ta', 'tb', undefined]) : undefined,
  session: spread.sessions ? dice.pick(['s1', 's2']) : 's1',
  mode: dice.chance(spread.bestEffort) ? 'bestEffort' : 'enforced',
  ...(fires(faults, 'deadline', dice) ? { deadlineInMs: dice.int(1, 30) * 5 } : {}),
});

/** Each node may need the one before it. */
const withNeeds = (dice: Dice, calls: readonly KeyedCall[], { needs }: Company): readonly KeyedCall[] =>
  calls.map((call, index) => {
    const before = calls[index - 1];
    return before !== undefined && needs > 0 && dice.chance(needs) ? { ...call, needs: [before.n] } : call;
  });

/** Room for the calls of a turn between the numbers of two operations. */
const NUMBERS_PER_OPERATION = 10;

export function drawKeyScenario(seed: number): KeyScenario {
  const dice = new Dice(seed, 10);
  const drawn = drawRates(dice, KEY_FAULT_POINTS);
  // In some runs all want the same at the same time, and it takes long: that is where the rarest things happen.
  const contended = dice.chance(0.25);
  const unlucky = dice.chance(0.5);
  const faults: KeyFaults = contended
    ? { ...drawn, slow: 0.9, ...(unlucky ? { stall: 0.5, ignore_signal: 0.5, kill: 0.25 } : {}) }
    : drawn;
  const count = dice.int(1, 3);
  const tools = Array.from({ length: contended ? 1 : dice.int(1, 2) }, (_, index) => drawTool(dice, index, faults));
  const spread: Spread = {
    tools: tools.length,
    keys: contended ? 1 : dice.pick([1, 1, 2, 3]),
    tenants: !contended && dice.chance(0.3),
    sessions: !contended && dice.chance(0.2),
    otherParams: contended ? 0 : dice.pick([0, 0, 0.15, 0.4]),
    bestEffort: contended ? 0 : dice.pick([0, 0, 0.3, 1]),
    computed: dice.pick([0, 0, 0.3]),
  };
  const grid = (ms: number): number => dice.int(0, ms / 5) * 5;
  // Much of what is rare takes several things soon after one another.
  const times: number[] = [];
  const soon = (ms: number): number => {
    const atMs =
      contended || dice.chance(0.5)
        ? (contended ? (times[0] ?? 0) : dice.pick([grid(ms), ...times])) + dice.int(0, 12) * 5
        : grid(ms);
    times.push(atMs);
    return atMs;
  };
  const turns = dice.pick([0, 0, 0.4]);
  const operations = Array.from({ length: dice.int(2, dice.chance(0.3) ? 10 : 6) }, (_, index): KeyOperation => {
    const n = (index + 1) * NUMBERS_PER_OPERATION;
    const [atMs, process, leaving] = [soon(SPAN_MS), dice.int(0, count - 1), drawLeaving(dice, faults)];
    if (!dice.chance(turns))
      return {
        kind: 'call',
        atMs,
        process,
        call: drawCall(dice, n, spread, faults),
        promise: dice.chance(0.2) && leaving.how !== 'unsubscribe',
        leaving,
      };
    const { tenant, session } = drawCall(dice, n, spread, faults);
    // A turn has one tenant and one session; its nodes are enforced, and each has a key.
    const calls = Array.from({ length: dice.int(1, 3) }, (__, node): KeyedCall => {
      const { tool, params } = drawCall(dice, n + node, spread, faults);
      return { n: n + node, tool, params, tenant, session, key: `k${dice.int(1, spread.keys)}`, mode: 'enforced' };
    });
    return {
      kind: 'turn',
      atMs,
      process,
      calls,
      timeoutMs: dice.pick([20, 60, 150, 600]),
      onDeadline: dice.pick(['detach', 'detach', 'abort']),
      leaving,
    };
  });
  for (let i = 0; i < 2; i++) {
    const atMs = (): number => soon(SPAN_MS);
    const process = dice.int(0, count - 1);
    if (fires(faults, 'stall', dice))
      operations.push({ kind: 'stall', atMs: atMs(), process, ms: dice.pick([10, 40, 100, 300]) });
    if (fires(faults, 'wall_jump', dice))
      operations.push({ kind: 'wall_jump', atMs: atMs(), process, ms: dice.pick([-MINUTES_MS, MINUTES_MS]) });
    if (fires(faults, 'store_down', dice))
      operations.push({
        kind: 'down',
        atMs: atMs(),
        ms: dice.pick([20, 60, 150]),
        how: dice.pick(['refuses', 'hangs']),
      });
    if (fires(faults, 'failover', dice))
      operations.push({ kind: 'failover', atMs: atMs(), lagMs: dice.pick([1, 20, 100]) });
    if (fires(faults, 'clear', dice)) operations.push({ kind: 'clear', atMs: atMs(), all: false });
    if (fires(faults, 'flush', dice) && dice.chance(0.4)) operations.push({ kind: 'clear', atMs: atMs(), all: true });
    if (fires(faults, 'kill', dice) && i < count) operations.push({ kind: 'kill', atMs: atMs(), process });
    if (fires(faults, 'close', dice) && dice.chance(0.3)) operations.push({ kind: 'close', atMs: atMs(), process });
  }
  const drifts = fires(faults, 'drift', dice);
  const beside = new Dice(seed, 34);
  const inCompany = beside.chance(ACCOMPANIED);
  const company = inCompany ? drawCompany(beside) : ALONE;
  return {
    seed,
    faults,
    processes: Array.from({ length: count }, (_, index) => ({
      index,
      rate: drifts ? dice.pick([1, 0.985, 1.015]) : 1,
      wallAheadMs: dice.pick([0, 0, -MINUTES_MS, MINUTES_MS]),
    })),
    tools: inCompany ? accompanied(beside, tools, faults) : tools,
    company,
    operations: operations.map((operation) =>
      operation.kind === 'turn' ? { ...operation, calls: withNeeds(beside, operation.calls, company) } : operation,
    ),
    inMemory: dice.chance(0.4),
    direct: count === 1 && dice.chance(0.3),
    notifies: dice.chance(0.7),
    storeTimeoutMs: dice.pick([10, 30, 60, 500]),
  };
}

/** A tool's policy, as its author would write it. */
export const policyOf = ({
  effects,
  scope,
  safetyCritical,
  timeoutMs,
  maxAttempts,
  backoffMs,
  leaseMs,
  doneTtlMs,
  failedTtlMs,
  breaker,
  alternatives,
}: KeyedTool): ToolPolicy => ({
  timeoutMs,
  effects,
  safetyCritical,
  breaker: breaker ?? false,
  ...(alternatives === undefined ? {} : { alternatives }),
  retry: {
    strategy: 'constant',
    initialDelayMs: backoffMs,
    maxDelayMs: Math.max(1, backoffMs),
    jitterPercent: 0,
    maxAttempts,
    maxTotalTimeMs: 1_000,
  },
  // The call's number says whose execution it is, and nothing of what is asked.
  dedupe: { scope, leaseMs, doneTtlMs, failedTtlMs, volatile: ['n'] },
});

/** What makes two calls the same call. */
export const identityOf = ({ scope, name }: KeyedTool, { key, params, tenant, session }: KeyedCall): string =>
  JSON.stringify([tenant, scope === 'session' ? session : undefined, name, key ?? `computed of ${params}`]);
