import { createExperience, ToolExecutionError, type Experience, type ToolExecutionErrorOptions } from 'spillway';
import { describe, expect, it } from 'vitest';

const HOUR_MS = 3_600_000;
const error = (options: ToolExecutionErrorOptions = { status: 503 }): ToolExecutionError =>
  new ToolExecutionError('execution_error', 'busy', options);
const never = (): number => 1;

/** Retries of the tool `t` after an error, a second apart, the last one at `atMs`. */
const retried = (experience: Experience, outcomes: readonly boolean[], atMs: number, failed = error()): void =>
  outcomes.forEach((recovered, place) =>
    experience.record(
      { toolName: 't', error: failed, tried: { strategy: 'retry' }, recovered },
      atMs - (outcomes.length - 1 - place) * 1_000,
    ),
  );
const retryOf = (experience: Experience, atMs: number, failed = error(), random: () => number = never): unknown =>
  experience.evidence('t', failed, atMs, random)?.retry;

describe('R-6.4 what an experience remembers', () => {
  it('R-6.4 the latest outcomes count, as many as are enough', () => {
    const experience = createExperience({ enough: 3 });
    retried(experience, [true, true, true, false, false], 10_000);
    expect(retryOf(experience, 10_000)).toEqual({ tried: 3, recovered: 1 });
    retried(experience, [false], 11_000);
    expect(retryOf(experience, 11_000)).toEqual({ tried: 3, recovered: 0 });
  });

  it('R-6.4 what is as old as maxAgeMs counts no longer', () => {
    const experience = createExperience({ maxAgeMs: HOUR_MS });
    retried(experience, [false, false], 10_000);
    expect(retryOf(experience, 9_000 + HOUR_MS)).toEqual({ tried: 1, recovered: 0 });
    expect(retryOf(experience, 10_000 + HOUR_MS - 1)).toEqual({ tried: 1, recovered: 0 });
    expect(retryOf(experience, 10_000 + HOUR_MS)).toEqual({ tried: 0, recovered: 0 });
  });

  it('R-6.4 failures are similar by tool, kind, and status or code', () => {
    const experience = createExperience();
    retried(experience, [true], 0);
    retried(experience, [true, true], 0, error({ code: 'ECONNRESET' }));
    expect(retryOf(experience, 0)).toEqual({ tried: 1, recovered: 1 });
    expect(retryOf(experience, 0, error({ status: 503, code: 'ECONNRESET' }))).toEqual({ tried: 1, recovered: 1 });
    expect(retryOf(experience, 0, error({ code: 'ECONNRESET' }))).toEqual({ tried: 2, recovered: 2 });
    for (const other of [
      error({ status: 500 }),
      error({ code: 'EPIPE' }),
      error({}),
      new ToolExecutionError('timeout', 'late', { status: 503 }),
    ])
      expect(retryOf(experience, 0, other)).toBeUndefined();
    expect(experience.evidence('u', error(), 0, never)).toBeUndefined();
  });

  it('R-6.4 of more than maxEntries the one met longest ago is forgotten', () => {
    const experience = createExperience({ maxEntries: 2 });
    const [one, two, three] = [500, 502, 503].map((status) => error({ status }));
    for (const met of [one, two, one, three]) retried(experience, [true], 0, met);
    expect([one, two, three].map((met) => retryOf(experience, 0, met) !== undefined)).toEqual([true, false, true]);
  });
});

describe('R-6.4 what is hopeless', () => {
  const exploring = (): number => 0;

  it('R-6.4 a share of retries is made against the evidence, so that it can turn', () => {
    const experience = createExperience({ enough: 3, exploreShare: 0.25 });
    retried(experience, [false, false, false], 0);
    expect(retryOf(experience, 0, error(), () => 0.24)).toBeUndefined();
    expect(retryOf(experience, 0, error(), () => 0.25)).toEqual({ tried: 3, recovered: 0 });
  });

  it('R-6.4 one recovery among the latest keeps hope, and so do too few tries: there is nothing to find out', () => {
    const experience = createExperience({ enough: 3 });
    retried(experience, [false, true, false], 0);
    expect(retryOf(experience, 0, error(), exploring)).toEqual({ tried: 3, recovered: 1 });
    retried(experience, [false, false], 0, error({ status: 500 }));
    expect(retryOf(experience, 0, error({ status: 500 }), exploring)).toEqual({ tried: 2, recovered: 0 });
  });
});
