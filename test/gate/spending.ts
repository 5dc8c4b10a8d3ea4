import {
  createSpillway,
  tool,
  type AnyTool,
  type DedupeStore,
  type Spillway,
  type SpillwayOptions,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { createBudget, type Budget, type BudgetLimits } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

interface Setting extends Omit<SpillwayOptions, 'budget' | 'runtime'> {
  readonly execute?: AnyTool['execute'];
  readonly policy?: AnyTool['policy'];
  readonly runtime?: VirtualRuntime;
}

/** Such a layer, and what was seen of it. */
export interface Spending {
  readonly runtime: VirtualRuntime;
  readonly store: DedupeStore;
  readonly budget: Budget;
  readonly search: AnyTool;
  readonly trace: readonly TraceEvent[];
  readonly spillway: Spillway;
  /** Makes a call, and lets a second pass. */
  call(request?: object): Promise<ToolResultEnvelope>;
  /** How often the tool ran. */
  runs(): number;
}

/** A layer in virtual time whose tool costs something. */
export const spending = (
  limits: BudgetLimits | readonly BudgetLimits[],
  { execute = () => 'ok', policy, ...rest }: Setting = {},
): Spending => {
  const runtime = rest.runtime ?? virtualRuntime();
  const store: DedupeStore = rest.store ?? memoryStore({ runtime });
  const budget = createBudget(limits);
  let runs = 0;
  const search = tool({
    name: 'search',
    policy: { effects: 'read', retry: { initialDelayMs: 100, jitterPercent: 0 }, ...policy },
    execute: (input: unknown, context) => {
      runs++;
      return execute(input as never, context);
    },
  });
  const trace: TraceEvent[] = [];
  const spillway = createSpillway({ ...rest, tools: [search], budget, store, runtime });
  spillway.trace$.subscribe((event) => trace.push(event));
  const call = async (request: object = {}): Promise<ToolResultEnvelope> => {
    const result = spillway.execute({ toolName: 'search', input: {}, ...request });
    await runtime.advance(1_000);
    return result;
  };
  return { runtime, store, budget, search, trace, spillway, call, runs: () => runs };
};
