import { plan, tool, type AnyTool, type Plan, type PlanNode, type PlanOptions } from '../../../src/index.ts';
import type { VerifyAnswer } from '../../../src/contract.ts';
import type { ExploreOptions, FindingKind, World } from '../../../src/explore/index.ts';

/** A plan, and what it is made of. */
export interface Case {
  readonly plan: Plan;
  readonly tools: (world: World) => readonly AnyTool[];
  readonly options?: ExploreOptions;
}

/** A mistake that people make, what of it has to be found, and the same plan without it. */
export interface Trap {
  readonly name: string;
  readonly finds: FindingKind;
  /** The node that it has to be found at. */
  readonly at: string;
  readonly broken: Case;
  readonly mended: Case;
}

/** Plans that fail as a whole, and undo what they did, unless they say otherwise. */
export const steps = (nodes: readonly PlanNode[], options: PlanOptions = { onFailure: 'compensate' }): Plan =>
  plan.from(nodes, options);

export const PATIENT = { timeoutMs: 1_000, retry: { maxAttempts: 3, maxTotalTimeMs: 60_000 } } as const;
export const KEYED = {
  timeoutMs: 1_000,
  retry: { maxAttempts: 3, maxTotalTimeMs: 60_000 },
  effects: 'mutating',
  enforcesKey: true,
} as const;

/** A server that refuses what it was asked for before under the same key, also when that was undone since. */
export const book = (world: World, key: string): { readonly id: string } => {
  if (!world.knows(key)) world.add(key);
  return { id: key };
};

/** Says whether something is booked, and gives it. */
export const look = (world: World, key: string): VerifyAnswer<{ readonly id: string }> =>
  world.has(key) ? { done: true, output: { id: key } } : { done: false };

/** What comes after the node that a plan is about: where it is refused, that one has to be undone. */
export const ticketAfter = (...needs: readonly string[]): PlanNode => ({ id: 'ticket', tool: 'ticket', needs });

export const ticket = (world: World, maxAttempts: number = PATIENT.retry.maxAttempts): AnyTool =>
  tool({
    name: 'ticket',
    policy: {
      ...PATIENT,
      retry: { ...PATIENT.retry, maxAttempts },
      enforcesKey: true,
      compensate: { enforcesKey: true },
    },
    execute: (_: unknown, { callKey }) => book(world, callKey),
    verify: (_, { callKey }) => look(world, callKey),
    compensate: ({ id }) => world.remove(id),
  });
