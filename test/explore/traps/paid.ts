import { defer, identity } from 'rxjs';
import type { VerifyContext } from '../../../src/contract.ts';
import { hedge, tool, type AnyTool } from '../../../src/index.ts';
import type { World } from '../../../src/explore/index.ts';
import { KEYED, PATIENT, book, look, steps, ticket, ticketAfter, type Case, type Trap } from './kit.ts';

const payment = (key: (input: { order: string; at?: number }, callKey: string, attempt: number) => string): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay', input: { order: 'o-1' } }], {}),
  tools: (world) => [
    tool({
      name: 'pay',
      policy: KEYED,
      execute: (input: { order: string; at?: number }, { callKey, attempt }) =>
        book(world, key(input, callKey, attempt)),
    }),
  ],
});

const missingKey: Trap = {
  name: 'a request without a key, at a bank that would check one',
  finds: 'twice',
  at: 'pay',
  broken: {
    plan: steps([{ id: 'pay', tool: 'pay' }], {}),
    tools: (world) => {
      let requests = 0;
      return [tool({ name: 'pay', policy: KEYED, execute: () => book(world, `request ${++requests}`) })];
    },
  },
  mended: payment((_, callKey) => callKey),
};

const keyOfTheAttempt: Trap = {
  name: 'a key that is another one at each attempt',
  finds: 'twice',
  at: 'pay',
  broken: payment(({ order }, _, attempt) => `${order}:${attempt}`),
  mended: payment(({ order }) => order),
};

/** The key is the plan's to give; the queue delivers the plan again when its process has died. */
const delivered = (input: () => unknown, idempotencyKey?: string): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay', input, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }], {}),
  tools: (world) => [
    tool({
      name: 'pay',
      policy: KEYED,
      execute: ({ at }: { at: number }, { callKey }) =>
        book(world, idempotencyKey === undefined ? `order of ${at}` : callKey),
    }),
  ],
  options: { afterDeath: 'again' },
});
let clock = 0;
const inputOfTime: Trap = {
  name: 'an input made of the time, which the key is made of',
  finds: 'twice',
  at: 'pay',
  broken: delivered(() => ({ at: ++clock })),
  mended: delivered(() => ({ at: 7 }), 'order 7'),
};

const liar = (isHonest: boolean): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay' }], {}),
  tools: (world) => [
    tool({
      name: 'pay',
      policy: { ...PATIENT, verify: { settleMs: 1_000 } },
      execute: (_: unknown, { callKey }) => {
        world.add(callKey);
        return callKey;
      },
      // A replica that lags behind says no of what the bank has booked.
      verify: (_, { callKey }) => ({ done: isHonest && world.has(callKey) }),
    }),
  ],
});
const verifyThatLies: Trap = {
  name: 'a verify that asks a replica which has not heard yet',
  finds: 'twice',
  at: 'pay',
  broken: liar(false),
  mended: liar(true),
};

const optimist = (says: (world: World, key: string) => boolean): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay' }], {}),
  tools: (world) => [
    tool({
      name: 'pay',
      policy: { ...PATIENT, verify: { settleMs: 1_000 } },
      execute: (_: unknown, { callKey }) => book(world, callKey),
      verify: (_, { callKey }) => ({ done: says(world, callKey) }),
    }),
  ],
});
const verifyThatHopes: Trap = {
  name: 'a verify that takes a request that was received for one that was made',
  finds: 'lost',
  at: 'pay',
  broken: optimist(() => true),
  mended: optimist((world, key) => world.has(key)),
};

const twoBanks = (isSaid: boolean): Case => {
  const at = (world: World, name: string, alternatives: readonly string[]): AnyTool =>
    tool({
      name,
      policy: {
        ...PATIENT,
        retry: { maxAttempts: 1 },
        alternatives,
        ...(isSaid ? { verify: { settleMs: 1_000 } } : { effects: 'read' as const }),
      },
      execute: (_: unknown, { callKey }) => {
        world.add(`${name} ${callKey}`);
        return { id: `${name} ${callKey}` };
      },
      ...(isSaid ? { verify: (_: unknown, { callKey }: VerifyContext) => look(world, `${name} ${callKey}`) } : {}),
    });
  return {
    plan: steps([{ id: 'pay', tool: 'pay' }], {}),
    tools: (world) => [at(world, 'pay', ['pay_backup']), at(world, 'pay_backup', [])],
  };
};
const paysAgain: Trap = {
  name: 'an alternative at another bank, of a tool that is said to read',
  finds: 'twice',
  at: 'pay',
  broken: twoBanks(false),
  mended: twoBanks(true),
};

