import type { Evidence, FailureNotification, RecoveryDecision, Tally } from '../../contract/recovery.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { checkKeys, checkNumber, integer, number, positiveDuration } from '../check.ts';

/** What was tried after a failure, and how it ended. */
export interface Episode {
  /** The tool that failed. */
  readonly toolName: string;
  /** How it failed. */
  readonly error: ToolExecutionError;
  /** `retry`, or the name of the alternative. */
  readonly tried:
    | {
        /** The same tool was called again. */
        readonly strategy: 'retry';
      }
    | {
        /** Another tool was called. */
        readonly strategy: 'alternative';
        /** The name of that tool. */
        readonly toolName: string;
      };
  /** Whether the call then succeeded. */
  readonly recovered: boolean;
}

/** How much is remembered, and when it counts. */
export interface ExperienceOptions {
  /** So many tries in a row without a success are enough to stop. Default 10. */
  readonly enough?: number;
  /** What is older counts no longer. Default 3,600,000: an hour. */
  readonly maxAgeMs?: number;
  /** Kinds of failure remembered at a time; the one met longest ago is forgotten first. Default 1,000. */
  readonly maxEntries?: number;
  /** This share of retries is made against the evidence, so that the evidence can turn. Default 0.05. */
  readonly exploreShare?: number;
}

/** What an experience is saved as: JSON. */
export interface ExperienceMemory {
  /** The version of this shape. Another one is refused. */
  readonly version: 1;
  /** One entry for each sort of failure and each thing that was tried. */
  readonly entries: ReadonlyArray<{
    /** The tool, the error's kind, and its status or code, as JSON text. */
    readonly key: string;
    /** `retry`, or the name of the alternative. */
    readonly tried: string;
    /** The last outcomes, oldest first: when, in milliseconds since the Unix epoch, and whether it helped. */
    readonly outcomes: ReadonlyArray<readonly [atMs: number, recovered: boolean]>;
  }>;
}

/**
 * Bounded memory of what was tried on similar failures and how it ended. Times are wall-clock milliseconds, so
 * that it can be saved.
 */
export interface Experience {
  /** Adds what was tried after a failure and how it ended. `atMs` is wall-clock time. */
  record(episode: Episode, atMs: number): void;
  /**
   * What is known of failures like this one; `undefined` when it is nothing, or when this retry is to find out anew.
   */
  evidence(toolName: string, error: ToolExecutionError, atMs: number, random: () => number): Evidence | undefined;
  /** Gives what `createExperience` takes back as `saved`. */
  toJSON(): ExperienceMemory;
}

const RETRY = 'retry';

const isHopeless = (tally: Tally | undefined, enough: number): boolean =>
  tally !== undefined && tally.tried >= enough && tally.recovered === 0;

/** Failures are similar when tool, kind, and code or status are the same. Text plays no part. */
const keyOf = (toolName: string, { kind, status, code }: ToolExecutionError): string =>
  JSON.stringify([toolName, kind, status ?? code ?? null]);

const parse = (value: unknown): ExperienceMemory => {
  const { version, entries } = (value ?? {}) as Partial<ExperienceMemory>;
  if (version !== 1 || !Array.isArray(entries))
    throw new RangeError('a saved experience must be what toJSON() gave: { version: 1, entries: [...] }');
  for (const { key, tried, outcomes } of entries as ExperienceMemory['entries']) {
    const sound =
      typeof key === 'string' &&
      typeof tried === 'string' &&
      Array.isArray(outcomes) &&
      outcomes.every(([atMs, recovered]) => Number.isFinite(atMs) && typeof recovered === 'boolean');
    if (!sound)
      throw new RangeError(
        'each entry of a saved experience must be { key, tried, outcomes: [[atMs, recovered], ...] }',
      );
  }
  return { version, entries };
};

/**
 * An experience, empty or as it was saved.
 * @param saved what `toJSON()` gave
 * @throws RangeError for an option out of its range or a saved experience that is none
 *
 * @example
 * const experience = createExperience({ enough: 5 }, JSON.parse(await readFile('experience.json', 'utf8')));
 * const spillway = createSpillway({ tools, experience });
 */
