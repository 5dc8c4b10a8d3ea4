import { NEVER, concatMap, defer, from, of, switchMap, toArray, type Observable } from 'rxjs';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { foundOf, unknownSince, type VerifyReport } from '../../policy/settle/finding.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import { refused } from '../failure.ts';
import { readInput } from '../request.ts';
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

/** In a turn of a fleet nobody looks at each call: what may have taken effect is for people to find out. */
const unasked = (toolName: string): ToolExecutionError =>
  new ToolExecutionError(
    'duplicate_in_flight',
    `The worker that ran ${toolName} was given up, and the tool may have taken effect: it is not run again. ` +
      'Find out; and give it verify, or enforcesKey where its resource checks the key, ' +
      'so that such a turn goes on by itself',
    { classification: 'permanent', uncertain: true },
  );

/** The tools that the process that held the key may have called: this one, and what may stand in for it. */
const tried = ({ context, guarded, alternatives }: ToolExecution): readonly GuardedTool[] => [
  guarded,
  ...alternatives
    .map((name) => context.layer.registry.get(name))
    .filter((other) => other !== undefined)
    .filter(({ effects }) => effects !== 'read'),
];

const found = (execution: ToolExecution, guarded: GuardedTool): Observable<VerifyReport> => {
  const { context } = execution;
  const { verify, tool } = guarded;
  if (verify === undefined) return of(unknownSince(`${tool.name} may have been called, and cannot be verified`));
  // An alternative reads the input in its own way.
  const { input, error } =
    guarded === execution.guarded ? { input: execution.input } : readInput(tool.input, context.call.input);
  if (error !== undefined) return of(unknownSince(error.message));
  return verification(inquirerOf(context), { guarded, input, error: lapsed(), attempt: 0 }, verify);
};

/**
 * Whether running them again could have an effect twice that nobody can look for: in a turn that moved. Elsewhere who
 * asks again under the key has decided that.
 */
const isForbidden = (execution: ToolExecution): boolean => {
  const { context, guarded } = execution;
  if (context.site.journal === undefined || context.call.hints?.expectedRetrySafe === true) return false;
  return tried(execution).some(
    (tool) =>
      tool.effects !== 'read' && !tool.enforcesKey && (tool.verify === undefined || guarded.verify === undefined),
  );
};

/** Whether it may run although it is not known what another process did under its key. */
const mayRepeat = (execution: ToolExecution): boolean => {
  const { context, guarded } = execution;
  if (isSafetyCritical(context, guarded)) return false;
  // A resource that checks the key knows nothing of what was done at another one.
  const isKnownToAll = tried(execution).every(({ effects, enforcesKey }) => effects === 'read' || enforcesKey);
  return isKnownToAll || context.call.hints?.expectedRetrySafe === true;
};

/**
 * A call that has taken its key over from one whose lease passed, as when its process died: whether that took effect is
 * asked before anything runs. Done: the call succeeds by it. Not done: it runs. Not known: it is refused, unless its
 * resource checks the key. One that cannot be asked runs again; in a turn of a fleet, which asks for that by itself,
 * only one that only reads, or whose resource checks the key.
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
    context.uncertain = tried(execution).some(({ effects }) => effects !== 'read');
    if (guarded.verify === undefined && !isForbidden(execution)) return attempts$;
    if (guarded.verify === undefined) return refused(context, unasked(guarded.tool.name));
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
