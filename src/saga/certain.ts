import type { CallContext } from '../call/context.ts';
import type { CallOutcome } from '../call/result.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';

/** Whether a call that did not succeed is known to have done nothing. */
export const isCertain = (
  { attempts, uncertain, executed, hasLeft }: CallContext,
  outcome: CallOutcome | undefined,
): boolean => {
  // It goes on, for others.
  if (hasLeft) return false;
  if (attempts === 0) return !uncertain;
  if (outcome === undefined) return !executed;
  return !uncertain && outcome.result.error?.uncertain !== true;
};

/** Whether a call that was to rely on another's effect is known not to: not where it was ended while that was kept. */
export const isRefused = ({ ending }: CallContext, error: ToolResultEnvelope['error']): boolean =>
  error !== undefined && error.code !== 'store_unavailable' && ending === undefined;