export function createExperience(options: ExperienceOptions = {}, saved?: unknown): Experience {
  checkKeys('an experience', options, ['enough', 'maxAgeMs', 'maxEntries', 'exploreShare']);
  const { enough = 10, maxAgeMs = 3_600_000, maxEntries = 1000, exploreShare = 0.05 } = options;
  checkNumber('enough', enough, integer(1, 1000));
  checkNumber('maxAgeMs', maxAgeMs, positiveDuration);
  checkNumber('maxEntries', maxEntries, integer(1, 100_000));
  checkNumber('exploreShare', exploreShare, number(0, 1));
  // By key, then by what was tried: the last outcomes, oldest first. A Map keeps the order of use.
  const memory = new Map<string, Map<string, Array<readonly [number, boolean]>>>();

  const add = (key: string, tried: string, outcomes: ReadonlyArray<readonly [number, boolean]>): void => {
    const entry = memory.get(key) ?? new Map<string, Array<readonly [number, boolean]>>();
    memory.delete(key);
    memory.set(key, entry);
    entry.set(tried, [...(entry.get(tried) ?? []), ...outcomes].slice(-enough));
    const [oldest] = memory.keys();
    if (memory.size > maxEntries && oldest !== undefined) memory.delete(oldest);
  };
  if (saved !== undefined) for (const { key, tried, outcomes } of parse(saved).entries) add(key, tried, outcomes);

  const tally = (outcomes: ReadonlyArray<readonly [number, boolean]>, atMs: number): Tally => {
    const fresh = outcomes.filter(([outcomeAtMs]) => outcomeAtMs > atMs - maxAgeMs);
    return { tried: fresh.length, recovered: fresh.filter(([, recovered]) => recovered).length };
  };
  return {
    record: ({ toolName, error, tried, recovered }, atMs) =>
      add(keyOf(toolName, error), tried.strategy === 'retry' ? RETRY : `alternative:${tried.toolName}`, [
        [atMs, recovered],
      ]),
    evidence: (toolName, error, atMs, random) => {
      const entry = memory.get(keyOf(toolName, error));
      if (entry === undefined) return undefined;
      const retry = tally(entry.get(RETRY) ?? [], atMs);
      if (isHopeless(retry, enough) && random() < exploreShare) return undefined;
      const alternatives = [...entry]
        .filter(([tried]) => tried !== RETRY)
        .map(([tried, outcomes]) => [tried.slice('alternative:'.length), tally(outcomes, atMs)] as const);
      return { retry, alternatives: Object.fromEntries(alternatives), enough };
    },
    toJSON: () => ({
      version: 1,
      entries: [...memory].flatMap(([key, entry]) => [...entry].map(([tried, outcomes]) => ({ key, tried, outcomes }))),
    }),
  };
}

/**
 * What experience leaves of the possible decisions: without what never helped, and with the first alternative that is
 * not known to be useless.
 */
export function experienced(
  failure: FailureNotification,
  possible: readonly RecoveryDecision[],
): readonly RecoveryDecision[] {
  const { experience, alternatives, toolName, error } = failure;
  if (experience === undefined) return possible;
  const { retry, enough } = experience;
  const useful = alternatives.find((name) => !isHopeless(experience.alternatives[name], enough));
  const noRetry = isHopeless(retry, enough);
  const reason = `none of the last ${retry.tried} retries of ${toolName} after ${error.kind} succeeded`;
  return possible.flatMap((decision): readonly RecoveryDecision[] => {
    if (decision.strategy === 'retry' && noRetry) return [];
    const why =
      noRetry && decision.code === 'transient' ? { ...decision, code: 'experience' as const, reason } : decision;
    if (decision.strategy !== 'alternative') return [why];
    if (useful === undefined) return [];
    return [
      useful === decision.toolName
        ? why
        : {
            ...why,
            toolName: useful,
            code: 'experience',
            reason: `${decision.toolName} never helped after ${error.kind} of ${toolName}, ${useful} may`,
          },
    ];
  });
}
