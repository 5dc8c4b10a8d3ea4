import { plan, type AnyTool } from 'spillway';
import { POLICY, RETRY, booking, look, payment, trip, type Planted } from './kit.ts';

/** Bugs by which something happens twice. */
export const REPEATED: readonly Planted[] = [
  {
    bug: 'a payment without a key, which a queue delivers twice',
    finds: 'twice',
    node: 'pay',
    made: (isBug) => ({
      plan: payment(isBug ? undefined : 'order-7'),
      tools: (world) => [booking(world, 'pay')],
      options: { afterDeath: 'again' },
    }),
  },
  {
    bug: 'a verify that looks in the wrong place and says that nothing was done',
    finds: 'twice',
    node: 'pay',
    made: (isBug) => ({
      plan: payment('order-7'),
      tools: (world) => [
        booking(
          world,
          'pay',
          isBug
            ? {
                verify: (_: never, { callKey }) =>
                  world.has(`payments/${callKey}`) ? { done: true } : { done: false },
              }
            : {},
        ),
      ],
    }),
  },
  {
    bug: 'a tool that pays, and is declared as one that reads',
    finds: 'twice',
    node: 'pay',
    made: (isBug) => ({
      plan: payment(undefined),
      tools: (world) => {
        const { verify, compensate: _, ...pay } = booking(world, 'pay');
        const { compensate: _undo, verify: _look, ...policy } = POLICY;
        if (isBug || verify === undefined) return [{ ...pay, policy: { ...policy, effects: 'read' } }];
        return [{ ...pay, verify, policy: { ...POLICY, compensate: false } }];
      },
    }),
  },
  {
    bug: 'enforcesKey of a resource that does not check the key',
    finds: 'twice',
    node: 'pay',
    made: (isBug) => ({
      plan: payment('order-7'),
      tools: (world) => [
        {
          name: 'pay',
          policy: { effects: 'mutating', enforcesKey: true, timeoutMs: 1_000, retry: RETRY, breaker: false },
          execute: (_: unknown, { callKey }) => {
            if (isBug || !world.has(callKey)) world.add(callKey);
            return callKey;
          },
        } satisfies AnyTool,
      ],
    }),
  },
  {
    bug: 'a second provider that pays again after a payment of uncertain end',
    finds: 'twice',
    node: 'pay_otherwise',
    made: (isBug) => ({
      plan: plan.from([
        { id: 'pay', tool: 'visa', optional: true },
        {
          id: 'pay_otherwise',
          tool: 'paypal',
          needs: ['pay'],
          default: 'unpaid',
          input: ({ pay }: { readonly pay: unknown }) => ({ isPaid: pay !== 'unpaid' }),
        },
      ]),
      tools: (world) => {
        const {
          verify,
          compensate: _,
          ...visa
        } = booking(world, 'visa', {
          execute: () => {
            world.add('order-7');
            return 'paid';
          },
        });
        const paypal: AnyTool = {
          name: 'paypal',
          policy: { ...POLICY, effects: 'mutating', compensate: false },
          execute: ({ isPaid }: { readonly isPaid: boolean }) => {
            if (!isPaid) world.add('order-7');
            return 'paid';
          },
          verify: () => (world.has('order-7') ? { done: true, output: 'paid' } : { done: false }),
        };
        const policy = { ...POLICY, effects: 'mutating', compensate: false, verify: {} } as const;
        if (isBug || verify === undefined)
          return [{ ...visa, policy: { ...policy, retry: { maxAttempts: 1 } } }, paypal];
        return [
          {
            ...visa,
            policy: { ...POLICY, compensate: false },
            verify: () => (world.has('order-7') ? { done: true, output: 'paid' } : { done: false }),
          },
          paypal,
        ];
      },
    }),
  },
  {
    bug: 'a refund that is made again when its answer is lost',
    finds: 'twice',
    node: 'book',
    made: (isBug) => ({
      plan: trip(),
      tools: (world) => [
        booking(world, 'book', {
          compensate: (_: never, { callKey }) => {
            if (isBug || world.has(callKey)) world.reverse(callKey);
          },
        }),
        look(),
      ],
    }),
  },
  {
    bug: 'a key that is another one for each attempt',
    finds: 'twice',
    node: 'pay',
    made: (isBug) => ({
      plan: payment('order-7'),
      tools: (world) => [
        {
          name: 'pay',
          policy: { effects: 'mutating', enforcesKey: true, timeoutMs: 1_000, retry: RETRY, breaker: false },
          execute: (_: unknown, { callKey, attempt }) => {
            const key = isBug ? `${callKey}-${attempt}` : callKey;
            if (!world.has(key)) world.add(key);
            return key;
          },
        } satisfies AnyTool,
      ],
    }),
  },
];
