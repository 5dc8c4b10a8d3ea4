import { TOOL_ERROR_KIND_MEANINGS, type Classification, type ToolErrorKind } from '../contract/error-kind.ts';
import { ToolExecutionError, isToolExecutionError, type ToolExecutionErrorOptions } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { nodeMeaning, type Meaning } from './node.ts';
import { read, readStructure, type ErrorStructure } from './structure.ts';

const answered = (classification: Classification): Meaning => ({ kind: 'execution_error', options: { classification } });

/** Asked in this order; the first that matches decides. Short words only as words of their own. */
const TEXT_MEANINGS: ReadonlyArray<readonly [RegExp, Meaning]> = [
  [/unauthori[sz]ed|authentication|unauthenticated|invalid api key|invalid credentials|access denied|permission denied|forbidden/, answered('permanent')],
  [/insufficient_quota|quota exceeded|payment required|billing/, answered('permanent')],
  [/rate.?limit|too many requests|overload|throttl/, answered('transient')],
  [/time.?out|timed out|deadline exceeded|etimedout|econnaborted/, { kind: 'timeout', options: { uncertain: true } }],
  [/econnrefused|enotfound|eai_again|getaddrinfo|\bdns\b/, { kind: 'transport_error', options: { executed: false } }],
  [/econnreset|connection (?:reset|closed|lost)|socket hang up|epipe|broken pipe|network|\btls\b|\bssl\b/, { kind: 'transport_error', options: { uncertain: true } }],
  [/unavailable|try again|temporar|bad gateway/, answered('transient')],
  [/invalid|validation|malformed|bad request|not found|no such|does not exist|unsupported|not supported|not implemented|schema/, answered('permanent')],
];

/** A status that a text states: `(429)`, `HTTP 503`, `status code 404`, `error code: 500`, or a text that begins with it. A code alone may be the input's. */
const STATUS_IN_TEXT = /\(([45]\d\d)\)|\b(?:http(?:\/\d(?:\.\d)?)?|status(?: code)?|(?:error|response) code)[ :=]{1,3}([45]\d\d)\b|^([45]\d\d)\b/;

/** The kind of an answered HTTP request: the tool ran, even if it only said no. 408 and 504 are time-outs. */
const kindOfStatus = (status: number): ToolErrorKind => (status === 408 || status === 504 ? 'timeout' : 'execution_error');

const statusInText = (text: string): number | undefined => {
  const match = STATUS_IN_TEXT.exec(text);
  const digits = match?.[1] ?? match?.[2] ?? match?.[3];
  return digits === undefined ? undefined : Number(digits);
};

/** Structure first; text only where no structure said anything. */
const meaningOf = (structure: ErrorStructure): Meaning => {
  const { name, code, status } = structure;
  if (status !== undefined) return { kind: kindOfStatus(status), options: { uncertain: kindOfStatus(status) === 'timeout' } };
  const known = nodeMeaning(code);
  if (known !== undefined) return known;
  if (name === 'AbortError') return { kind: 'canceled', options: { executed: true, uncertain: true } };
  if (name === 'TimeoutError') return { kind: 'timeout', options: { uncertain: true } };
  const text = structure.message.toLowerCase();
  const stated = statusInText(text);
  if (stated !== undefined) return { kind: kindOfStatus(stated), options: { status: stated, uncertain: kindOfStatus(stated) === 'timeout' } };
  return TEXT_MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? { kind: 'execution_error', options: {} };
};

const isToolErrorKind = (kind: unknown): boolean => typeof kind === 'string' && Object.hasOwn(TOOL_ERROR_KIND_MEANINGS, kind);

/**
 * Gives whatever a tool threw its kind: the only place where a tool's message is read.
 * A `ToolExecutionError` passes unchanged. Never throws, whatever was thrown.
 *
 * @param thrown anything: an error, a string, null, a getter that throws, a cyclic cause
 * @param wallNow the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * toToolExecutionError(new Error('Rate limit exceeded (429)')).status; // 429
 */
export function toToolExecutionError(thrown: unknown, wallNow: () => number = () => liveRuntime.wallNow()): ToolExecutionError {
  // Another copy of the package may know kinds that this one does not.
  if (isToolExecutionError(thrown) && isToolErrorKind(read(thrown, 'kind'))) return thrown;
  const structure = readStructure(thrown, wallNow);
  const { kind, options } = meaningOf(structure);
  const merged: ToolExecutionErrorOptions = {
    code: structure.code,
    status: structure.status,
    retryAfterMs: structure.retryAfterMs,
    cause: thrown,
    ...options,
  };
  return new ToolExecutionError(kind, structure.message, merged);
}
