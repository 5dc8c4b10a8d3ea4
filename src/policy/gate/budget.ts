import {
  budgetRecordSchema,
  type Amounts,
  type BudgetHold,
  type BudgetRecord,
  type BudgetUnit,
  type Usage,
} from '../../contract/gate/budget.ts';
import { given } from '../check.ts';

export const UNITS: readonly BudgetUnit[] = ['calls', 'usd', 'tokens'];
/** From this share on a budget warns. */
const WARN_AT = 0.8;
/** Sums of amounts such as 0.1 are off by less. */
export const ROUNDING = 1e-9;

export type Limits = Readonly<Partial<Record<BudgetUnit, number>>>;

/** What one unit of a budget has come to. */
export interface Shortage {
  readonly unit: BudgetUnit;
  readonly limit: number;
  readonly left: number;
}

export const NOTHING: Amounts = { calls: 0, usd: 0, tokens: 0 };

const each = (amountOf: (unit: BudgetUnit) => number): Amounts => ({
  calls: amountOf('calls'),
  usd: amountOf('usd'),
  tokens: amountOf('tokens'),
});
/** What is beyond all numbers cannot be written down. */
const sum = (a: Amounts, b: Amounts): Amounts => each((unit) => Math.min(Number.MAX_VALUE, a[unit] + b[unit]));
/** The greater of each amount. */
export const most = (a: Amounts, b: Amounts): Amounts => each((unit) => Math.max(a[unit], b[unit]));
const total = (holds: readonly BudgetHold[]): Amounts => holds.reduce((all, { amounts }) => sum(all, amounts), NOTHING);

/** A budget in a record's text; `undefined` in one that cannot be read. */
export const budgetIn = (payload: string): BudgetRecord | undefined => {
  try {
    return budgetRecordSchema.parse(JSON.parse(payload));
  } catch {
    return undefined;
  }
};

export const newBudget = (atMs: number): BudgetRecord => ({
  version: 1,
  sinceMs: atMs,
  used: NOTHING,
  holds: [],
  warned: [],
});

/**
 * What was reserved by attempts that nobody has ended in time counts as used: they may have run, and their process may
 * have died.
 */
const swept = (budget: BudgetRecord, atMs: number): BudgetRecord => {
  const lapsed = budget.holds.filter(({ untilMs }) => untilMs <= atMs);
  if (lapsed.length === 0) return budget;
  const holds = budget.holds.filter(({ untilMs }) => untilMs > atMs);
  return { ...budget, used: sum(budget.used, total(lapsed)), holds };
};

/** What is left of each unit that has a limit, what is reserved taken off. */
export const leftOf = (budget: BudgetRecord, limits: Limits): readonly Shortage[] => {
  const taken = sum(budget.used, total(budget.holds));
  return UNITS.flatMap((unit) => {
    const limit = limits[unit];
    return limit === undefined ? [] : [{ unit, limit, left: Math.max(0, limit - taken[unit]) }];
  });
};

/** A budget, and of which units it is told now that 80 % are used. */
export interface Counted {
  readonly budget: BudgetRecord;
  readonly warned: readonly Shortage[];
}

const counted = (budget: BudgetRecord, limits: Limits): Counted => {
  const warned = leftOf(budget, limits).filter(
    ({ unit, limit, left }) => !budget.warned.includes(unit) && left <= limit * (1 - WARN_AT) + ROUNDING,
  );
  if (warned.length === 0) return { budget, warned };
  return { budget: { ...budget, warned: [...budget.warned, ...warned.map(({ unit }) => unit)] }, warned };
};

/** What an attempt is taken to use. */
export interface Need {
  readonly id: string;
  /** A retry is no further call. */
  readonly isFirst: boolean;
  /** What its tool declares, in US dollars; 0 where it declares nothing. So much has to be left. */
  readonly cost: number;
  /** The most that one attempt at its tool was seen to use: as much of it is reserved as is left. */
  readonly expected: Amounts;
}

const needed = ({ isFirst, cost, expected }: Need, left: Amounts): Amounts => ({
  calls: isFirst ? 1 : 0,
  usd: Math.max(cost, Math.min(expected.usd, left.usd)),
  tokens: Math.min(expected.tokens, left.tokens),
});

