import { concatMap, map, of, type Observable } from 'rxjs';
import type { GuardedTool } from '../../layer/registry.ts';
import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { certain } from './verified.ts';
import { inquirerOf, verification } from './verification.ts';
import type { CallContext } from '../context.ts';
import { modelTextOf } from '../model-words.ts';
import { successResult, type CallOutcome } from '../result.ts';

/**
 * Whether nobody is at it any more, which a record keeps of an uncertain failure: of work that an earlier holder of the
 * key had begun that cannot be seen.
 */
export const haveStopped = ({ lease, site, toolInUse }: CallContext): boolean | undefined =>
  lease?.tookOver === false && site.journal === undefined && toolInUse?.work?.hasStopped;

/** What is asked about where the error itself is no longer there. */
const doubtful = ({ error, result }: CallOutcome): ToolExecutionError =>
  error ?? new ToolExecutionError('store_unavailable', result.error?.message ?? 'It is not known what became of it');

/**
 * What is not there now will not be: nobody is at it any more, it is this tool that may have done it, and this call has
 * not been at it itself.
 */
const isOver = (context: CallContext, { hasStopped, result }: CallOutcome, { tool }: GuardedTool): boolean =>
  hasStopped === true && result.toolName === tool.name && context.attempts === 0 && context.unkept === undefined;

const undone = (context: CallContext, { error, result }: CallOutcome): ToolResultEnvelope => {
  if (error === undefined || result.error === undefined) return result;
  const { uncertain: _, ...known } = result.error;
  const classification = known.terminal ? 'permanent' : 'transient';
  const modelText = modelTextOf(context, { error: certain(error), classification });
  return { ...result, verified: 'not_done', error: { ...known, modelText } };
};

/**
 * Settles the doubt that a key leaves: its outcome was superseded or not recorded, its lease was lost, or what is
 * remembered under it is itself uncertain. What took effect is a success. What did not is certain where what is
 * remembered had ended for good; else it stays uncertain: another process may still be at it.
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
            if (finding === 'not_done' && isOver(context, outcome, guarded))
              return { error: certain(doubt.error), result: undone(context, outcome) };
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
