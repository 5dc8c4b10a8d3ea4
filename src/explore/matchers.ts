import type { Exploration } from './explore.ts';

/** What a matcher of vitest, Jest or `expect` gives. */
export interface Match {
  /** Whether it is as expected. */
  readonly pass: boolean;
  /** Says why, for a person. */
  readonly message: () => string;
}

/** Findings that a failure shows in full. */
const SHOWN_MAX = 3;

const shown = ({ explored, findings, moreFindings }: Exploration): string => {
  const parts = findings
    .slice(0, SHOWN_MAX)
    .map(({ kind, message, marbles, test }) => `${kind}: ${message}\n\n${marbles}\n\n${test}`);
  const others = findings.slice(SHOWN_MAX).map(({ kind, message }) => `${kind}: ${message}`);
  const more = moreFindings === 0 ? [] : [`and ${moreFindings} more`];
  const head = `${findings.length + moreFindings} of ${explored} schedules of faults are not survived`;
  return [head, ...parts, ...others, ...more].join('\n\n');
};

/**
 * Matchers for vitest, and for whatever else takes `expect.extend`. For its types declare `toSurviveFaults(): R` in the
 * interface `Matchers<R, T>` of the module `vitest`.
 *
 * @example
 * expect.extend(faultMatchers); // then: expect(await exploreFaults(trip, tools)).toSurviveFaults()
 */
export const faultMatchers: {
  /** Whether an exploration has found nothing; a failure shows the first findings with diagram and test. */
  readonly toSurviveFaults: (received: unknown) => Match;
} = {
  toSurviveFaults: (received) => {
    const exploration = received as Partial<Exploration> | null | undefined;
    if (!Array.isArray(exploration?.findings) || typeof exploration.explored !== 'number')
      throw new TypeError(
        'toSurviveFaults takes what exploreFaults gives: expect(await exploreFaults(...)).toSurviveFaults()',
      );
    const { explored, findings, moreFindings } = received as Exploration;
    return {
      pass: findings.length + moreFindings === 0,
      message: () =>
        findings.length + moreFindings === 0
          ? `all ${explored} schedules of faults are survived, and one was expected not to be`
          : shown(received as Exploration),
    };
  },
};
