import type { Plan } from '../contract/turn.ts';
import type { runTurn } from './run.ts';

/** How a plan is run. It comes with the plan, so that a program that only makes calls loads nothing of turns. */
export const RUN: unique symbol = Symbol.for('spillway.run');

/** A plan as `plan` makes it. */
export interface RunnablePlan<Values = Readonly<Record<string, unknown>>> extends Plan<Values> {
  readonly [RUN]: typeof runTurn;
}

/** @throws RangeError for an object that `plan` did not make */
export const runnerOf = (plan: Plan): typeof runTurn => {
  const run = (plan as Partial<RunnablePlan> | undefined)?.[RUN];
  if (run === undefined)
    throw new RangeError(
      'a turn needs a plan as plan() made it, not a copy through JSON or structuredClone: ' +
        'make it anew, with plan.from(nodes, options)',
    );
  return run;
};