const shipping = (hasDefault: boolean): Case => ({
  plan: steps(
    [
      { id: 'pay', tool: 'pay' },
      { id: 'ship', tool: 'ship', needs: ['pay'], ...(hasDefault ? { default: { paid: true } } : {}) },
    ],
    {},
  ),
  tools: (world) => [
    tool({ name: 'pay', policy: KEYED, execute: (_: unknown, { callKey }) => book(world, callKey) }),
    tool({ name: 'ship', policy: KEYED, execute: (_: unknown, { callKey }) => book(world, callKey) }),
  ],
});
const hidingDefault: Trap = {
  name: 'a default that hides a payment which failed',
  finds: 'lost',
  at: 'pay',
  broken: shipping(true),
  mended: shipping(false),
};

const swallowing = (swallows: boolean): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay' }], {}),
  tools: (world) => [
    tool({
      name: 'pay',
      policy: KEYED,
      execute: async (_: unknown, { callKey, signal }) => {
        try {
          return await world.request(() => book(world, callKey), signal);
        } catch (error) {
          if (swallows) return 'pending';
          throw error;
        }
      },
    }),
  ],
});
const swallowed: Trap = {
  name: 'a tool that swallows its error',
  finds: 'lost',
  at: 'pay',
  broken: swallowing(true),
  mended: swallowing(false),
};

/** A bank that knows no keys: each request is a payment of its own. */
const hedged = (isHedged: boolean): Case => ({
  plan: steps([{ id: 'pay', tool: 'pay' }], {}),
  tools: (world) => {
    const another = isHedged ? hedge({ delayMs: 200 }, world.runtime) : identity;
    return [
      tool({
        name: 'pay',
        policy: { ...PATIENT, verify: { settleMs: 1_000, stopsOnUnsubscribe: true } },
        execute: (_: unknown, { callKey, signal }) =>
          defer(() =>
            world.request(() => {
              world.add(callKey);
              return { id: callKey };
            }, signal),
          ).pipe(another),
        verify: (_, { callKey }) => look(world, callKey),
      }),
    ];
  },
});
const hedgedPayment: Trap = {
  name: 'a payment that is hedged',
  finds: 'twice',
  at: 'pay',
  broken: hedged(true),
  mended: hedged(false),
};

const budget = (keyed: boolean): Case => ({
  plan: steps([{ id: 'reserve', tool: 'reserve', input: { usd: 5 } }, ticketAfter('reserve')]),
  tools: (world) => [
    ticket(world),
    tool({
      name: 'reserve',
      policy: { ...KEYED, compensate: { enforcesKey: true } },
      // Two requests, of which only the second has a key; or one that does both.
      execute: async (_: { usd: number }, { callKey, attempt, signal }) => {
        const charge = `charge ${callKey}`;
        if (!keyed) await world.request(() => book(world, `${charge} ${attempt}`), signal);
        return world.request(() => (keyed ? book(world, charge) : undefined, book(world, callKey)), signal);
      },
      verify: (_, { callKey }) => look(world, callKey),
      compensate: (_, { callKey }) => {
        world.remove(callKey);
        world.remove(`charge ${callKey}`);
        for (const attempt of [1, 2, 3]) world.remove(`charge ${callKey} ${attempt}`);
      },
    }),
  ],
});
const chargedTwice: Trap = {
  name: 'a budget that is charged once more by each attempt, before the request that has the key',
  finds: 'twice',
  at: 'reserve',
  broken: budget(false),
  mended: budget(true),
};

export const PAID: readonly Trap[] = [
  missingKey,
  keyOfTheAttempt,
  inputOfTime,
  verifyThatLies,
  verifyThatHopes,
  paysAgain,
  hidingDefault,
  swallowed,
  hedgedPayment,
  chargedTwice,
];
