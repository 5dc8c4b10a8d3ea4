import { NEVER, concatMap, defer, from, of, switchMap, toArray, type Observable } from 'rxjs';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { foundOf, unknownSince, type Found } from '../../policy/settle/finding.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import { refused } from '../failure.ts';
import { isSafetyCritical } from '../idempotency.ts';
import type { CallOutcome } from '../result.ts';
import type { ToolExecution } from './execution.ts';
import { inquirerOf, verification } from './verification.ts';

const lapsed = (): ToolExecutionError =>
  new ToolExecutionError(
    'duplicate_in_flight',
    'An earlier call under this idempotency key lost its lease and may have taken effect, and that could not be found out; ask again under the same key',
    { uncertain: true },
  );

/** The tools that the process that held the key may have called: this one, and what may stand in for it. */
const tried = ({ context, guarded, alternatives }: ToolExecution): readonly GuardedTool[] => [
  guarded,
  ...alternatives
    .map((name) => context.layer.registry.get(name))
    .filter((other) => other !== undefined)
    .filter(({ effects }) => effects !== 'read'),
];

const found = (execution: ToolExecution, guarded: GuardedTool): Observable<Found> => {
  const { context, input } = execution;
  const { verify, tool } = guarded;
  if (verify === undefined) return of(unknownSince(`${tool.name} may have been called, and cannot be verified`));
  return verification(inquirerOf(context), { guarded, input, error: lapsed(), attempt: 0 }, verify);
};

/** Whether it may run although it is not known what another process did under its key. */
const mayRepeat = ({ context, guarded }: ToolExecution): boolean =>
  !isSafetyCritical(context, guarded) && (guarded.enforcesKey || context.call.hints?.expectedRetrySafe === true);

/**
 * A call that has taken its key over from one whose lease passed, as when its process died: whether that took effect is
 * asked before anything runs. Done: the call succeeds by it. Not done: it runs. Not known: it is refused, unless its
 * resource checks the key.
 *
 * ```
 * verify        --(n|)               not done
 * attempts        ----(a|)
 * afterCrash    ------(a|)
 * ```
 */
export const afterCrash = (execution: ToolExecution, attempts$: Observable<CallOutcome>): Observable<CallOutcome> =>
  defer(() => {
    const { context, guarded } = execution;
    if (guarded.verify === undefined) return attempts$;
    context.uncertain = true;
    return from(tried(execution)).pipe(
      concatMap((tool) => found(execution, tool)),
      toArray(),
      switchMap((all) => {
        if (context.isOver) return NEVER;
        const { finding, output } = foundOf(all);
        context.verified = finding;
        if (finding === 'done') return of(execution.foundDone(output?.value));
        if (finding === 'not_done') execution.foundUndone();
        return finding === 'not_done' || mayRepeat(execution) ? attempts$ : refused(context, lapsed());
      }),
    );
  });
