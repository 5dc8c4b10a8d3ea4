import { Observable, catchError, defer, map, of } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { expiry } from '../operators/attempt-timeout.ts';
import { cutOff } from '../operators/cut-off.ts';
import { classify } from '../policy/classify.ts';
import { CallRun, type CallSeat } from './call-run.ts';
import type { Layer } from './layer.ts';
import type { GuardedTool } from './registry.ts';
import type { Call } from './request.ts';
import { failureResult, successResult, type Failure } from './result.ts';
import { FinalFailure, refuse, runTool } from './tool-run.ts';

/** How a call ended, for the turn it is part of. */
export interface CallOutcome {
  readonly result: ToolResultEnvelope;
  /** Absent when it succeeded. */
  readonly error?: ToolExecutionError;
}

/** What ends a call from outside: its caller's signal, the layer's `close()`, its own deadline. */
const endings = (run: CallRun): Observable<never> =>
  new Observable<never>((subscriber) => {
    const { seat, call, layer } = run;
    const state = (): { executed: boolean; uncertain: boolean } => ({ executed: seat.executed, uncertain: run.attempting });
    const cancel = (): void => subscriber.error(new ToolExecutionError('canceled', 'The caller canceled the call', state()));
    layer.running.add(cancel);
    seat.signal?.addEventListener('abort', cancel, { once: true });
    if (call.deadlineMs < Infinity) {
      const late = (): void => subscriber.error(new ToolExecutionError('deadline_exceeded', 'The deadline of the call passed', state()));
      subscriber.add(expiry(Math.max(0, call.deadlineMs - seat.runtime.now()), seat.runtime).subscribe(late));
    }
    return () => {
      layer.running.delete(cancel);
      seat.signal?.removeEventListener('abort', cancel);
    };
  });

/** Why a call must not even begin. */
const obstacle = ({ call, seat, layer }: CallRun): ToolExecutionError | undefined => {
  if (layer.closed) return new ToolExecutionError('canceled', 'The layer is closed');
  if (seat.signal?.aborted === true) return new ToolExecutionError('canceled', 'The caller had canceled the call before it began');
  return call.deadlineMs <= seat.runtime.now() ? new ToolExecutionError('deadline_exceeded', 'The deadline of the call had passed before it began') : undefined;
};

const failureOf = (thrown: unknown): Failure => {
  if (thrown instanceof FinalFailure) return thrown.failure;
  const error = toToolExecutionError(thrown);
  return { error, classification: classify(error).classification, code: error.kind === 'canceled' ? 'canceled' : 'turn_deadline', breakerState: 'disabled' };
};

/**
 * One call under the whole order, outermost first:
 * `traced(switches(prepareCall(validate(dedupe(alternatives(retry(breaker(attemptHooks(attemptTimeout(provider))))))))))`.
 * Switches, hooks and dedupe have their seats here and are not built yet. Gives exactly one outcome; a tool's failure is a value in it.
 *
 * @param tool the tool, when the plan brought it along; else it is looked up by the call's name
 * @param malformed what was wrong with the request, if anything
 */
export function guardedCall(layer: Layer, call: Call, seat: CallSeat, tool?: GuardedTool, malformed?: ToolExecutionError): Observable<CallOutcome> {
  return defer(() => {
    const run = new CallRun(layer, call, seat);
    layer.retryBudget?.recordCall(run.startedAtMs);
    run.emit({
      type: 'call_started',
      ...(call.toolCallId === undefined ? {} : { toolCallId: call.toolCallId }),
      ...(call.tags === undefined ? {} : { tags: call.tags }),
      ...(call.correlationId === undefined ? {} : { correlationId: call.correlationId }),
    });
    const work$ = defer(() => {
      const error = malformed ?? obstacle(run);
      if (error !== undefined) return refuse(run, error);
      const guarded = tool ?? layer.registry.get(call.toolName);
      return guarded === undefined
        ? refuse(run, new ToolExecutionError('unknown_tool', `No tool is named ${call.toolName}`))
        : runTool(run, guarded, guarded.alternatives);
    });
    return work$.pipe(
      map((output): CallOutcome => {
        const metadata = run.toolName === call.toolName ? undefined : { alternativeFor: call.toolName };
        return { result: successResult(run.history, output, metadata) };
      }),
      cutOff(endings(run)),
      catchError((thrown: unknown) => {
        const failure = failureOf(thrown);
        return of<CallOutcome>({ result: failureResult(run.history, failure), error: failure.error });
      }),
      map((outcome) => {
        run.emit({ type: 'settled', result: outcome.result });
        return outcome;
      }),
    );
  });
}
