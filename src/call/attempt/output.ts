import { Observable, Subject } from 'rxjs';
import type { Progress } from '../../contract/tool.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { AttemptSignal } from '../../operators/work/attempt-signal.ts';
import { heldIdleTimeout, heldTimeout } from '../../operators/timing/unless-waiting.ts';
import { lastValue } from '../../operators/work/last-value.ts';
import { settling, startWork } from '../../operators/work/output.ts';
import { tornDownAlone } from '../../operators/work/torn-down-alone.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import { fit, ownInput } from '../request.ts';
import { AttemptContext } from './tool-context.ts';
import type { ToolExecution } from './execution.ts';

/** What a tool gives one by one: of that, the last. */
const lastOf =
  (execution: ToolExecution, own: AttemptSignal) =>
  (stream: Observable<unknown>): Observable<unknown> =>
    stream.pipe(
      tornDownAlone,
      settling(own, () => execution.answered()),
      lastValue,
    );

/**
 * What a tool gave as its schema gives it. It is read before the tool is taken down: some of it can be read only now.
 * @throws ToolExecutionError for one that does not fit
 */
export const fitted = ({ tool }: GuardedTool, given: unknown): unknown => {
  const { value, problem, cause } = fit(tool.output, given);
  if (problem === undefined) return value;
  // It may have had effects, and its output will not fit the next time either.
  throw new ToolExecutionError('execution_error', `The output is malformed: ${problem}`, {
    classification: 'permanent',
    uncertain: true,
    cause,
  });
};

/**
 * One run of a tool, with a signal of its own, under its limits: emits the one output, and aborts the signal when it is
 * unsubscribed before.
 */
export function toolOutput(execution: ToolExecution, attempt: number): Observable<unknown> {
  const { context, guarded, input, reservation } = execution;
  const { around } = context.layer;
  const { idleTimeoutMs } = guarded;
  const { runtime } = context.site;
  const activity$ = idleTimeoutMs === undefined ? undefined : new Subject<void>();
  let waiting$: Observable<boolean> | undefined;
  const output$ = new Observable<unknown>((subscriber) => {
    const own = new AttemptSignal();
    execution.signal = own;
    const hear = (report: Progress): void => {
      if (own.isOver) return;
      activity$?.next();
      context.emit({ type: 'progress', attempt: context.attempts, report });
    };
    const hold = (given: Observable<boolean>): void => {
      waiting$ = given;
    };
    // The registry holds tools of any input; each has just checked its own.
    const { work } = execution;
    const execute = (): unknown => {
      const given = new AttemptContext(context, attempt, own.forMore, hear, hold);
      if (reservation !== undefined) given.usage = (used) => void (own.isOver || reservation.report(used));
      const result = guarded.tool.execute((context.bare ? input : ownInput(input)) as never, given);
      return work === undefined ? result : work.watch(result);
    };
    const start = (): unknown => (around === undefined ? execute() : around(context.call.callId, attempt, execute));
    startWork(subscriber, start, own, lastOf(execution, own));
  });
  const { limitMs } = execution;
  const limited$ = limitMs === Infinity ? output$ : output$.pipe(heldTimeout(limitMs, runtime, () => waiting$));
  // Outside, and so armed after the hard limit: where both pass in one instant, it is the hard one that was broken.
  return idleTimeoutMs === undefined || activity$ === undefined
    ? limited$
    : limited$.pipe(heldIdleTimeout(idleTimeoutMs, activity$, runtime, () => waiting$));
}
