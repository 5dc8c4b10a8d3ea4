import { NEVER, defer, mergeMap, of, retry, throwError, type Observable } from 'rxjs';
import type { CallOutcome } from '../call/result.ts';
import type { TurnContext } from './context.ts';

/** Between two calls of a node whose store gave no answer: a server that is restarted is back after a second or two. */
const STORE_RETRY_MS = 500;

/** A call of a turn's, as it came out. */
export interface Called {
  readonly outcome: CallOutcome;
  readonly executed: boolean;
}

/**
 * Without its store a call of a turn that outlives its process has come to nothing yet: nothing has run, and it is
 * asked for again until the turn is over.
 */
export const calledUntilKnown = (turn: TurnContext, call: () => Observable<Called>): Observable<Called> => {
  if (turn.journal === undefined) return call();
  return defer(() => (turn.isOver ? NEVER : call())).pipe(
    mergeMap((called) => {
      const { error } = called.outcome;
      const isUnknown =
        error?.kind === 'store_unavailable' && error.classification !== 'permanent' && !error.uncertain && !turn.isOver;
      return isUnknown ? throwError(() => error) : of(called);
    }),
    retry({ delay: () => turn.layer.runtime.after(STORE_RETRY_MS) }),
  );
};
