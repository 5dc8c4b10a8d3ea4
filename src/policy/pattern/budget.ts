/** What is left of the work that one text may cost, in steps of some nanoseconds. */
export interface StepBudget {
  steps: number;
  /** The pattern, as a message shows it. */
  readonly pattern: string;
}

/** A text would cost more than its share: of some patterns an automaton is in hundreds of places at once. */
export class PatternCostError extends RangeError {
  override readonly name: string = 'PatternCostError';
}

/** @throws PatternCostError */
export function takeStep(budget: StepBudget, steps: number): void {
  budget.steps -= steps;
  if (budget.steps < 0)
    throw new PatternCostError(`is too costly to check against the pattern ${budget.pattern}; send a shorter text`);
}
