import { catchError, defer, filter, map, of, switchMap, type Observable } from 'rxjs';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import type { Gates } from '../../layer/gate-port.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { CallKey } from '../../policy/key/call-key.ts';
import type { CallContext } from '../context.ts';
import { refusedCall } from '../failure.ts';
import type { CallOutcome } from '../result.ts';

const needsApproval = ({ call }: CallContext, guarded: GuardedTool): boolean =>
  guarded.needsApproval !== undefined || (call.needsApproval ?? false) !== false;

/** Whether something beside breaker and hooks has to let the attempts at a tool pass. */
export const isGated = (context: CallContext, guarded: GuardedTool): boolean =>
  (context.layer.gates?.hasBudget === true && context.call.unlimited !== true) || needsApproval(context, guarded);

/**
 * What has to let the attempts at a tool pass.
 * @throws ToolExecutionError for a call that needs approval where nobody could say yes: it fails closed
 */
export const gatesOf = (context: CallContext, guarded: GuardedTool): Gates => {
  const { gates } = context.layer;
  if (gates !== undefined && (gates.hasApprovals || !needsApproval(context, guarded))) return gates;
  const why = `Calls of ${context.toolName} need approval, and nobody can be asked`;
  throw new ToolExecutionError('not_permitted', `${why}; give createSpillway approvals, of spillway/gates`, {
    code: 'approval_unasked',
  });
};

/**
 * A person is asked before the call claims its key: nothing is held meanwhile, and a process that dies while it waits
 * leaves nothing in doubt. Where the call may get another's result nobody is asked; if it comes to run after all, its
 * attempt asks.
 */
export const approvedFirst =
  (context: CallContext, guarded: GuardedTool, input: unknown, key: CallKey | undefined) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    if (!needsApproval(context, guarded)) return source;
    return defer(() => gatesOf(context, guarded).first({ context, guarded, input }, key?.key)).pipe(
      map(() => source),
      catchError((error: unknown) => of(refusedCall(context, toToolExecutionError(error)))),
      // Whoever heard of the answer may have ended the call.
      filter(() => !context.isOver),
      switchMap((then$) => then$),
    );
  };
