import { plan, type AnyTool } from 'spillway';
import type { World } from 'spillway/testing/explore';
import { POLICY, RETRY, booking, type Planted } from './kit.ts';

interface Quote {
  readonly amount: number;
}

const asked = new WeakMap<World, number>();

/** Each time that it is asked it wants more. */
const quote = (world: World): AnyTool => ({
  name: 'quote',
  policy: { effects: 'read', timeoutMs: 1_000, retry: RETRY },
  execute: (): Quote => {
    const times = (asked.get(world) ?? 0) + 1;
    asked.set(world, times);
    return { amount: 100 * times };
  },
});

const payment = plan.from([
  { id: 'quote', tool: 'quote' },
  {
    id: 'pay',
    tool: 'pay',
    needs: ['quote'],
    input: ({ quote: { amount } }: { readonly quote: Quote }) => ({ order: 7, amount }),
    idempotencyKey: 'order-7',
    // Once something was paid, another amount under its key is refused, as it should be.
    optional: true,
  },
]);

/** Bugs by which something is done that nobody has said yes to. */
export const APPROVED: readonly Planted[] = [
  {
    bug: 'an approval that is used for another amount, since the amount is declared as volatile',
    finds: 'unapproved',
    node: 'pay',
    made: (isBug) => ({
      plan: payment,
      tools: (world) => [
        quote(world),
        booking(world, 'pay', {
          policy: { ...POLICY, ...(isBug ? { dedupe: { volatile: ['amount'] } } : {}) },
          needsApproval: true,
        }),
      ],
      options: { afterDeath: 'again', storeFaults: true, depth: 1 },
    }),
  },
];
