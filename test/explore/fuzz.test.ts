import fc from 'fast-check';
import { plan, tool, type AnyTool, type Plan } from 'spillway';
import { exploreFaults, type World } from 'spillway/testing/explore';
import { expect, it } from 'vitest';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 40);

/** What a node of a random plan is. */
interface Kind {
  readonly effect: 'reads' | 'books' | 'checks_key' | 'keyed';
  readonly optional: boolean;
  readonly needs: readonly boolean[];
  readonly attempts: number;
  readonly latencyMs: number;
  readonly settleMs: number;
  readonly undo: 'tool' | 'node' | 'data';
  readonly refunds: boolean;
}

const RETRY = { initialDelayMs: 10, maxTotalTimeMs: 120_000 } as const;

/** Correct tools: they can be looked up and undone, and each says no more of itself than is true. */
const toolOf = (world: World, name: string, kind: Kind): AnyTool => {
  const { effect, attempts: maxAttempts, latencyMs, settleMs, refunds } = kind;
  const retry = { ...RETRY, maxAttempts };
  const base = { timeoutMs: 1_000, retry, breaker: false } as const;
  if (effect === 'reads')
    return tool({ name, policy: { ...base, effects: 'read' }, execute: () => world.sleep(latencyMs).then(() => name) });
  return tool({
    name,
    policy: {
      ...base,
      ...(effect === 'checks_key' ? { enforcesKey: true } : {}),
      // What comes late takes its time, too.
      verify: { settleMs: settleMs + 2 * latencyMs, delayMs: 50 },
      compensate: { enforcesKey: true, retry },
    },
    execute: async (_: unknown, { callKey }) => {
      await world.sleep(latencyMs);
      if (effect !== 'checks_key' || !world.has(callKey)) world.add(callKey, name);
      return { id: callKey };
    },
    verify: (_, { callKey }) => (world.has(callKey) ? { done: true, output: { id: callKey } } : { done: false }),
    compensate: (_, { callKey }) => {
      if (!refunds) world.remove(callKey);
      else if (world.has(callKey)) world.reverse(callKey);
    },
  });
};

const nodesOf = (kinds: readonly Kind[]): Plan['nodes'] =>
  kinds.map(({ effect, optional, needs, undo }, index) => ({
    id: `n${index}`,
    tool: `t${index}`,
    needs: needs.slice(0, index).flatMap((is, place) => (is ? [`n${place}`] : [])),
    optional,
    ...(effect === 'keyed' ? { idempotencyKey: `key-${index}` } : {}),
    ...(effect !== 'reads' && undo === 'data' ? { compensate: { tool: 'cancel', input: { id: '${callKey}' } } } : {}),
  }));

const cancel = (world: World): AnyTool =>
  tool({
    name: 'cancel',
    policy: {
      effects: 'mutating',
      enforcesKey: true,
      timeoutMs: 1_000,
      retry: { ...RETRY, maxAttempts: 3 },
      breaker: false,
    },
    execute: ({ id }: { readonly id: string }) => world.remove(id),
  });

const kind: fc.Arbitrary<Kind> = fc.record({
  effect: fc.constantFrom('reads', 'books', 'checks_key', 'keyed'),
  optional: fc.boolean(),
  needs: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
  attempts: fc.integer({ min: 1, max: 4 }),
  latencyMs: fc.constantFrom(0, 20, 400),
  settleMs: fc.constantFrom(200, 1_000),
  undo: fc.constantFrom('tool', 'data'),
  refunds: fc.boolean(),
});

it('XPL-2 finds nothing in random plans of correct tools', { timeout: 600_000 }, async () => {
  const seed = Number(process.env['FUZZ_SEED'] ?? 20_261_123);
  let explored = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(kind, { minLength: 2, maxLength: 5 }),
      fc.constantFrom('keep', 'compensate'),
      fc.constantFrom('detach', 'abort'),
      fc.boolean(),
      async (kinds, onFailure, onDeadline, storeFaults) => {
        const made = plan.from(nodesOf(kinds), { onFailure, onDeadline, name: 'random', leaseMs: 5_000 });
        const tools = (world: World): readonly AnyTool[] => [
          ...kinds.map((one, index) => toolOf(world, `t${index}`, one)),
          cancel(world),
        ];
        // Pairs where that is quick, else each fault alone.
        const depth = kinds.length < 4 && !storeFaults ? 2 : 1;
        const exploration = await exploreFaults(made, tools, { depth, storeFaults, maxFindings: 3, seed });
        explored += exploration.explored;
        expect(exploration.findings.map(({ message, marbles }) => `${message}\n${marbles}`)).toEqual([]);
      },
    ),
    { seed, numRuns: RUNS, endOnFailure: true },
  );
  // The seed is in the report of a failure as well.
  process.stderr.write(`explored ${explored} schedules of ${RUNS} random plans, seed ${seed}\n`);
  expect(explored).toBeGreaterThan(RUNS * 20);
});
