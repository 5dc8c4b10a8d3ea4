import type { BudgetPer, BudgetUnit } from '../contract/gate/budget.ts';
import { checkKeys, checkNumber, checkOneOf, integer, number, positiveDuration } from '../policy/check.ts';
import { UNITS } from '../policy/gate/budget.ts';

/** How much may be used, of each unit that is named, and by whom. */
export interface BudgetLimits {
  /** Calls that run their tool; a replay is none, and a retry is no further one. Default: no limit. */
  readonly calls?: number;
  /** US dollars: what tools tell by `context.usage`, else the `cost` of their policy. Default: no limit. */
  readonly usd?: number;
  /** Tokens: what tools and models tell. Default: no limit. */
  readonly tokens?: number;
  /** Who has such a budget: each turn, each session of a tenant, or each tenant. */
  readonly per: BudgetPer;
  /**
   * From the first use on a budget counts for so many milliseconds; then it is full again. Default 86,400,000: a day.
   */
  readonly windowMs?: number;
  /**
   * How long an attempt that tells nothing of its end is taken to run, in milliseconds; then what it had reserved
   * counts as used. So a process that dies reserves nothing for ever. Default 120,000.
   */
  readonly leaseMs?: number;
  /** Tells budgets of one kind apart that share a store, up to 256 characters. Default: none. */
  readonly name?: string;
}

/** Limits with every part decided. */
export interface ReadLimits extends BudgetLimits {
  readonly limits: Readonly<Partial<Record<BudgetUnit, number>>>;
  readonly windowMs: number;
  readonly leaseMs: number;
  readonly name: string;
}

const DAY_MS = 86_400_000;
const LEASE_MS = 120_000;
const NAME_MAX = 256;
const KEYS = [...UNITS, 'per', 'windowMs', 'leaseMs', 'name'];

/** @throws RangeError for a part that is out of its range, and for a budget that limits nothing */
export const readLimits = (budget: BudgetLimits): ReadLimits => {
  if (typeof budget !== 'object' || budget === null)
    throw new RangeError(`a budget must be { calls?, usd?, tokens?, per }, not ${typeof budget}`);
  checkKeys('a budget', budget, KEYS);
  const { calls, usd, tokens, per, windowMs = DAY_MS, leaseMs = LEASE_MS, name = '' } = budget;
  checkOneOf('per of a budget', per, ['turn', 'session', 'tenant']);
  if (calls !== undefined) checkNumber('calls of a budget', calls, integer(0, Number.MAX_SAFE_INTEGER));
  if (usd !== undefined) checkNumber('usd of a budget', usd, number(0, Number.MAX_VALUE));
  if (tokens !== undefined) checkNumber('tokens of a budget', tokens, number(0, Number.MAX_VALUE));
  checkNumber('windowMs of a budget', windowMs, positiveDuration);
  checkNumber('leaseMs of a budget', leaseMs, positiveDuration);
  if (typeof name !== 'string' || name.length > NAME_MAX)
    throw new RangeError(`name of a budget must be a text of at most ${NAME_MAX} characters`);
  const named = { calls, usd, tokens };
  const limits = Object.fromEntries(Object.entries(named).filter(([, limit]) => limit !== undefined));
  if (Object.keys(limits).length === 0)
    throw new RangeError('a budget must limit calls, usd or tokens; give one of them');
  return { ...budget, limits, windowMs, leaseMs, name };
};
