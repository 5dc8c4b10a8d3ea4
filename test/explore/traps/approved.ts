import { tool } from '../../../src/index.ts';
import { KEYED, PATIENT, book, steps, type Case, type Trap } from './kit.ts';

/** The bank is busy the first time, and dearer the second: the order that is to be paid is raised meanwhile. */
const dearer = (isLeftOut: boolean): Case => {
  let order = { usd: 10 };
  return {
    plan: steps([{ id: 'pay', tool: 'pay', input: () => (order = { usd: 10 }) }], {}),
    tools: (world) => [
      tool({
        name: 'pay',
        policy: {
          ...KEYED,
          retry: { ...PATIENT.retry, maxAttempts: 4 },
          ...(isLeftOut ? { dedupe: { volatile: ['usd'] } } : {}),
        },
        needsApproval: true,
        execute: (_input: { usd: number }, { callKey, attempt }) => {
          if (attempt === 1) {
            order.usd *= 2;
            throw Object.assign(new Error('busy'), { status: 503 });
          }
          return book(world, callKey);
        },
      }),
    ],
  };
};
const approvedForLess: Trap = {
  name: 'an approval that is used for a higher amount, since the amount is no part of what it is for',
  finds: 'unapproved',
  at: 'pay',
  broken: dearer(true),
  mended: dearer(false),
};

/** The price is asked again by the process that goes on. */
const quotedAgain = (isLeftOut: boolean): Case => {
  let quotes = 0;
  return {
    plan: steps([{ id: 'pay', tool: 'pay', input: () => ({ order: 'o-1', usd: ++quotes }) }], {}),
    tools: (world) => [
      tool({
        name: 'pay',
        policy: { ...KEYED, ...(isLeftOut ? { dedupe: { volatile: ['usd'] } } : {}) },
        needsApproval: true,
        execute: ({ order }: { order: string; usd: number }) => book(world, order),
      }),
    ],
    options: { afterDeath: 'again', storeFaults: true, faults: ['dies_before', 'dies_after'] },
  };
};
const approvedBefore: Trap = {
  name: 'an approval of a process that died, used by the next one for the amount of that day',
  finds: 'unapproved',
  at: 'pay',
  broken: quotedAgain(true),
  mended: quotedAgain(false),
};

export const APPROVED: readonly Trap[] = [approvedForLess, approvedBefore];
