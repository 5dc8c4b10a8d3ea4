/**
 * Why a request was refused; each reason has one HTTP status.
 *
 * `host`, `origin`: 403, a `Host` or `Origin` that is not allowed. `token`: 401, missing or wrong. `path`: 404.
 * `method`: 405. `content_type`: 415, anything but plain JSON. `body_too_large`: 413. `malformed`, `unknown_action`:
 * 400. `unknown_tool`: 404. `no_breaker`: 409, the tool has none. `unknown_approval`: 404, no such question, or its
 * time is over. `answered`: 409, another answer counts. `store_unavailable`: 503, and a part may have been
 * done. `failed`: 500, a defect of the layer, its store or its metrics.
 */
export type AdminRefusalReason =
  | 'host'
  | 'origin'
  | 'token'
  | 'path'
  | 'method'
  | 'content_type'
  | 'body_too_large'
  | 'malformed'
  | 'unknown_action'
  | 'unknown_tool'
  | 'no_breaker'
  | 'unknown_approval'
  | 'answered'
  | 'store_unavailable'
  | 'failed';

const STATUS: Readonly<Record<AdminRefusalReason, number>> = {
  host: 403,
  origin: 403,
  token: 401,
  path: 404,
  method: 405,
  content_type: 415,
  body_too_large: 413,
  malformed: 400,
  unknown_action: 400,
  unknown_tool: 404,
  no_breaker: 409,
  unknown_approval: 404,
  answered: 409,
  store_unavailable: 503,
  failed: 500,
};

/** A request that was refused, as a log may show it: no token, no value of a header, nothing of the body. */
export interface AdminRefusal {
  /** Which rule refused the request. */
  readonly reason: AdminRefusalReason;
  /** The HTTP status of the answer. */
  readonly status: number;
  /** The rule, and what to do about it. It repeats no value of the request. */
  readonly message: string;
  /** The request's HTTP method; `other` for one that HTTP does not define, or that could not be read. */
  readonly method: string;
  /** The address of the client, where the server knows it. */
  readonly remoteAddress?: string;
}

interface AdminRefusedOptions extends ErrorOptions {
  /** Headers of the answer beside its own. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown where a request is refused, and answered in one place. */
export class AdminRefused extends Error {
  /** Always `AdminRefused`. */
  override readonly name: string = 'AdminRefused';
  /** Which rule refused the request. */
  readonly reason: AdminRefusalReason;
  /** Headers of the answer beside its own, such as `allow`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: AdminRefusalReason, message: string, options: AdminRefusedOptions = {}) {
    super(message, options);
    this.reason = reason;
    this.headers = options.headers ?? {};
  }

  /** The HTTP status that belongs to the reason. */
  get status(): number {
    return STATUS[this.reason];
  }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']);

export function refusalOf(
  { reason, status, message }: AdminRefused,
  method: string | undefined,
  remoteAddress: unknown,
): AdminRefusal {
  const shown = method !== undefined && METHODS.has(method) ? method : 'other';
  return { reason, status, message, method: shown, ...(typeof remoteAddress === 'string' ? { remoteAddress } : {}) };
}
