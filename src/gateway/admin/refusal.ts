/** Why a request was refused. */
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
  store_unavailable: 503,
  failed: 500,
};

/** A request that was refused, as a log may show it: no token, no value of a header, nothing of the body. */
export interface AdminRefusal {
  readonly reason: AdminRefusalReason;
  readonly status: number;
  /** The rule, and what to do. */
  readonly message: string;
  readonly method: string;
  /** Who asked, where the server knows. */
  readonly remoteAddress?: string;
}

/** Thrown where a request is refused, and answered in one place. */
export class AdminRefused extends Error {
  override readonly name: string = 'AdminRefused';
  readonly reason: AdminRefusalReason;
  /** Of the answer. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: AdminRefusalReason, message: string, options: ErrorOptions & { readonly headers?: Readonly<Record<string, string>> } = {}) {
    super(message, options);
    this.reason = reason;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return STATUS[this.reason];
  }
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']);

export function refusalOf({ reason, status, message }: AdminRefused, method: string | undefined, remoteAddress: unknown): AdminRefusal {
  const shown = method !== undefined && METHODS.has(method) ? method : 'other';
  return { reason, status, message, method: shown, ...(typeof remoteAddress === 'string' ? { remoteAddress } : {}) };
}
