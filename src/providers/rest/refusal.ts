import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { mcpAborted } from '../../errors/mcp.ts';
import { toToolError } from '../../errors/read-error.ts';
import { read } from '../../errors/structure.ts';
import { MESSAGE_LENGTH_MAX } from '../../errors/text/plain.ts';
import type { RestOperation } from './operation.ts';
import { partAt, readResponseBody, unusable } from './response.ts';
import { reworded, type Telling } from './telling.ts';

/** An error's body is read for its code, which stands at the beginning. */
const ERROR_BYTES = 65_536;
/**
 * How long it may take to come: the status and its `Retry-After` are there, and a body that trickles must not turn them
 * into a timeout.
 */
const ERROR_BODY_MS = 1_000;
const SAFE_TEXT_MAX = 1_024;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** The code that an error's body names, as providers of APIs write it. */
const errorIn = (body: unknown): unknown => {
  const inner = read(body, 'error');
  if (typeof inner === 'object' && inner !== null) return inner;
  // A sentence is no code.
  return {
    code: typeof inner === 'string' && /^[\w.:-]{1,64}$/.test(inner) ? inner : read(body, 'code'),
    type: read(body, 'type'),
  };
};

/** The error with a text of the server's that the manifest lets a model read. */
const withSafeMessage = (error: ToolExecutionError, said: unknown): ToolExecutionError => {
  if (typeof said !== 'string' || said.trim() === '') return error;
  return reworded(error, error.message, said.slice(0, SAFE_TEXT_MAX));
};

/** Headers as they may be told. Names are no secrets, and what says when to ask again may well equal a variable. */
const headersOf = (
  { 'set-cookie': _, ...headers }: IncomingHttpHeaders,
  redact: Telling['redact'],
): IncomingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, /retry/.test(name) ? value : redact(value)] as const),
  );

/** The error that an answer is whose status is not 2xx. */
export const refusal = async (
  { errorAt, policy }: RestOperation,
  response: IncomingMessage,
  signal: AbortSignal,
  { redact, runtime }: Telling,
): Promise<ToolExecutionError> => {
  const { statusCode: status = 0, statusMessage = '', headers } = response;
  let text = '';
  let body: unknown;
  const late = runtime.after(ERROR_BODY_MS).subscribe(() => response.destroy(new Error('The body is late')));
  try {
    text = (await readResponseBody(response, ERROR_BYTES, signal, () => undefined)).toString();
    const given = parsed(text);
    body = redact(given);
    // JSON hides what its texts say.
    text = redact(body === given ? text : JSON.stringify(body)).slice(0, MESSAGE_LENGTH_MAX);
  } catch {
    // Its status says enough.
    if (signal.aborted) return mcpAborted(signal, true);
  } finally {
    late.unsubscribe();
  }
  const statusText = redact(statusMessage);
  const cause = {
    status,
    statusText,
    headers: headersOf(headers, redact),
    error: errorIn(body),
    body: text,
  };
  if (status < 400 || status > 599)
    return unusable(`HTTP ${status} ${statusText}: neither an answer nor a redirect`, cause);
  const read = toToolError(cause, 'http', () => runtime.wallNow());
  // Where the answer is shown to a model, it is what the error says.
  const error = policy.show === 'errors' && text.trim() !== '' ? reworded(read, `${read.message}: ${text}`) : read;
  return errorAt === undefined ? error : withSafeMessage(error, partAt(body, errorAt));
};
