import { plan, tool, type AnyTool, type Plan, type ToolPolicy } from 'spillway';
import type { ExploreOptions, FindingKind, World } from 'spillway/testing/explore';

/** A plan that can be explored. */
interface Case {
  readonly plan: Plan;
  readonly tools: (world: World) => readonly AnyTool[];
  readonly options?: ExploreOptions;
}

/** A bug in a plan or its tools, and the same without it. */
export interface Planted {
  readonly bug: string;
  readonly finds: FindingKind;
  readonly node: string;
  /** @param isBug else its fixed twin */
  readonly made: (isBug: boolean) => Case;
}

export const RETRY: NonNullable<ToolPolicy['retry']> = { maxAttempts: 3, initialDelayMs: 10, maxTotalTimeMs: 60_000 };
export const POLICY: ToolPolicy = {
  timeoutMs: 1_000,
  retry: RETRY,
  breaker: false,
  verify: { settleMs: 1_000, delayMs: 50 },
  compensate: { enforcesKey: true, retry: RETRY },
};

/** A tool as it should be: it can be looked up, and undone. */
export const booking = (world: World, name: string, change: Partial<AnyTool> = {}): AnyTool => ({
  ...tool({
    name,
    policy: POLICY,
    execute: (_: unknown, { callKey }) => {
      world.add(callKey, name);
      return { id: callKey };
    },
    verify: (_, { callKey }) => (world.has(callKey) ? { done: true, output: { id: callKey } } : { done: false }),
    compensate: (_, { callKey }) => world.remove(callKey),
  }),
  ...change,
});

export const look = (name = 'look'): AnyTool => ({
  name,
  policy: { effects: 'read', timeoutMs: 1_000, retry: RETRY },
  execute: () => 'seen',
});

/** Books, and then does what can fail. */
export const trip = (change: Partial<Plan['options']> = {}): Plan =>
  plan.from(
    [
      { id: 'book', tool: 'book' },
      { id: 'look', tool: 'look', needs: ['book'] },
    ],
    { onFailure: 'compensate', leaseMs: 5_000, ...change },
  );

export const payment = (key: string | undefined): Plan =>
  plan.from([{ id: 'pay', tool: 'pay', input: { order: 7 }, ...(key === undefined ? {} : { idempotencyKey: key }) }]);