/** Reserves what an attempt needs, or says what there is too little of. */
export const reserve = (
  before: BudgetRecord,
  limits: Limits,
  need: Need,
  atMs: number,
  leaseMs: number,
): (Counted & { readonly hold: BudgetHold }) | { readonly short: Shortage; readonly budget: BudgetRecord } => {
  const budget = swept(before, atMs);
  const all = leftOf(budget, limits);
  const amounts = needed(
    need,
    each((unit) => all.find((one) => one.unit === unit)?.left ?? Infinity),
  );
  const short = all.find(({ unit, limit, left }) => {
    const rounding = limit * ROUNDING;
    // What is known to use none of it is refused, too, once there is nothing left; a retry needs no further call.
    return unit === 'calls' ? amounts.calls > left : amounts[unit] > left + rounding || left <= rounding;
  });
  if (short !== undefined) return { short, budget };
  const hold = { id: need.id, untilMs: atMs + leaseMs, amounts };
  return { ...counted({ ...budget, holds: [...budget.holds, hold] }, limits), hold };
};

/** How an attempt ended that had reserved something. */
export interface Spent {
  readonly hold: BudgetHold;
  /** When the budget began to count that it was reserved of. */
  readonly sinceMs: number;
  readonly cost: number;
  /** `failed`: it may have used what it has not told. */
  readonly how: 'did_not_run' | 'failed' | 'succeeded';
  /** What it said that it has used. */
  readonly told: Usage;
}

/** What an attempt used, as far as that is known: what it said, else what its tool declares, else what was reserved. */
export const usedBy = ({ hold, how, told, cost }: Spent): Amounts => {
  // What it says that it has used it has, whatever its failure says.
  if (how === 'did_not_run') return { calls: 0, usd: told.usd ?? 0, tokens: told.tokens ?? 0 };
  const rest = (unit: 'usd' | 'tokens'): number => (how === 'failed' ? hold.amounts[unit] : 0);
  return {
    calls: hold.amounts.calls,
    usd: told.usd ?? Math.max(cost, rest('usd')),
    tokens: told.tokens ?? rest('tokens'),
  };
};

/**
 * Puts what an attempt used in the place of what it had reserved.
 * @param isAgain the store was told before, and may have heard it: then nothing stands reserved any more
 */
export const spend = (before: BudgetRecord, limits: Limits, spent: Spent, atMs: number, isAgain = false): Counted => {
  const budget = swept(before, atMs);
  const { hold } = spent;
  const used = usedBy(spent);
  const isHeld = budget.holds.some(({ id }) => id === hold.id);
  if (isAgain && !isHeld) return counted(budget, limits);
  // What has lapsed was counted as it was reserved; a budget that began anew knows nothing of it.
  const isCounted = !isHeld && budget.sinceMs === spent.sinceMs;
  const more = isCounted ? each((unit) => used[unit] - hold.amounts[unit]) : used;
  return counted(
    {
      ...budget,
      used: each((unit) => Math.min(Number.MAX_VALUE, Math.max(0, budget.used[unit] + more[unit]))),
      holds: budget.holds.filter(({ id }) => id !== hold.id),
    },
    limits,
  );
};

/** Adds what something other than a tool used: a model. */
export const charge = (before: BudgetRecord, limits: Limits, usage: Usage, atMs: number): Counted => {
  const budget = swept(before, atMs);
  const used = sum(budget.used, { calls: 0, usd: usage.usd ?? 0, tokens: usage.tokens ?? 0 });
  return counted({ ...budget, used }, limits);
};

const isAmount = (value: unknown): boolean =>
  value === undefined || (typeof value === 'number' && value >= 0 && Number.isFinite(value));

/** What a tool or a model says that it has used; what is no amount counts for nothing. */
export const readUsage = (usage: unknown): Usage => {
  if (typeof usage !== 'object' || usage === null) return {};
  try {
    const { usd, tokens } = usage as Usage;
    return given({ usd: isAmount(usd) ? usd : undefined, tokens: isAmount(tokens) ? tokens : undefined });
  } catch {
    return {};
  }
};
