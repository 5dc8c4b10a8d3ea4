import {
  createSpillway,
  tool,
  type AnyTool,
  type DedupeStore,
  type Spillway,
  type ToolContext,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import type { VerifyAnswer } from 'spillway/contract';
import type { VirtualRuntime } from 'spillway/testing';

export const LEASE_MS = 1_000;
export const REQUEST = { toolName: 'pay', input: { amount: 7 }, idempotencyKey: 'k1', session: 's' };

export interface Process {
  readonly layer: Spillway;
  readonly trace: TraceEvent[];
  readonly ran: number;
}

/** A process that pays at most once under a key. */
export const process = (
  runtime: VirtualRuntime,
  store: DedupeStore,
  pay: (context: ToolContext) => unknown,
  verify?: () => unknown,
  policy: ToolPolicy = {},
  others: readonly AnyTool[] = [],
): Process => {
  let ran = 0;
  const payment = tool({
    name: 'pay',
    policy: {
      effects: 'mutating',
      dedupe: { leaseMs: LEASE_MS },
      verify: { settleMs: 0, maxAttempts: 1 },
      retry: { maxAttempts: 1 },
      ...policy,
    },
    execute: (_input: unknown, context): unknown => {
      ran++;
      return pay(context);
    },
    ...(verify === undefined ? {} : { verify: () => verify() as VerifyAnswer }),
  });
  const layer = createSpillway({ tools: [payment, ...others], runtime, store });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  return {
    layer,
    trace,
    get ran() {
      return ran;
    },
  };
};

/** The call, once more. */
export const asked = async (runtime: VirtualRuntime, { layer }: Process): Promise<ToolResultEnvelope> => {
  const result = layer.execute(REQUEST);
  await runtime.advance(20);
  return result;
};
