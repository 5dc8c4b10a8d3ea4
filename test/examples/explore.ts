// A plan under every fault and every pair of them, before production finds them: a verify that lies is found, with a
// diagram and a test.
import { plan, tool } from 'spillway';
import { exploreFaults, type World } from 'spillway/testing/explore';

/** Your tools, over what they act upon: in production your servers, here a world that stands for them. */
const shop = (world: World, isMended: boolean) => [
  tool({
    name: 'reserve',
    policy: {
      timeoutMs: 1_000,
      retry: { maxAttempts: 3, maxTotalTimeMs: 60_000 },
      verify: { settleMs: 1_000 },
      compensate: { enforcesKey: true },
    },
    execute: (_: { item: string }, { callKey }) => {
      world.add(callKey);
      return { reservation: callKey };
    },
    verify: (_, { callKey }) =>
      world.has(callKey) ? { done: true, output: { reservation: callKey } } : { done: false },
    compensate: ({ reservation }) => world.remove(reservation),
  }),
  tool({
    name: 'pay',
    policy: {
      timeoutMs: 1_000,
      retry: { maxAttempts: 3, maxTotalTimeMs: 60_000 },
      verify: { settleMs: 1_000 },
      compensate: { enforcesKey: true },
    },
    execute: ({ order }: { order: string }, { callKey }) => {
      world.add(`payment ${callKey}`, order);
      return 'paid';
    },
    // The bug: it looks for the order, and payments are kept by key.
    verify: ({ order }, { callKey }) =>
      world.has(`payment ${isMended ? callKey : order}`) ? { done: true, output: 'paid' } : { done: false },
    // A refund twice would be found, too.
    compensate: (_, { callKey }) => {
      if (world.has(`payment ${callKey}`)) world.reverse(`payment ${callKey}`);
    },
  }),
  tool({
    name: 'send_receipt',
    policy: { effects: 'read', timeoutMs: 1_000, retry: { maxAttempts: 3, maxTotalTimeMs: 60_000 } },
    execute: () => 'sent',
  }),
];

const order = plan.from(
  [
    { id: 'reserve', tool: 'reserve', input: { item: 'tea' } },
    { id: 'pay', tool: 'pay', input: { order: '7' }, needs: ['reserve'] },
    { id: 'receipt', tool: 'send_receipt', needs: ['pay'] },
  ],
  { onFailure: 'compensate', timeoutMs: 60_000 },
);

for (const isMended of [false, true]) {
  const { explored, findings, moreFindings } = await exploreFaults(order, (world) => shop(world, isMended));
  console.log(`${explored} schedules, ${findings.length + moreFindings} findings`);
  const [first] = findings;
  // `first.test` is a test for vitest that plays this schedule.
  if (first !== undefined) console.log(`${first.message}\n${first.marbles}`);
}
