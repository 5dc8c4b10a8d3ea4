import { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKind } from '../contract/error-kind.ts';

/** Whether a tool ran, as far as is known. */
export type RunState = 'ran' | 'did_not_run' | 'may_have_run';

const SENTENCES: Readonly<Record<RunState, string>> = {
  ran: 'It ran.',
  did_not_run: 'It did not run.',
  may_have_run: 'It may have run and taken effect.',
};

/** What the description of a kind says already. */
const SAID: Readonly<Partial<Record<ToolErrorKind, RunState>>> = {
  timeout: 'may_have_run',
  execution_error: 'ran',
  circuit_open: 'did_not_run',
  dependency_failed: 'did_not_run',
  store_unavailable: 'did_not_run',
};

/**
 * What a model may read of a failed call: a safe message as it is, anything else as its kind's description and whether the tool ran.
 *
 * @param safeMessage a text that its author said a model may see. An empty one is none, and lone surrogates are replaced: APIs refuse both
 */
export function failureText(kind: ToolErrorKind, state: RunState, safeMessage?: string): string {
  if (safeMessage !== undefined && safeMessage.trim() !== '') return safeMessage.toWellFormed();
  const { description } = TOOL_ERROR_KIND_MEANINGS[kind];
  return SAID[kind] === state ? description : `${description} ${SENTENCES[state]}`;
}

/**
 * How a guarded tool fails, for frameworks that take failures as errors. They hand a model its text, its `toString()`, its stack or its fields,
 * and some print its cause: so all of them say the same, and there is no cause. What was thrown is told by the layer's `failures$`.
 *
 * @example
 * const failure = new ToolFailure('timeout', 'The tool did not answer in time; it may have taken effect.');
 * String(failure) === failure.message; // true
 */
export class ToolFailure extends Error {
  override readonly name: string = 'ToolFailure';
  readonly kind: ToolErrorKind;

  constructor(kind: ToolErrorKind, text: string) {
    super(text);
    this.kind = kind;
    // The stack of an adapter helps nobody, and its paths are none of a model's business.
    Object.defineProperty(this, 'stack', { value: text, writable: true, configurable: true });
  }

  override toString(): string {
    return this.message;
  }
}
