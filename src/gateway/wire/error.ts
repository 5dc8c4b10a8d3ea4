import type { GatewayAnswer } from './exchange.ts';
import { HeaderList } from './headers.ts';

/** How loud an error is in the log. */
export type GatewayLogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Everything that can go wrong at the gateway. Closed, so that the table below is complete. */
export type GatewayErrorKind =
  | 'invalid_request'
  | 'malformed_tool_result'
  | 'too_deep'
  | 'request_too_large'
  | 'body_timeout'
  | 'thread_unsupported'
  | 'rate_limited'
  | 'overloaded'
  | 'draining'
  | 'state_unavailable'
  | 'state_unknown'
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'upstream_broken'
  | 'internal_error'
  | 'tool_failed'
  | 'storage_failed'
  | 'client_gone';

/** What a kind means to the client and to the host. */
export interface GatewayErrorMeaning {
  /** The HTTP status; absent for what does not end a request. */
  readonly status?: number;
  /** The `error.type` of the Messages API; absent for what does not end a request. */
  readonly type?: string;
  /** Set where the answer says when to ask again, in the header `retry-after`, in seconds. */
  readonly retryAfter?: true;
  /** The level at which it is logged. */
  readonly level: GatewayLogLevel;
  /** A sentence for the host: what happened, and what it did to the request. */
  readonly description: string;
}

/** The one error framework of the gateway: kind, status, type, headers, log level. */
export const GATEWAY_ERROR_MEANINGS: Readonly<Record<GatewayErrorKind, GatewayErrorMeaning>> = {
  invalid_request: {
    status: 400,
    type: 'invalid_request_error',
    level: 'warn',
    description: 'The body is not JSON, not UTF-8, or not shaped as the Messages API wants it.',
  },
  malformed_tool_result: {
    status: 400,
    type: 'invalid_request_error',
    level: 'warn',
    description: 'A `tool_result` or `tool_use` block is malformed, or calls and results do not match.',
  },
  too_deep: {
    status: 400,
    type: 'invalid_request_error',
    level: 'warn',
    description: 'The body is nested too deeply.',
  },
  request_too_large: {
    status: 413,
    type: 'request_too_large',
    level: 'warn',
    description: 'The body is larger than the limit.',
  },
  body_timeout: {
    status: 408,
    type: 'timeout_error',
    level: 'warn',
    description: 'The body did not come whole within its time.',
  },
  thread_unsupported: {
    status: 400,
    type: 'invalid_request_error',
    level: 'info',
    description:
      '`thread` beside tools of the gateway: `error.details.error_code` is `thread_unsupported_request`, at ' +
      'which the SDK’s tool runner goes on without a thread.',
  },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    retryAfter: true,
    level: 'warn',
    description: 'This key has asked too often.',
  },
  overloaded: {
    status: 529,
    type: 'overloaded_error',
    retryAfter: true,
    level: 'warn',
    description: 'The gateway runs as many turns as it may.',
  },
  draining: {
    status: 503,
    type: 'overloaded_error',
    retryAfter: true,
    level: 'info',
    description: 'The gateway is being shut down.',
  },
  state_unavailable: {
    status: 500,
    type: 'api_error',
    level: 'error',
    description: 'The conversation state could not be retrieved, retries included.',
  },
  state_unknown: {
    status: 500,
    type: 'api_error',
    level: 'error',
    description: 'The conversation state does not know a tool call that the request answers.',
  },
  upstream_unreachable: {
    status: 502,
    type: 'api_error',
    level: 'error',
    description: 'The upstream could not be reached.',
  },
  upstream_timeout: {
    status: 504,
    type: 'timeout_error',
    level: 'error',
    description: 'The upstream did not begin its answer in time.',
  },
  upstream_broken: {
    status: 502,
    type: 'api_error',
    level: 'error',
    description: 'The upstream broke off, or its answer cannot be read.',
  },
  internal_error: { status: 500, type: 'api_error', level: 'error', description: 'A defect of the gateway.' },
  tool_failed: {
    level: 'warn',
    description: 'A tool of the gateway failed: the model gets a `tool_result` with `is_error: true`.',
  },
  storage_failed: {
    level: 'error',
    description: 'The conversation state could not be stored, retries included: the answer arrives with a warning.',
  },
  client_gone: { level: 'info', description: 'The client went away; upstream and tools were canceled.' },
};

export interface GatewayErrorOptions {
  /** When to ask again. Default 1,000, for kinds that say so. */
  readonly retryAfterMs?: number;
  /** `error.details` of the answer, as the API has them. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/**
 * What ends a request at the gateway. Its message is for the client: it names the block, the rule and the remedy, and
 * holds no secret.
 */
export class GatewayError extends Error {
  override readonly name: string = 'GatewayError';
  readonly kind: GatewayErrorKind;
  readonly retryAfterMs: number | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(kind: GatewayErrorKind, message: string, { retryAfterMs, details, cause }: GatewayErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
    this.details = details;
  }
}

const RETRY_AFTER_MS = 1_000;
const FALLBACK = { status: 500, type: 'api_error' } as const;

/** An error body of the Messages API, as JSON text. */
export function errorBody({ kind, message, details }: GatewayError, requestId: string): string {
  const { type = FALLBACK.type } = GATEWAY_ERROR_MEANINGS[kind];
  return JSON.stringify({
    type: 'error',
    error: { type, message: message.toWellFormed(), details },
    request_id: requestId,
  });
}

/** An error as an answer of the Messages API. */
export function errorAnswer(error: GatewayError, requestId: string): GatewayAnswer {
  const { status = FALLBACK.status, retryAfter } = GATEWAY_ERROR_MEANINGS[error.kind];
  const headers = new HeaderList([
    ['content-type', 'application/json'],
    ['request-id', requestId],
  ]);
  const retryAfterS = Math.max(1, Math.ceil((error.retryAfterMs ?? RETRY_AFTER_MS) / 1_000));
  return {
    status,
    headers: retryAfter === true ? headers.with('retry-after', String(retryAfterS)) : headers,
    body: errorBody(error, requestId),
  };
}

/**
 * The table of errors as Markdown, as the page of the gateway shows it.
 *
 * @example
 * gatewayErrorTable().split('\n')[0]; // '| kind | status | error.type | headers | log | |'
 */
export function gatewayErrorTable(): string {
  const rows = Object.entries(GATEWAY_ERROR_MEANINGS).map(
    ([kind, { status, type, retryAfter, level, description }]) => {
      const cells = [
        `\`${kind}\``,
        status ?? '',
        type === undefined ? '' : `\`${type}\``,
        retryAfter === true ? '`retry-after`' : '',
        level,
        description,
      ];
      return `| ${cells.join(' | ')} |`;
    },
  );
  return ['| kind | status | error.type | headers | log | |', '|---|---|---|---|---|---|', ...rows].join('\n');
}
