import { ToolExecutionError } from '../../contract/tool-error.ts';
import { asHearsay, isHearsay } from '../../errors/text/hearsay.ts';
import { toToolExecutionError } from '../../errors/tool.ts';

/**
 * What a foreign tool threw, as an error with a text of its tool's that is meant for the model. It proves as much of
 * what was done as before: where only words said that, they still do.
 */
export function answering(thrown: unknown, safeMessage: string): ToolExecutionError {
  const read = toToolExecutionError(thrown);
  const { kind, message, code, status, retryAfterMs, uncertain, executed, classification, worded, details, cause } =
    read;
  const facts = { code, status, retryAfterMs, uncertain, executed, classification, worded, details, cause };
  const error = new ToolExecutionError(kind, message, { ...facts, safeMessage });
  return isHearsay(read) ? asHearsay(error) : error;
}
