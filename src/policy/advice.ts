import { TOOL_ERROR_KIND_TRAITS, type Classification, type ToolErrorKind } from '../contract/error-kind.ts';
import type { Effects } from '../contract/policy.ts';
import { statusWords, type Remedy } from './status-words.ts';

/** Whether the tool of a call ran, as far as can be known; `undone`: it did, and was found to have had no effect. */
export type Effect = 'ran' | 'did_not_run' | 'may_have_run' | 'undone';

/** What of a failure decides whether the model should make the call again. What is left out is not known. */
export interface FailureFacts {
  /** Default: the class of the kind, else transient, as has it. */
  readonly classification?: Classification | undefined;
  /** The HTTP status that the tool's service answered with. */
  readonly status?: number | undefined;
  /** When the tool's service, or the breaker before it, asked to be called again. Negative or `NaN`: not at all. */
  readonly retryAfterMs?: number | undefined;
  /**
   * What the tool does to the world. Default `mutating`: of a tool that nothing is known of, nothing is to be repeated.
   */
  readonly effects?: Effects | undefined;
  /** How often the call was attempted already, before the model reads of it. Default 1. */
  readonly attempts?: number | undefined;
  /** The breaker is open after this failure: the next call would be refused. */
  readonly resting?: boolean | undefined;
}

/** For a failure that may be over in a moment. */
export const NOW = 'You can try again.';
const LATER = 'Trying again at once does not help; it may help later.';
const NEVER = 'Do not try again.';
/** For a call that a host's hook blocked: only the host knows what would make it pass. */
export const WHILE_BLOCKED = 'Do not try again unless what it was blocked for has changed.';
/** For a call that would fail again as it is. */
export const AS_IT_IS = 'Do not try again with the same input.';
const UNLESS_ASKED = 'Do not try again unless you are asked to.';
/** For a mutating call that may have taken effect. */
export const CHECK = 'Check first whether it took effect.';

/** For a call that reached its tool and was refused for good. */
const REMEDIES: Readonly<Record<Remedy, string>> = {
  input: 'Do not try again with the same input: correct it first.',
  state: 'Do not try again with the same input: look at the present state first.',
  credentials: 'Do not try again before the credentials are renewed.',
  access: 'Do not try again before access is given.',
  payment: 'Do not try again before it is paid for.',
  later: NEVER,
  none: NEVER,
};

/** A sentence of ours about an input that does not fit, with what to do about it. */
export const correctable = (problem: string): string => `${problem.replace(/[.\s]+$/, '')}. ${REMEDIES.input}`;

/** A text without what differs from one time to the next, to see whether a call failed as it did before. */
export const untimed = (text: string): string => text.replace(/Try again in \d+ (?:s|min|h), not before\./i, '');

/** For kinds that decide the advice by themselves, whatever else is known. */
const BY_KIND: Readonly<Partial<Record<ToolErrorKind, string>>> = {
  unknown_tool: 'Do not try again: use a tool that is there.',
  not_permitted: NEVER,
  invalid_parameters: REMEDIES.input,
  limit_exceeded: LATER,
  canceled: UNLESS_ASKED,
  dependency_failed: 'Do not try again before the call that it needs has succeeded.',
  conflict: NEVER,
  blocked: WHILE_BLOCKED,
  duplicate_in_flight: 'Do not make it a second time: try again later to have its result.',
};

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A wait in the largest unit that says it well, rounded up: who comes early is refused. */
const waitOf = (ms: number): string => {
  if (ms <= 2 * MINUTE_MS) return `${Math.ceil(ms / 1_000)} s`;
  return ms <= 2 * HOUR_MS ? `${Math.ceil(ms / MINUTE_MS)} min` : `${Math.ceil(ms / HOUR_MS)} h`;
};

/** When a transient failure may be over. @param isSlow its kind says that a moment does not cure it */
const whenOf = ({ retryAfterMs, status, attempts = 1, resting = false }: FailureFacts, isSlow: boolean): string => {
  if (retryAfterMs !== undefined && !(retryAfterMs >= 0)) return NEVER;
  if (retryAfterMs !== undefined && retryAfterMs > 0) return `Try again in ${waitOf(retryAfterMs)}, not before.`;
  const isBusy = statusWords(status)?.remedy === 'later';
  if (attempts > 1) return `It was tried ${attempts} times. ${LATER}`;
  return resting || isSlow || isBusy ? LATER : NOW;
};

/** Kinds that are transient for a reason which a moment does not cure. */
const SLOW: ReadonlySet<ToolErrorKind> = new Set<ToolErrorKind>([
  'circuit_open',
  'retry_budget_exhausted',
  'store_unavailable',
]);

/**
 * Whether trying again can help, and when, in a sentence or two for a model. The words are always the same for
 * the same advice: `Do not try again`, `Do not try again with the same input`, `You can try again`, `Try again in 30 s,
 * not before`, `it may help later`, `Check first whether it took effect`.
 */
export function adviceOf(kind: ToolErrorKind, effect: Effect, facts: FailureFacts = {}): string {
  const {
    classification = TOOL_ERROR_KIND_TRAITS[kind].classification ?? 'transient',
    status,
    effects = 'mutating',
  } = facts;
  const inDoubt = effect === 'may_have_run' && effects !== 'read';
  const said = BY_KIND[kind];
  if (said !== undefined) return inDoubt ? `${CHECK} ${said}` : said;
  if (classification === 'permanent') {
    const remedy = statusWords(status)?.remedy;
    const advice = remedy === undefined && !SLOW.has(kind) ? AS_IT_IS : REMEDIES[remedy ?? 'none'];
    return inDoubt ? `${CHECK} ${advice}` : advice;
  }
  const when = whenOf(facts, SLOW.has(kind));
  if (inDoubt && when === NEVER) return `${CHECK} ${NEVER}`;
  return inDoubt ? `${CHECK} Only if it did not: ${when.charAt(0).toLowerCase()}${when.slice(1)}` : when;
}
