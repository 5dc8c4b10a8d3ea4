import type { ApprovalRecord } from '../contract/gate/approval.ts';
import type { BudgetUnit } from '../contract/gate/budget.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { ROUNDING, type Shortage } from '../policy/gate/budget.ts';

const notPermitted = (code: string, message: string, safeMessage: string, cause?: unknown): ToolExecutionError =>
  new ToolExecutionError('not_permitted', message, { code, safeMessage, executed: false, cause });

const UNLESS_ASKED = ' Do not try again unless you are asked to.';

const sentence = (text: string): string => text.replace(/[.\s]+$/, '');

/** A person said no. @param shown what of their words may be told: hosts log the message, a model reads the rest */
export const refusedBy = (
  { by = 'The person who was asked', reason }: ApprovalRecord,
  shown: (text: string) => string,
): ToolExecutionError => {
  const words = reason === undefined ? undefined : shown(reason).toWellFormed();
  const why = words === undefined ? '' : `: ${sentence(words)}`;
  const told = words === undefined ? '' : ` They said: ${JSON.stringify(words)}.`;
  return notPermitted(
    'approval_denied',
    `${shown(by).toWellFormed()} did not approve the call${why}`,
    `A person was asked about this call and did not approve it, so it was not made.${told}${UNLESS_ASKED}`,
  );
};

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const spanOf = (ms: number): string => {
  if (ms >= 2 * HOUR_MS) return `${Math.round(ms / HOUR_MS)} h`;
  return ms >= 2 * MINUTE_MS ? `${Math.round(ms / MINUTE_MS)} min` : `${Math.round(ms / 1_000)} s`;
};

export const EXPIRED = 'approval_expired';

export const expired = (ttlMs: number): ToolExecutionError =>
  notPermitted(
    EXPIRED,
    `Nobody approved the call within ${spanOf(ttlMs)}: the question expired; call again to ask anew, or raise ttlMs`,
    `A person was asked about this call and did not answer within ${spanOf(ttlMs)}, so it was not made.${UNLESS_ASKED}`,
  );

/** Nothing is approved by a misunderstanding. */
export const malformed = (): ToolExecutionError =>
  notPermitted(
    'approval_malformed',
    'The answer about the call was no answer, and so a no: an answer is true, false, or { approved, by?, reason? }',
    `A person was asked about this call and their answer could not be read, so it was not made.${UNLESS_ASKED}`,
  );

export const unasked = (cause: ToolExecutionError): ToolExecutionError =>
  notPermitted(
    'approval_unasked',
    `Nobody could be asked to approve the call: ${cause.message}`,
    `This call needs a person’s approval, and nobody could be asked, so it was not made.${UNLESS_ASKED}`,
    cause,
  );

/** Nobody could tell it from another input. */
export const unwritten = (): ToolExecutionError =>
  notPermitted(
    'approval_input_unwritten',
    'The input cannot be written as JSON, so that nobody could say whether it is still the one that may run',
    `This call can need a person’s approval, and its input could not be kept, so it was not made.${UNLESS_ASKED}`,
  );

/** Nobody can say what would run. */
export const changing = (): ToolExecutionError =>
  notPermitted(
    'approval_input_changes',
    'The input was changed each time after it was decided whether it may run; change it in prepareCall, not in place',
    `This call needs a person’s approval, and its input changed each time, so it was not made.${UNLESS_ASKED}`,
  );

const WORDS: Readonly<Record<BudgetUnit, string>> = { calls: 'calls', usd: 'US dollars', tokens: 'tokens' };
/** As people write money and counts: no more digits than say something. */
const shown = (amount: number): string => String(Number(amount.toPrecision(6)));

/** A budget is spent. */
export const spentError = ({ unit, limit, ...rest }: Shortage, per: string): ToolExecutionError => {
  const left = rest.left <= limit * ROUNDING ? 0 : rest.left;
  const state = left === 0 ? 'used up' : 'too small for this call';
  const message = `The ${per}'s budget is ${state}: ${shown(left)} of ${shown(limit)} ${WORDS[unit]} left`;
  return new ToolExecutionError('limit_exceeded', message, {
    code: 'budget_spent',
    safeMessage: `${message}, so the call was not made. Do not try again unless you are told that there is more.`,
  });
};
