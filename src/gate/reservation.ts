import type { Usage } from '../contract/gate/budget.ts';
import { readUsage, type Spent } from '../policy/gate/budget.ts';
import type { Reservation } from '../layer/gate-port.ts';

/** What is beyond all numbers cannot be written down, and a budget that cannot be read lets nothing pass. */
const sum = (a = 0, b = 0): number => Math.min(Number.MAX_VALUE, a + b);

const together = (a: Usage, b: Usage): Usage => ({
  ...(a.usd === undefined && b.usd === undefined ? {} : { usd: sum(a.usd, b.usd) }),
  ...(a.tokens === undefined && b.tokens === undefined ? {} : { tokens: sum(a.tokens, b.tokens) }),
});

/** @param ended called once, with how it ended and what it said that it has used */
export const reservationOf = (reserved: Omit<Spent, 'how' | 'told'>, ended: (spent: Spent) => void): Reservation => {
  let told: Usage | undefined = {};
  return {
    get told() {
      return told?.usd === undefined && told?.tokens === undefined ? undefined : told;
    },
    report: (usage) => {
      if (told !== undefined) told = together(told, readUsage(usage));
    },
    ended: (how) => {
      if (told === undefined) return;
      const spent = { ...reserved, how, told };
      told = undefined;
      ended(spent);
    },
  };
};
