import { plan, tool, type AnyTool, type Plan } from 'spillway';
import type { World } from 'spillway/testing/explore';

const RETRY = { maxAttempts: 3, initialDelayMs: 10, maxTotalTimeMs: 60_000 } as const;
const STOPS = ['flight', 'hotel', 'car', 'tour', 'insurance'] as const;

const booking = (world: World, stop: string): AnyTool =>
  tool({
    name: `book_${stop}`,
    policy: {
      timeoutMs: 1_000,
      retry: RETRY,
      breaker: false,
      verify: { settleMs: 1_000, delayMs: 50 },
      compensate: { enforcesKey: true, retry: RETRY },
    },
    execute: (_: unknown, { callKey }) => {
      world.add(callKey, stop);
      return { key: callKey };
    },
    verify: (_, { callKey }) => (world.has(callKey) ? { done: true, output: { key: callKey } } : { done: false }),
    compensate: (_, { callKey }) => world.remove(callKey),
  });

/** The tools of a trip of five bookings, as they should be. */
export const tripTools = (world: World): readonly AnyTool[] => [
  ...STOPS.map((stop) => booking(world, stop)),
  { name: 'pay', policy: { effects: 'read', timeoutMs: 1_000, retry: RETRY }, execute: () => 'paid' },
];

/** Five bookings that build on each other, and a payment. */
export const trip: Plan = plan.from(
  [
    { id: 'flight', tool: 'book_flight' },
    { id: 'hotel', tool: 'book_hotel', needs: ['flight'] },
    { id: 'car', tool: 'book_car', needs: ['flight'] },
    { id: 'tour', tool: 'book_tour', needs: ['hotel', 'car'] },
    { id: 'insurance', tool: 'book_insurance', needs: ['tour'] },
    { id: 'pay', tool: 'pay', needs: [...STOPS] },
  ],
  { onFailure: 'compensate', leaseMs: 5_000 },
);
