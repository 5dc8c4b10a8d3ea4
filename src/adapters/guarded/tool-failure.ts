import type { ToolErrorKind } from '../../contract/error-kind.ts';

/** Under this symbol LangChain's errors say whether its own retries may repeat what they came from. */
const RETRYABLE = Symbol.for('langchain.errors.retryable');

/**
 * How a guarded tool fails, for frameworks that take failures as errors. They hand a model its text, its `toString()`,
 * its stack or its fields, and some print its cause: so all of them say the same, and there is no cause. What was
 * thrown is told by the layer's `failures$`.
 *
 * @example
 * const failure = new ToolFailure('timeout', 'The tool did not answer in time; it may have taken effect.');
 * String(failure) === failure.message; // true
 */
export class ToolFailure extends Error {
  /** Always `ToolFailure`: frameworks print it, so it says nothing of the error that the tool threw. */
  override readonly name: string = 'ToolFailure';
  /** Why the call failed, as one of the closed list of kinds. */
  readonly kind: ToolErrorKind;

  constructor(kind: ToolErrorKind, text: string) {
    super(text);
    this.kind = kind;
    // The stack of an adapter helps nobody, and its paths are none of a model's business.
    Object.defineProperty(this, 'stack', { value: text, writable: true, configurable: true });
    // What may be tried again the layer has tried again; a retry around it would make a payment a second time.
    Object.defineProperty(this, RETRYABLE, { value: false, configurable: true });
  }

  override toString(): string {
    return this.message;
  }
}
