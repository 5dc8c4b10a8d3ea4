import fc from 'fast-check';
import { expect } from 'vitest';

/** Scenarios that an engine and its reference have to agree about; others on request. */
const SCENARIOS = Number(process.env['LAW_SCENARIOS'] ?? 5_000);
/** What fewer scenarios reach proves nothing. */
const REACHED_MIN = 20;

/** What can be seen of a scenario, a line each: of the ways that are compared, by name, and of the reference. */
export type Law<Scenario> = (given: Scenario) => {
  readonly actual: Readonly<Record<string, readonly string[]>>;
  readonly expected: readonly string[];
};

const property = <Scenario>(
  scenario: fc.Arbitrary<Scenario>,
  law: Law<Scenario>,
  seen?: (expected: readonly string[]) => void,
): fc.IProperty<[Scenario]> =>
  fc.property(scenario, (given) => {
    const { actual, expected } = law(given);
    for (const [name, lines] of Object.entries(actual)) expect(lines, name).toStrictEqual(expected);
    seen?.(expected);
  });

/**
 * The law holds in every scenario. Where it does not, fast-check tells the seed and the smallest scenario.
 *
 * @param needed what has to be seen in some scenarios, or they would be the wrong ones
 * @param found scenarios in which it did not hold once
 */
export const expectToHold = <Scenario>(
  scenario: fc.Arbitrary<Scenario>,
  law: Law<Scenario>,
  needed: readonly string[],
  found: readonly Scenario[] = [],
): void => {
  const reached = new Map(needed.map((what) => [what, 0]));
  const seen = (expected: readonly string[]): void => {
    for (const [what, times] of reached) if (expected.some((line) => line.includes(what))) reached.set(what, times + 1);
  };
  fc.assert(property(scenario, law, seen), { numRuns: SCENARIOS, examples: found.map((given) => [given]) });
  expect([...reached].filter(([, times]) => times < REACHED_MIN)).toStrictEqual([]);
};

/** The law sees a mistake: some scenario is told differently. */
export const expectToBeSeen = <Scenario>(scenario: fc.Arbitrary<Scenario>, law: Law<Scenario>): void => {
  const { failed, errorInstance } = fc.check(property(scenario, law), { numRuns: SCENARIOS, endOnFailure: true });
  expect(failed).toBe(true);
  // A copy that could not run at all would prove nothing.
  expect(String(errorInstance)).toContain('to strictly equal');
};
