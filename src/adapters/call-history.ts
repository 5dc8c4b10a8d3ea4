import { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKind } from '../contract/error-kind.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolEvent } from '../contract/event.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { failureText, type Effect } from '../policy/model-text.ts';
import { ToolFailure } from './tool-failure.ts';

/** How a call of a framework's tool ended. */
export type ForeignOutcome = { readonly succeeded: true; readonly value: unknown } | { readonly succeeded: false; readonly failure: ToolFailure };

/** What a call has come to so far, from its own attempts and from what the layer tells. */
export class CallHistory {
  #thrown: ToolExecutionError | undefined;
  #ran = false;
  #mayHaveRun = false;

  attemptBegins(): void {
    this.#thrown = undefined;
  }

  threw(thrown: unknown): void {
    this.#thrown = toToolExecutionError(thrown);
  }

  hear(event: ToolEvent): void {
    if (event.type === 'attempt_canceled') this.#mayHaveRun = true;
    if (event.type !== 'attempt_failed') return;
    const kind = event.error.kind as ToolErrorKind;
    if (event.error.uncertain === true) this.#mayHaveRun = true;
    else if (this.#thrown?.kind === kind ? this.#thrown.executed : TOOL_ERROR_KIND_MEANINGS[kind].executed) this.#ran = true;
  }

  outcome({ error, output }: ToolResultEnvelope): ForeignOutcome {
    if (error === undefined) return { succeeded: true, value: output?.content };
    const kind = error.code as ToolErrorKind;
    const effect: Effect = this.#mayHaveRun ? 'may_have_run' : this.#ran ? 'ran' : 'did_not_run';
    const safeMessage = this.#thrown?.kind === kind ? this.#thrown.safeMessage : undefined;
    return { succeeded: false, failure: new ToolFailure(kind, failureText(kind, effect, { safeMessage })) };
  }
}
