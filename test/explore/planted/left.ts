import { plan, type AnyTool } from 'spillway';
import { POLICY, RETRY, booking, look, payment, trip, type Planted } from './kit.ts';

/** Bugs by which something stays that should not, or is lost. */
export const LEFT: readonly Planted[] = [
  {
    bug: 'a compensation that throws',
    finds: 'uncompensated',
    node: 'book',
    made: (isBug) => ({
      plan: trip(),
      tools: (world) => [
        booking(
          world,
          'book',
          isBug
            ? {
                compensate: () => {
                  throw new TypeError('undefined is not a function');
                },
              }
            : {},
        ),
        look(),
      ],
    }),
  },
  {
    bug: 'a verify that takes any answer for a yes',
    finds: 'lost',
    node: 'pay',
    made: (isBug) => ({
      plan: payment('order-7'),
      tools: (world) => [booking(world, 'pay', isBug ? { verify: () => ({ done: true }) } : {})],
    }),
  },
  {
    bug: 'a verify that is believed before the effect can have come, so that nothing is undone',
    finds: 'uncompensated',
    node: 'book',
    made: (isBug) => ({
      plan: trip(),
      tools: (world) => [
        booking(world, 'book', {
          policy: { ...POLICY, retry: { maxAttempts: 1 }, verify: { delayMs: 50, settleMs: isBug ? 0 : 1_000 } },
        }),
        look(),
      ],
      options: { lateMs: 600 },
    }),
  },
  {
    bug: 'a compensation that one node lacks',
    finds: 'uncompensated',
    node: 'seat',
    made: (isBug) => ({
      plan: plan.from(
        [
          { id: 'book', tool: 'book' },
          { id: 'seat', tool: 'seat', needs: ['book'] },
          { id: 'look', tool: 'look', needs: ['seat'] },
        ],
        { onFailure: 'compensate', leaseMs: 5_000 },
      ),
      tools: (world) => {
        const { compensate, ...seat } = booking(world, 'seat');
        return [
          booking(world, 'book'),
          isBug || compensate === undefined
            ? { ...seat, policy: { ...POLICY, compensate: {} } }
            : { ...seat, compensate },
          look(),
        ];
      },
    }),
  },
  {
    bug: 'a turn that has less time than the retries of its nodes',
    finds: 'lost',
    node: 'look',
    made: (isBug) => ({
      plan: trip({ timeoutMs: isBug ? 1_500 : 60_000, onFailure: 'keep' }),
      tools: (world) => [booking(world, 'book'), look()],
    }),
  },
  {
    bug: 'one key for two payments',
    finds: 'lost',
    node: 'second',
    made: (isBug) => ({
      plan: plan.from([
        { id: 'first', tool: 'pay', input: { amount: 5 }, idempotencyKey: 'order-7' },
        {
          id: 'second',
          tool: 'pay',
          input: { amount: 5 },
          idempotencyKey: isBug ? 'order-7' : 'order-8',
          needs: ['first'],
        },
      ]),
      tools: (world) => [booking(world, 'pay')],
    }),
  },
  {
    bug: 'an undoing of a node’s own in a plan that has no name, so that no other process finds it',
    finds: 'uncompensated',
    node: 'book',
    made: (isBug) => ({
      plan: plan.from(
        [
          { id: 'book', tool: 'book', compensate: { tool: 'cancel', input: { id: '${callKey}' } } },
          { id: 'look', tool: 'look', needs: ['book'] },
        ],
        { onFailure: 'compensate', leaseMs: 5_000, ...(isBug ? {} : { name: 'trip' }) },
      ),
      tools: (world) => [
        booking(world, 'book'),
        {
          name: 'cancel',
          policy: { effects: 'mutating', enforcesKey: true, timeoutMs: 1_000, retry: RETRY },
          execute: ({ id }: { readonly id: string }) => world.remove(id),
        } satisfies AnyTool,
        look(),
      ],
    }),
  },
  {
    bug: 'a tool that can be undone, and of which nobody can say whether it was done',
    finds: 'uncompensated',
    node: 'book',
    made: (isBug) => ({
      plan: trip(),
      tools: (world) => {
        const { verify, ...book } = booking(world, 'book');
        return [
          isBug || verify === undefined ? { ...book, policy: { ...POLICY, verify: {} } } : { ...book, verify },
          look(),
        ];
      },
    }),
  },
];
