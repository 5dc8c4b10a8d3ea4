import { concatMap, defer, finalize, firstValueFrom, forkJoin, from, last, map, tap, type Observable } from 'rxjs';
import type { BudgetPer, BudgetUnit, Usage } from '../contract/gate/budget.ts';
import { Allowance, type BudgetScope } from './allowance.ts';
import { readLimits, type BudgetLimits } from './limits.ts';
import { gatesOf, type Keeper } from './passing.ts';
import type { GateKeeper, GateSubject, Reservation } from '../layer/gate-port.ts';

export type { BudgetScope } from './allowance.ts';
export type { BudgetLimits } from './limits.ts';

/** What is left of a budget. */
export interface BudgetLeft {
  /** Whose budget it is. */
  readonly per: BudgetPer;
  /** What it counts. */
  readonly unit: BudgetUnit;
  /** How much there is. */
  readonly limit: number;
  /** How much is left, what running attempts have reserved taken off; 0 where more was used. */
  readonly left: number;
}

/** What the calls of a layer may use. Make it with `createBudget`. */
export interface Budget extends GateKeeper {
  /**
   * Adds what was used outside of tools, such as by a model; it is never refused. Rejects with `store_unavailable`.
   */
  charge(usage: Usage, scope?: BudgetScope): Promise<void>;
  /** What is left of each budget and unit. Rejects with `store_unavailable`. */
  left(scope?: BudgetScope): Promise<readonly BudgetLeft[]>;
}

const ended = (all: readonly Reservation[], how: Parameters<Reservation['ended']>[0]): void => {
  for (const reservation of all) reservation.ended(how);
};

/** Of every budget or of none: what one refuses costs nothing of the others. */
const reservedOf = (
  allowances: readonly Allowance[],
  subject: GateSubject,
  isFirst: boolean,
): Observable<Reservation> =>
  defer(() => {
    const held: Reservation[] = [];
    let isGiven = false;
    const all: Reservation = {
      // Each is told the same.
      get told() {
        return held[0]?.told;
      },
      report: (usage) => {
        for (const reservation of held) reservation.report(usage);
      },
      ended: (how) => ended(held, how),
    };
    return from(allowances).pipe(
      concatMap((allowance) => allowance.reserved(subject, isFirst)),
      tap((reservation) => held.push(reservation)),
      last(),
      map(() => {
        isGiven = true;
        return all;
      }),
      // Refused by one of them, or left while the store was asked.
      finalize(() => {
        if (!isGiven) ended(held, 'did_not_run');
      }),
    );
  });

const notJoined = (): never => {
  throw new RangeError('a budget has no store yet: give it to createSpillway({ budget }) first');
};

/**
 * Limits what the calls of a layer use, per turn, session or tenant, over all processes of its store. An attempt
 * reserves before it runs and is settled after: what its tool told by `context.usage`, else the `cost` of its policy.
 * One for which too little is left is refused, `limit_exceeded`, and names what is left. At 80 % the trace says so.
 *
 * @param limits one budget, or several that all have to have something left
 * @throws RangeError for a part that is out of its range
 *
 * @example
 * const budget = createBudget([{ usd: 0.5, per: 'turn' }, { usd: 20, tokens: 2_000_000, per: 'tenant' }]);
 * const spillway = createSpillway({ tools, budget, store });
 */
export function createBudget(limits: BudgetLimits | readonly BudgetLimits[]): Budget {
  const all = (Array.isArray(limits) ? (limits as readonly BudgetLimits[]) : [limits as BudgetLimits]).map(readLimits);
  if (all.length === 0) throw new RangeError('createBudget needs at least one budget');
  let joined: readonly Allowance[] | undefined;
  const keeper: Keeper & Budget = {
    charge: async (usage, scope = {}) => {
      const charged = (joined ?? notJoined()).map((allowance) => allowance.charged(scope, usage));
      await firstValueFrom(forkJoin(charged));
    },
    left: async (scope = {}) => {
      const left = (joined ?? notJoined()).map((allowance) => allowance.left(scope));
      const found = await firstValueFrom(forkJoin(left));
      return found.flatMap((shortages, place) =>
        shortages.map((shortage) => ({ per: all[place]?.per ?? 'turn', ...shortage })),
      );
    },
    budget: (site) => {
      const allowances = all.map((read) => new Allowance(site, read));
      joined = allowances;
      return { reserved: (subject, isFirst) => reservedOf(allowances, subject, isFirst) };
    },
    join: gatesOf,
  };
  return keeper;
}
