import { ToolExecutionError } from '../../contract/tool-error.ts';

/** The kinds of a call that was turned away before it ran, where only the words of whoever answered say so. */
const CLAIMED: ReadonlySet<string> = new Set(['invalid_parameters', 'unknown_tool', 'not_permitted']);

/**
 * Whether an error of another program rests on that program's words alone. A tool that ran can write the same words,
 * with anything it likes in them: they are neither for a model nor proof that nothing ran.
 */
export const isClaim = ({ kind, executed }: ToolExecutionError): boolean => CLAIMED.has(kind) && !executed;

const reworded = (error: ToolExecutionError, certain: boolean, safeMessage: string | undefined): ToolExecutionError => {
  const { kind, message, code, status, retryAfterMs, classification, details, cause } = error;
  return new ToolExecutionError(kind, message, {
    code,
    status,
    retryAfterMs,
    classification,
    details,
    cause,
    executed: !certain,
    uncertain: !certain,
    safeMessage,
  });
};

/** A claim that was found to be true: nothing ran. @param safeMessage what was found, in words of ours */
export const confirmed = (claim: ToolExecutionError, safeMessage?: string): ToolExecutionError =>
  reworded(claim, true, safeMessage);

/** A claim that could not be confirmed: its tool may have run, and its words are for the host alone. */
export const unconfirmed = (claim: ToolExecutionError): ToolExecutionError => reworded(claim, false, undefined);
