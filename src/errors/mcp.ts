import { ToolExecutionError, type ToolExecutionErrorOptions } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { abortKind } from './abort-kind.ts';
import { isSlip } from './doubt/slip.ts';
import { asHearsay } from './text/hearsay.ts';
import type { Meaning } from './text/sense.ts';
import { read, readStructure } from './structure.ts';
import { MESSAGE_LENGTH_MAX } from './text/plain.ts';
import { isTyped, toToolExecutionError } from './tool.ts';

const wallNow = (): number => liveRuntime.wallNow();

const timedOut: Meaning = { kind: 'timeout', options: { uncertain: true } };
const lostMidCall: Meaning = { kind: 'transport_error', options: { uncertain: true } };
const neverSent: Meaning = { kind: 'transport_error', options: { executed: false } };
const invalid: Meaning = { kind: 'invalid_parameters', options: {} };
const unknown: Meaning = { kind: 'unknown_tool', options: {} };
const refused: Meaning = { kind: 'not_permitted', options: {} };
/** The tool ran; what it answered cannot be used. */
const unusableAnswer: Meaning = { kind: 'execution_error', options: { classification: 'permanent', uncertain: true } };
const permanent: Meaning = { kind: 'execution_error', options: { classification: 'permanent' } };
/**
 * An answer cut short or of another type, which a client cannot read: the tool may have run, and may answer the next
 * time.
 */
const unreadableAnswer: Meaning = { kind: 'execution_error', options: { uncertain: true } };
const unusableTool: Meaning = { kind: 'execution_error', options: { classification: 'permanent', executed: false } };

/**
 * What the clients throw: numbers are JSON-RPC's and `McpError`'s of SDK 1, words are `SdkErrorCode`'s of SDK 2.
 * `-32000` is missing: SDK 1 uses it for a lost connection, servers for anything, so its text decides.
 */
const CODES: ReadonlyMap<string, Meaning> = new Map([
  ['-32001', timedOut],
  ['REQUEST_TIMEOUT', timedOut],
  ['CONNECTION_CLOSED', lostMidCall],
  ['SEND_FAILED', lostMidCall],
  ['NOT_CONNECTED', neverSent],
  ['NOT_INITIALIZED', neverSent],
  ['CAPABILITY_NOT_SUPPORTED', refused],
  ['METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION', refused],
  ['CLIENT_HTTP_UNEXPECTED_CONTENT', unreadableAnswer],
  ['INVALID_RESULT', unusableAnswer],
  ['UNSUPPORTED_RESULT_TYPE', unusableAnswer],
  ['INPUT_REQUIRED_ROUNDS_EXCEEDED', unusableAnswer],
  ['LIST_PAGINATION_EXCEEDED', unusableAnswer],
  ['ERA_NEGOTIATION_FAILED', neverSent],
  // A resource that does not exist, and a sign-in that a person has to make first.
  ['-32002', permanent],
  ['-32042', permanent],
  ['-32700', invalid],
  ['-32600', invalid],
  ['-32602', invalid],
  ['-32601', unknown],
]);

/** SDK 1 puts this before the message of each `McpError`, on both sides of the wire, so it can be there twice. */
const CODE_IN_TEXT = /^(?:mcp error (-\d{5}): ){1,4}/;

