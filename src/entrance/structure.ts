/** How far a chain of causes is followed. */
const CAUSE_DEPTH_MAX = 8;
/** Text is matched on this many of its first characters. */
export const TEXT_LENGTH_MAX = 4096;

/** What a thrown value says in its fields, read without trusting it: getters may throw, causes may be a circle. */
export interface ErrorStructure {
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
}

/** A property of anything; `undefined` where reading it throws. */
export function read(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return undefined;
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

/**
 * `Retry-After` in any of its forms as milliseconds: a number of seconds, an HTTP date, or, with `unitMs` 1, milliseconds.
 * `NaN` for a hint that cannot be read, which means: do not retry (R-2.4).
 */
export function parseRetryAfter(value: unknown, wallNow: () => number, unitMs = 1000): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number') return value * unitMs;
  if (typeof value !== 'string') return Number.NaN;
  const text = value.trim();
  if (/^[+-]?\d{1,15}(\.\d{1,9})?$/.test(text)) return Number(text) * unitMs;
  // An HTTP date in the past is a wait that is over.
  const dateMs = /[a-z]{3}/i.test(text) && text.length < 64 ? Date.parse(text) : Number.NaN;
  return Math.max(0, dateMs - wallNow());
}

const header = (headers: unknown, name: string): unknown => {
  const get = read(headers, 'get');
  try {
    if (typeof get === 'function') return get.call(headers, name) as unknown;
    if (typeof headers !== 'object' || headers === null) return undefined;
    // A plain object's names are written as its maker likes.
    const key = Object.keys(headers).find((own) => own.toLowerCase() === name);
    return key === undefined ? undefined : read(headers, key);
  } catch {
    return undefined;
  }
};

const statusOf = (value: unknown): number | undefined => {
  for (const candidate of [read(value, 'status'), read(value, 'statusCode'), read(read(value, 'response'), 'status')]) {
    const status = typeof candidate === 'string' && /^\d{3}$/.test(candidate) ? Number(candidate) : candidate;
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  return undefined;
};

const codeOf = (value: unknown): string | undefined => {
  const code = read(value, 'code') ?? read(read(value, 'error'), 'code');
  if (typeof code === 'number' && Number.isFinite(code)) return String(code);
  return typeof code === 'string' && code.length > 0 && code.length <= 128 ? code : undefined;
};

const retryAfterOf = (value: unknown, wallNow: () => number): number | undefined => {
  const own = read(value, 'retryAfterMs');
  if (own !== undefined) return parseRetryAfter(own, wallNow, 1);
  for (const headers of [read(value, 'headers'), read(read(value, 'response'), 'headers')]) {
    const hint = parseRetryAfter(header(headers, 'retry-after-ms'), wallNow, 1) ?? parseRetryAfter(header(headers, 'retry-after'), wallNow);
    if (hint !== undefined) return hint;
  }
  return undefined;
};

const describe = (thrown: unknown): string => {
  if (typeof thrown === 'string') return thrown;
  const message = read(thrown, 'message');
  if (typeof message === 'string' && message !== '') return message;
  if (thrown !== null && typeof thrown === 'object') return 'The tool threw a value without a message';
  return `The tool threw ${typeof thrown === 'symbol' || typeof thrown === 'function' ? `a ${typeof thrown}` : String(thrown)}`;
};

/** Reads a thrown value and its causes. The outermost code, status and hint win. Never throws. */
export function readStructure(thrown: unknown, wallNow: () => number): ErrorStructure {
  const ownName = read(thrown, 'name');
  let name = typeof ownName === 'string' ? ownName : '';
  let code: string | undefined;
  let status: number | undefined;
  let retryAfterMs: number | undefined;
  let link: unknown = thrown;
  for (let depth = 0; depth < CAUSE_DEPTH_MAX && link !== undefined && link !== null; depth++) {
    code ??= codeOf(link);
    status ??= statusOf(link);
    retryAfterMs ??= retryAfterOf(link, wallNow);
    const linkName = read(link, 'name');
    if (name !== 'AbortError' && linkName === 'TimeoutError') name = 'TimeoutError';
    link = read(link, 'cause');
  }
  return { name, message: describe(thrown).slice(0, TEXT_LENGTH_MAX), code, status, retryAfterMs };
}
