import { Observable, Subject, defer, finalize, map, reduce } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Progress, ToolContext } from '../contract/tool.ts';
import { abortable } from '../operators/abortable.ts';
import { attemptTimeout } from '../operators/attempt-timeout.ts';
import { idleTimeout } from '../operators/idle-timeout.ts';
import type { CallRun } from './call-run.ts';
import type { GuardedTool } from './registry.ts';
import { worded } from './request.ts';

/** The output as the tool's schema gives it. One that does not fit may have had effects, and will not fit the next time. */
const readOutput = ({ tool }: GuardedTool, output: unknown): unknown => {
  if (tool.output === undefined) return output;
  const parsed = tool.output.safeParse(output);
  if (parsed.success) return parsed.data;
  throw new ToolExecutionError('execution_error', `The output is malformed: ${worded(parsed.error)}`, { classification: 'permanent', uncertain: true });
};

/**
 * One physical execution of a tool under its timeouts: gives the last value, checked, and completes.
 * `ownAttempt` counts this tool's attempts from 1.
 */
export function attempt(run: CallRun, guarded: GuardedTool, input: unknown, ownAttempt: () => number): Observable<unknown> {
  const { call, seat } = run;
  const { tool, idleTimeoutMs } = guarded;
  const timeoutMs = Math.min(guarded.timeoutMs, call.hints?.timeoutMs ?? Infinity);
  return defer(() => {
    const number = ++run.attempts;
    const startedAtMs = seat.runtime.now();
    run.attempting = true;
    seat.executed = true;
    run.emit({ type: 'attempt_started', attempt: number });
    const activity$ = idleTimeoutMs === undefined ? undefined : new Subject<Progress>();
    const isOver = (): boolean => !run.attempting || run.attempts !== number;
    const context = (signal: AbortSignal): ToolContext => ({
      signal,
      attempt: ownAttempt(),
      callKey: call.idempotencyKey ?? call.callId,
      ...(call.traceparent === undefined ? {} : { traceparent: call.traceparent }),
      ...(call.baggage === undefined ? {} : { baggage: call.baggage }),
      progress: (report) => {
        if (isOver()) return;
        run.emit({ type: 'progress', attempt: number, report });
        activity$?.next(report);
      },
    });
    // The registry holds tools of any input; each has just checked its own.
    const output$ = abortable((signal) => tool.execute(input as never, context(signal))).pipe(
      reduce<unknown, unknown>((_, value) => value, undefined),
      map((output) => readOutput(guarded, output)),
    );
    const patient$ = activity$ === undefined || idleTimeoutMs === undefined ? output$ : output$.pipe(idleTimeout(idleTimeoutMs, activity$, seat.runtime));
    return patient$.pipe(
      attemptTimeout(timeoutMs, seat.runtime),
      finalize(() => {
        if (isOver()) return;
        run.attempting = false;
        run.emit({ type: 'attempt_canceled', attempt: number, durationMs: seat.runtime.now() - startedAtMs });
      }),
    );
  });
}