const ANY_NAME = /^(?:unknown tool: |tool "?)([\w./:-]{1,128})/;
const UNKNOWN_NAME = /^unknown tool: ([\w./:-]{1,128})/;

const withoutCode = (text: string): string => text.replace(CODE_IN_TEXT, '');

/**
 * What the servers of the TypeScript and Python SDKs say themselves, not through a tool. The code beside it proves
 * nothing: -32602 is said before the tool ran (its input) and after (its output). A name is compared whole, so that a
 * tool's own "... not found" is not taken for it.
 */
const serverMeaning = (text: string, toolName: string | undefined, coded: boolean): Meaning | undefined => {
  // Where the name is not known, any one word may be it, if the server's code is there to show that the sentence is its
  // own.
  const name = toolName?.toLowerCase() ?? (coded ? ANY_NAME : UNKNOWN_NAME).exec(text)?.[1] ?? '';
  const says = (...sentences: string[]): boolean => sentences.includes(text);
  const begins = (...beginnings: string[]): boolean => beginnings.some((beginning) => text.startsWith(beginning));
  if (begins('input validation error')) return invalid;
  if (begins('output validation error', 'invalid tools/call result', 'invalid task creation result'))
    return unusableAnswer;
  if (says(`tool ${name} not found`, `unknown tool: ${name}`)) return unknown;
  if (says(`tool ${name} disabled`)) return refused;
  return begins(`tool ${name} requires task`, `tool "${name}" requires task`) ? refused : undefined;
};

/** What a client says of an answer: it compares a result with the tool's output schema after the tool ran. */
const clientMeaning = (text: string): Meaning | undefined => {
  if (text.includes('invalid outputschema')) return unusableTool;
  if (text.includes('structured content') && (text.includes('schema') || text.includes('validate')))
    return unusableAnswer;
  return undefined;
};

/**
 * What a transport of ours says in place of an answer that is too long to be read, as a client of the SDK throws it. A
 * server that says the same can have a model read nothing but two numbers.
 */
const TOO_LONG = /^(?:MCP error -32603: )?The answer has (\d{1,16} bytes, and \d{1,16} are read at most)$/;

/**
 * A refusal of the model's own input is for the model to read: it says how to correct the call. Other texts may hold
 * secrets.
 */
const toError = ({ kind, options }: Meaning, message: string, more: ToolExecutionErrorOptions): ToolExecutionError => {
  const safeMessage = kind === 'invalid_parameters' || kind === 'unknown_tool' ? message : undefined;
  return new ToolExecutionError(kind, message, { ...more, ...options, safeMessage });
};

/**
 * Gives what an MCP client threw from `callTool` its kind. A caller's abort is not among it: both SDKs report
 * one with the code of a timeout, so ask `mcpAborted` about your own signal first.
 *
 * @param thrown anything; a `ToolExecutionError` passes unchanged, and a result with `isError` gets what
 * `mcpErrorResult` gives it
 * @param toolName the tool's name at its server, if it is known
 * @param now the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example mcpThrown(Object.assign(new Error('Connection closed'), { code: 'CONNECTION_CLOSED' }), 'echo').kind; //
 * 'transport_error'
 */
export function mcpThrown(thrown: unknown, toolName?: string, now: () => number = wallNow): ToolExecutionError {
  if (isTyped(thrown)) return thrown;
  if (read(thrown, 'isError') === true) return mcpErrorResult(thrown, toolName);
  const { message, code: ownCode, links } = readStructure(thrown, now);
  const lower = message.toLowerCase();
  const code = ownCode ?? CODE_IN_TEXT.exec(lower)?.[1];
  const text = withoutCode(lower);
  const options: ToolExecutionErrorOptions = { code, cause: thrown, details: read(thrown, 'data') };
  const size = code === '-32603' ? TOO_LONG.exec(message)?.[1] : undefined;
  if (size !== undefined) {
    const safeMessage = `The tool ran. Its answer has ${size}; ask for less.`;
    return new ToolExecutionError(unusableAnswer.kind, message, { ...options, ...unusableAnswer.options, safeMessage });
  }
  const familyOfInvalid = code === '-32602' || code === '-32600' || code === '-32601';
  const worded = familyOfInvalid ? (serverMeaning(text, toolName, true) ?? clientMeaning(text)) : undefined;
  if (worded !== undefined) return toError(worded, message, options);
  const known = code === undefined ? undefined : CODES.get(code);
  if (known !== undefined) return toError(known, message, options);
  if (code === '-32000' && text.includes('connection closed')) return toError(lostMidCall, message, options);
  if (code === undefined && text === 'not connected') return toError(neverSent, message, options);
  // SDK 1 parses the answer with zod, and throws what zod throws.
  const names = links[0]?.names ?? [];
  if (names.some((name) => name === 'ZodError' || name === '$ZodError'))
    return toError(unusableAnswer, 'The answer is not a tool result', options);
  if (names.includes('SyntaxError') || text.includes('unexpected content type'))
    return toError(unreadableAnswer, message, options);
  const error = toToolExecutionError(thrown, now);
  // The server has answered: a status in its `data` is that of a step of its tool's, which may have done others.
  return code !== undefined && isSlip(code) && error.status !== undefined ? asHearsay(error) : error;
}

/** A result has a few contents; a list of a million empty ones is not read through. */
const PARTS_MAX = 1000;

/** The text of a result, as far as it is read. */
const textOf = (result: unknown): string => {
  const content = read(result, 'content');
  const length = read(content, 'length');
  const count = typeof length === 'number' ? Math.min(length, PARTS_MAX) : 0;
  let text = '';
  // By index: the list may be a proxy whose iterator throws.
  for (let i = 0; i < count && text.length < MESSAGE_LENGTH_MAX; i++) {
    const part = read(read(content, String(i)), 'text');
    if (typeof part === 'string') text += text === '' ? part : `\n${part}`;
  }
  return text.slice(0, MESSAGE_LENGTH_MAX);
};

/**
 * Gives a result with `isError` its kind. The tool ran, unless the server says that it refused the call; the class is
 * what the text says.
 *
 * @param result the result of `tools/call`
 * @param toolName the tool's name at its server
 *
 * @example mcpErrorResult({ isError: true, content: [{ type: 'text', text: 'MCP error -32602: Tool nope not found' }]
 * }, 'nope').kind; // 'unknown_tool'
 */
export function mcpErrorResult(result: unknown, toolName?: string): ToolExecutionError {
  const text = textOf(result);
  const message = text.trim() === '' ? 'The tool failed without saying why' : text;
  const lower = text.toLowerCase();
  const options: ToolExecutionErrorOptions = {
    code: CODE_IN_TEXT.exec(lower)?.[1],
    details: read(result, 'structuredContent'),
  };
  const ofServer = serverMeaning(withoutCode(lower), toolName, options.code !== undefined);
  if (ofServer !== undefined) return toError(ofServer, message, options);
  const { kind, status, uncertain, classification, worded } = toToolExecutionError(text);
  // The server was reached and the tool ran: a connection the text complains of is one that the tool made.
  const lostElsewhere = kind === 'transport_error';
  const error = new ToolExecutionError(kind === 'timeout' ? 'timeout' : 'execution_error', message, {
    ...options,
    status,
    uncertain,
    executed: true,
    // A refusal by the person at the other end is a result here: it has lost the class of its kind.
    classification:
      kind === 'canceled' ? 'permanent' : lostElsewhere ? (classification ?? 'transient') : classification,
    worded,
  });
  // A text is all that there is.
  return asHearsay(error);
}

/**
 * The error of a call whose signal was aborted: `canceled`, or `timeout` where the signal itself is a timeout's
 * (`AbortSignal.timeout`).
 *
 * @param executed whether the call had been sent, so that it may take effect
 */
export function mcpAborted(signal: AbortSignal, executed: boolean): ToolExecutionError {
  const reason: unknown = signal.reason;
  if (isTyped(reason)) return reason;
  const options = { executed, uncertain: executed, cause: reason };
  return abortKind(reason) === 'timeout'
    ? new ToolExecutionError('timeout', 'The call took too long', options)
    : new ToolExecutionError('canceled', 'The call was canceled', options);
}

/**
 * The error of a server that could not be connected: nothing ran. A command that does not exist will not exist the next
 * time either.
 *
 * @param name the provider's name
 */
export function mcpNotConnected(thrown: unknown, name: string): ToolExecutionError {
  const { code, status, classification, message, details, retryAfterMs } = toToolExecutionError(thrown);
  return new ToolExecutionError('transport_error', `The MCP server ${name} could not be connected: ${message}`, {
    executed: false,
    code,
    status,
    retryAfterMs,
    classification: code === undefined ? undefined : classification,
    details,
    cause: thrown,
  });
}
