import { Observable, catchError, defer, of, tap, throwError } from 'rxjs';
import { LlmError } from '../../contract/llm-error.ts';
import type { RetryPolicy } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import { toLlmError } from '../../errors/llm.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { attemptTimeout } from '../../operators/attempt-timeout.ts';
import { retryBackoff } from '../../operators/retry-backoff.ts';
import { AnswerBuilder } from './answer-builder.ts';
import type { AgentMessage } from '../message.ts';
import type { AgentModel, ModelEvent, ModelTool, ModelUsage } from '../model.ts';

/**
 * What one step of a model gives: pieces to show, failures on the way, and one of `answered` and `gave_up` at the end.
 */
export type ModelStepEvent =
  | { readonly type: 'text' | 'thinking'; readonly text: string }
  | {
      readonly type: 'failed';
      readonly error: LlmError;
      /** Tokens that the broken answer had used, as far as it told. */
      readonly usage: ModelUsage;
    }
  | { readonly type: 'answered'; readonly builder: AnswerBuilder }
  | { readonly type: 'gave_up'; readonly error: LlmError };

export interface ModelStepOptions {
  readonly model: AgentModel;
  readonly system: string | undefined;
  readonly tools: readonly ModelTool[];
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  readonly runtime: Runtime;
}

/** An answer that breaks off after its beginning is asked for again as a whole, this often. */
const PARTIAL_RETRIES = 1;

const brokenOff = (): LlmError =>
  new LlmError('network_error', 'The answer of the model ended before the model said why it stopped');

const entered = (thrown: unknown, { timeoutMs, runtime }: ModelStepOptions): LlmError => {
  // Our own limit; whatever else timed out is read like any error.
  if (isToolExecutionError(thrown) && thrown.kind === 'timeout')
    return new LlmError('timeout', `The model did not answer within ${timeoutMs} ms`, { cause: thrown });
  return toLlmError(thrown, () => runtime.wallNow());
};

/**
 * One step: asks the model, shows what it says, and tries again what may pass. Nothing of an answer is used before it
 * is whole, so that asking again does nothing twice.
 */
export function modelStep(messages: readonly AgentMessage[], options: ModelStepOptions): Observable<ModelStepEvent> {
  const { model, system, tools, retry, timeoutMs, runtime } = options;
  return defer(() => {
    let partialFailures = 0;
    let givenUp: LlmError | undefined;
    const attempt$ = new Observable<ModelStepEvent>((subscriber) => {
      const builder = new AnswerBuilder();
      let begun = false;
      const fail = (thrown: unknown): void => {
        const error = entered(thrown, options);
        if (begun) partialFailures++;
        givenUp = partialFailures > PARTIAL_RETRIES ? error : undefined;
        subscriber.next({ type: 'failed', error, usage: builder.usage });
        if (givenUp === undefined) return subscriber.error(error);
        subscriber.next({ type: 'gave_up', error });
        subscriber.complete();
      };
      const answer$ = abortable((signal) =>
        model(messages, tools, { signal, ...(system === undefined ? {} : { system }) }),
      );
      const onEvent = (event: ModelEvent): void => {
        begun = true;
        builder.add(event);
      };
      subscriber.add(
        // In the stream, not in its subscriber: an event that is none fails the answer, and nothing else.
        answer$.pipe(attemptTimeout(timeoutMs, runtime), tap(onEvent)).subscribe({
          next: (event) => {
            if ((event.type === 'text' || event.type === 'thinking') && event.text !== '')
              subscriber.next({ type: event.type, text: event.text });
          },
          error: fail,
          complete: () => {
            if (builder.stop === undefined) return fail(brokenOff());
            subscriber.next({ type: 'answered', builder });
            subscriber.complete();
          },
        }),
      );
    });
    return attempt$.pipe(
      retryBackoff(retry, runtime),
      catchError((thrown: unknown) =>
        thrown instanceof LlmError ? of({ type: 'gave_up' as const, error: thrown }) : throwError(() => thrown),
      ),
    );
  });
}
