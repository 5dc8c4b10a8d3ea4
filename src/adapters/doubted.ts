import { ToolExecutionError } from '../contract/tool-error.ts';
import { isTyped, toToolExecutionError } from '../errors/tool.ts';

/** An answer of a server that may have done the work before it failed. */
const DOUBTFUL_STATUSES: ReadonlySet<number | undefined> = new Set([500, 502, 504]);
/**
 * A code that a service or the system gives to what it refused. Numbers are a shell's exits or JSON-RPC's, and `ERR_` is Node's own
 * for slips in the tool's program.
 */
const TELLING_CODE = /^(?!ERR_)[a-z]/i;

const proves = ({ status, code }: ToolExecutionError): boolean =>
  (status !== undefined && !DOUBTFUL_STATUSES.has(status)) || (code !== undefined && TELLING_CODE.test(code));

/**
 * An error that a foreign tool's failure was made of, `uncertain` where it proves nothing: without a telling status or code it may have
 * come before the effect or after it. One that is known not to have run stays so.
 */
export function doubted(error: ToolExecutionError): ToolExecutionError {
  if (error.uncertain || !error.executed || error.kind === 'canceled' || proves(error)) return error;
  const { kind, message, code, status, retryAfterMs, classification, details, safeMessage, cause } = error;
  const said = { code, status, retryAfterMs, classification, details, safeMessage, cause };
  return new ToolExecutionError(kind, message, { ...said, executed: true, uncertain: true });
}

/** The failure with a text of its tool's that is meant for the model. */
export function answering(failure: unknown, safeMessage: string): ToolExecutionError {
  const { kind, message, code, status, retryAfterMs, uncertain, executed, classification, worded, details, cause } = toToolExecutionError(failure);
  const said = { code, status, retryAfterMs, uncertain, executed, classification, worded, details, cause };
  return new ToolExecutionError(kind, message, { ...said, safeMessage });
}

/** What a foreign tool threw, doubted. An error of ours is its author's word, and passes. */
export const doubtedThrown = (thrown: unknown): unknown => (isTyped(thrown) ? thrown : doubted(toToolExecutionError(thrown)));
