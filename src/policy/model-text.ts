import { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKind } from '../contract/error-kind.ts';

/** Whether the tool of a call ran, as far as can be known. */
export type Effect = 'ran' | 'did_not_run' | 'may_have_run';

/** How a model is told. */
export const EFFECT_SENTENCES: Readonly<Record<Effect, string>> = {
  ran: 'The tool ran.',
  did_not_run: 'The tool did not run.',
  may_have_run: 'The tool may have run and taken effect.',
};

/** What the description of a kind says about the tool, by its words or by what the kind is. The others leave it open. */
const EFFECT_SAID: Readonly<Partial<Record<ToolErrorKind, Effect>>> = {
  unknown_tool: 'did_not_run',
  not_permitted: 'did_not_run',
  invalid_parameters: 'did_not_run',
  timeout: 'may_have_run',
  execution_error: 'ran',
  circuit_open: 'did_not_run',
  dependency_failed: 'did_not_run',
  deadline_exceeded: 'did_not_run',
  conflict: 'did_not_run',
  blocked: 'did_not_run',
  duplicate_in_flight: 'did_not_run',
  store_unavailable: 'did_not_run',
};

export interface FailureWords {
  /** A text its author meant for a model. */
  readonly safeMessage?: string | undefined;
  /** A sentence of ours: the limit, the path that does not fit. */
  readonly detail?: string | undefined;
}

/**
 * A failure as a model reads it: its `safeMessage` to the byte, else what its kind means and, where that leaves it open, whether the
 * tool ran. An error's own message is for the host: it may hold secrets. Never empty, and without lone surrogates, which no provider takes.
 */
export function failureText(kind: ToolErrorKind, effect: Effect, { safeMessage, detail }: FailureWords = {}): string {
  if (safeMessage !== undefined && /\S/.test(safeMessage)) return safeMessage.toWellFormed();
  const sentences = [TOOL_ERROR_KIND_MEANINGS[kind].description];
  if (detail !== undefined) sentences.push(detail.toWellFormed());
  const said = EFFECT_SAID[kind];
  // Not twice that it ran, and the second time with a doubt.
  if (said === 'ran' && effect === 'may_have_run') sentences.push('It may have taken effect.');
  else if (said !== effect) sentences.push(EFFECT_SENTENCES[effect]);
  return sentences.join(' ');
}

/** What an output without text is told as: no result may be empty. */
export const NO_OUTPUT = '(no output)';
const UNREADABLE_OUTPUT = '(the tool succeeded; its output cannot be written as text)';

/** An output as the text that a model reads: a string as it is, else JSON. Never empty, and without lone surrogates, which no provider takes. */
export function outputText(output: unknown): string {
  let text: string | undefined;
  try {
    text = typeof output === 'string' ? output : JSON.stringify(output);
  } catch {
    return UNREADABLE_OUTPUT;
  }
  return text === undefined || output === null || !/\S/.test(text) ? NO_OUTPUT : text.toWellFormed();
}
