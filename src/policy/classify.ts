import { TOOL_ERROR_KIND_MEANINGS, type Classification } from '../contract/error-kind.ts';
import type { ClassificationOverrides } from '../contract/policy.ts';
import { toToolExecutionError } from '../entrance/tool.ts';

/** A class, and why. */
export interface Classified {
  readonly classification: Classification;
  /** A sentence. */
  readonly reason: string;
  /** The rule that fired: `override`, `status`, `code`, `retry_hint`, `entrance`, `kind` or `default`. */
  readonly rule: string;
}

/** Sources: SI 1.1 and 1.2, CLAW 1.4, and 529, Anthropic's "overloaded". */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504, 529]);
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 501]);

/** An exhausted quota comes with a 429 as well, and waiting does not fill it. */
const QUOTA_CODES: ReadonlySet<string> = new Set(['insufficient_quota', 'billing_hard_limit_reached']);
const PERMANENT_CODES: ReadonlySet<string> = new Set([
  'invalid_api_key', 'authentication_error', 'permission_error', 'invalid_request_error',
  'not_found_error', 'model_not_found', 'unsupported_model', 'unsupported_operation', 'ERR_UNSUPPORTED_OPERATION', '-32600', '-32601', '-32602',
]);
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'ETIMEDOUT', 'ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'EAI_AGAIN', 'ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME',
  'ECONNABORTED', 'EHOSTUNREACH', 'ENETUNREACH', 'rate_limit_error', 'rate_limit_exceeded', 'overloaded_error', 'timeout_error', 'api_error',
]);

const of = (classification: Classification, rule: string, reason: string): Classified => ({ classification, rule, reason });

/**
 * Says whether a failure may be retried, and by which rule: the tool's overrides; a structured status, code or retry hint;
 * the class the entrance gave it; its kind's meaning; else transient, the safe default.
 *
 * @param error anything thrown; what is no `ToolExecutionError` yet goes through the entrance first
 * @param overrides a status, code or kind and the class it gets: `{ "503": "permanent" }`
 *
 * @example
 * classify(new Error('Authentication failed (401)')); // { classification: 'permanent', rule: 'status', reason: ... }
 */
export function classify(error: unknown, overrides: ClassificationOverrides = {}): Classified {
  const { kind, code, status, retryAfterMs, classification } = toToolExecutionError(error);
  for (const key of [status === undefined ? undefined : String(status), code, kind]) {
    const override = key !== undefined && Object.hasOwn(overrides, key) ? overrides[key] : undefined;
    if (override !== undefined) return of(override, 'override', `the tool says that ${key} is ${override}`);
  }
  if (code !== undefined && QUOTA_CODES.has(code)) return of('permanent', 'code', `${code} will be the same again`);
  if (status !== undefined && TRANSIENT_STATUSES.has(status)) return of('transient', 'status', `status ${status} is temporary`);
  if (status !== undefined && PERMANENT_STATUSES.has(status)) return of('permanent', 'status', `status ${status} will be the same again`);
  if (code !== undefined && TRANSIENT_CODES.has(code)) return of('transient', 'code', `${code} is temporary`);
  if (code !== undefined && PERMANENT_CODES.has(code)) return of('permanent', 'code', `${code} will be the same again`);
  if (retryAfterMs !== undefined && retryAfterMs >= 0) return of('transient', 'retry_hint', 'the server said when to ask again');
  if (classification !== undefined) return of(classification, 'entrance', `it is ${classification} by what entered`);
  const own = TOOL_ERROR_KIND_MEANINGS[kind].classification;
  if (own !== undefined) return of(own, 'kind', `${kind} is ${own}`);
  return of('transient', 'default', `nothing says that ${kind} is permanent`);
}
