import { concatMap, map, of, type Observable } from 'rxjs';
import type { GuardedTool } from '../../layer/registry.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { inquirerOf, verification } from './verification.ts';
import type { CallContext } from '../context.ts';
import { successResult, type CallOutcome } from '../result.ts';

/** What is asked about where the error itself is no longer there. */
const doubtful = ({ error, result }: CallOutcome): ToolExecutionError =>
  error ?? new ToolExecutionError('store_unavailable', result.error?.message ?? 'It is not known what became of it');

/**
 * Settles the doubt that a key leaves: its outcome was superseded or not recorded, its lease was lost, or what is
 * remembered under it is itself uncertain. What took effect is a success. What did not stays uncertain:
 * another process may still be at it.
 */
export const settlingDoubt =
  (context: CallContext, guarded: GuardedTool, input: unknown) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    const { verify } = guarded;
    if (verify === undefined) return source;
    return source.pipe(
      concatMap((outcome) => {
        const { result } = outcome;
        if (result.error?.uncertain !== true || context.verified === 'unknown' || context.isOver) return of(outcome);
        const doubt = { guarded, input, error: doubtful(outcome), attempt: 0 };
        return verification(inquirerOf(context), doubt, verify).pipe(
          map(({ finding, output }): CallOutcome => {
            // That it is not there now does not say that it will not be.
            if (finding !== 'done') return { ...outcome, result: { ...result, verified: 'unknown' } };
            const { unkept } = context;
            const success = successResult(context.history, output?.value);
            return { result: unkept === undefined ? success : { ...success, recorded: unkept } };
          }),
        );
      }),
    );
  };
