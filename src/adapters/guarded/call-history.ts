import { identity } from 'rxjs';
import type { ToolErrorKind } from '../../contract/error-kind.ts';
import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import { failureText } from '../../policy/model-text.ts';
import { ToolFailure } from './tool-failure.ts';

/** An error that a framework has for answers: a tool throws it to say to the model what went wrong. */
export interface FailureAnswer {
  /** What the model is to read, as text. */
  readonly text: string;
  /** The same as the framework's API takes it, which can be more than text. */
  readonly content: unknown;
  /** The error itself, by which the framework knows it. */
  readonly thrown: unknown;
}

/** How a call of a framework's tool ended. */
export type ForeignOutcome =
  | { readonly succeeded: true; readonly value: unknown }
  /** `answer`: what the tool threw for the model, and the call failed with. `uncertain`: it may have taken effect. */
  | {
      readonly succeeded: false;
      readonly failure: ToolFailure;
      readonly answer?: FailureAnswer;
      readonly uncertain?: true;
    };

/**
 * Remembers what a call's present attempt threw for the model, and makes of the call's result the outcome for its
 * framework.
 */
export class CallHistory {
  #answer: FailureAnswer | undefined;
  #given: { readonly value: unknown } | undefined;

  attemptBegins(): void {
    this.#answer = undefined;
    this.#given = undefined;
  }

  /** Notes what the present attempt gave. */
  gave(value: unknown): unknown {
    this.#given = { value };
    return value;
  }

  /** Notes that the present attempt failed with an answer for the model. */
  answered(answer: FailureAnswer): void {
    this.#answer = answer;
  }

  /** @param adopt what is made of a value that is not what the tool gave */
  outcome({ error, output }: ToolResultEnvelope, adopt: (value: unknown) => unknown = identity): ForeignOutcome {
    if (error === undefined) {
      const value = output?.content;
      const isOwn = this.#given !== undefined && Object.is(this.#given.value, value);
      return { succeeded: true, value: isOwn ? value : adopt(value) };
    }
    const kind = error.code as ToolErrorKind;
    // A result of another copy of this package may lack the text.
    const text = error.modelText ?? failureText(kind, 'may_have_run');
    // Only where it is what the call failed with, and not a limit or a breaker.
    const answer = this.#answer?.text === text ? this.#answer : undefined;
    return {
      succeeded: false,
      failure: new ToolFailure(kind, text),
      ...(answer === undefined ? {} : { answer }),
      ...(error.uncertain === true ? { uncertain: true } : {}),
    };
  }
}
