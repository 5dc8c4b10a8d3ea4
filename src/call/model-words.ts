import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { limitOf } from '../operators/attempt-timeout.ts';
import { failureText, type Effect } from '../policy/model-text.ts';
import type { CallContext } from './context.ts';
import type { Failure } from './result.ts';

/** The layer's own sentences about a failure; none of the tool's text is in them. */
const OURS: ReadonlySet<ToolErrorKind> = new Set<ToolErrorKind>([
  'canceled',
  'circuit_open',
  'dependency_failed',
  'deadline_exceeded',
  'duplicate_in_flight',
  'blocked',
  'retry_budget_exhausted',
  'store_unavailable',
]);

const effectOf = ({ uncertain, executed, attempts, verified }: CallContext, error: ToolExecutionError): Effect => {
  if (uncertain || error.uncertain) return 'may_have_run';
  if (verified === 'not_done') return 'undone';
  return executed || (attempts > 0 && error.executed) ? 'ran' : 'did_not_run';
};

/** What the tool itself said, without secrets, where its policy wants it shown. */
const ownWordsOf = (context: CallContext, error: ToolExecutionError): string | undefined => {
  const { attempts, toolInUse, layer, verified } = context;
  const isShown = toolInUse?.guarded.showsErrors === true && attempts > 0;
  // Of an attempt that was found to have done nothing the limit is no longer known: a timeout is mostly ours.
  const isLimit = limitOf(error) !== undefined || (error.kind === 'timeout' && verified === 'not_done');
  if (!isShown || OURS.has(error.kind) || isLimit) return undefined;
  return layer.trace.redactor.text(error.message);
};

/** When it may be called again: what its service asked for, and not while its breaker is open. */
const retryAfterMsOf = ({ toolInUse }: CallContext, { error, breakerState }: Failure): number | undefined => {
  const { retryAfterMs } = error;
  // It asked not to be called again.
  if (retryAfterMs !== undefined && !(retryAfterMs >= 0)) return retryAfterMs;
  // One that a person opened stays so until a person closes it.
  if (breakerState === 'forced_open') return undefined;
  const state = breakerState === 'open' ? toolInUse?.breaker?.state : undefined;
  const restsMs = state?.type === 'open' ? state.retryAfterMs : undefined;
  return restsMs === undefined ? retryAfterMs : Math.max(restsMs, retryAfterMs ?? 0);
};

/** A failed call as a model reads it. It is part of the result, and so of what is replayed of it. */
export function modelTextOf(context: CallContext, failure: Failure): string {
  const { error, classification, breakerState } = failure;
  const { toolInUse, resolved, attempts } = context;
  return failureText(error.kind, effectOf(context, error), {
    safeMessage: error.safeMessage,
    own: ownWordsOf(context, error),
    classification,
    // Without an attempt nobody has answered: the 422 of a key's conflict is the layer's own.
    status: attempts > 0 ? error.status : undefined,
    retryAfterMs: retryAfterMsOf(context, failure),
    effects: (toolInUse?.guarded ?? resolved)?.effects,
    attempts,
    resting: breakerState === 'open' || breakerState === 'forced_open',
  });
}
