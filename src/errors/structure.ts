import { parseHttpDate } from './http-date.ts';
import { CODES, HEADERS, NAMES, STATUSES } from './paths.ts';
import { MESSAGE_LENGTH_MAX, TEXT_LENGTH_MAX, plainText } from './text/plain.ts';

/** How far a chain of causes is followed. */
export const CAUSE_DEPTH_MAX = 8;
/** Longer than this, a field holds no code and no name. */
const CODE_LENGTH_MAX = 128;
/** The longest form of an HTTP date has 33 characters. */
const HINT_LENGTH_MAX = 64;

/** One error of a chain. */
export interface Link {
  /** Everything that may be a code: providers put theirs in `code`, `type`, or the body's `error`. */
  readonly codes: readonly string[];
  /** Its own name, which some providers have their code in. */
  readonly name: string | undefined;
  /** Its name, and its class's. */
  readonly names: readonly string[];
}

/** What a thrown value says in its fields, read without trusting it: getters may throw, causes may be a circle. */
export interface ErrorStructure {
  readonly message: string;
  /** The outermost `code`. */
  readonly code: string | undefined;
  readonly status: number | undefined;
  /** Which error of the chain has the status: 0 is the outermost. */
  readonly statusDepth: number;
  readonly retryAfterMs: number | undefined;
  /** Whether its maker says that asking again can help. */
  readonly retriable: boolean | undefined;
  /** A gRPC status code. */
  readonly rpc: number | undefined;
  /** What each error of the chain calls itself, outermost first. */
  readonly links: readonly Link[];
  /** The messages, outermost first, together no longer than `TEXT_LENGTH_MAX`. */
  readonly texts: readonly string[];
}

/** `instanceof`, of what a tool may have thrown: a proxy can throw when it is asked, and then it is none. */
export function isOf<T>(value: unknown, kind: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof kind;
  } catch {
    return false;
  }
}

/** A property of anything; `undefined` where reading it throws. */
export function read(value: unknown, key: PropertyKey): unknown {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return undefined;
  try {
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
}

/**
 * `Retry-After` in any of its forms as milliseconds: a number of seconds, one of the three forms of an HTTP date, or,
 * with `unitMs` 1, a number of milliseconds and nothing else. `NaN` for a hint that cannot be read, which means: do not
 * retry.
 */
export function parseRetryAfter(value: unknown, wallNow: () => number, unitMs = 1000): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number') return value * unitMs;
  if (typeof value !== 'string' || value.length > HINT_LENGTH_MAX) return Number.NaN;
  const text = value.trim();
  if (/^-?\d{1,15}(\.\d{1,9})?$/.test(text)) return Number(text) * unitMs;
  if (unitMs !== 1000) return Number.NaN;
  const nowMs = wallNow();
  // An HTTP date in the past is a wait that is over.
  return Math.max(0, parseHttpDate(text, nowMs) - nowMs);
}

/** A header of a `Headers`, a plain object, a list of pairs, or what `undici` makes of one. */
const header = (headers: unknown, name: string): unknown => {
  const get = read(headers, 'get');
  try {
    const value = typeof get === 'function' ? (get.call(headers, name) as unknown) : ownHeader(headers, name);
    return Array.isArray(value) ? (value[0] as unknown) : value;
  } catch {
    return undefined;
  }
};

const ownHeader = (headers: unknown, name: string): unknown => {
  if (typeof headers !== 'object' || headers === null) return undefined;
  // A plain object's names are written as its maker likes.
  const key = Object.keys(headers).find((own) => own.toLowerCase() === name);
  return key === undefined ? undefined : read(headers, key);
};

const at = (value: unknown, path: readonly string[]): unknown => {
  let inner = value;
  for (const key of path) {
    inner = read(inner, key);
    if (inner === undefined) return undefined;
  }
  return inner;
};

export const firstOf = <T>(
  value: unknown,
  paths: ReadonlyArray<readonly string[]>,
  read: (value: unknown) => T | undefined,
): T | undefined => {
  for (const path of paths) {
    const found = read(at(value, path));
    if (found !== undefined) return found;
  }
  return undefined;
};

export const asStatus = (value: unknown): number | undefined => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined;
};

const asCode = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' && value.length > 0 && value.length <= CODE_LENGTH_MAX ? value : undefined;
};

const codesAt = (value: unknown, paths: ReadonlyArray<readonly string[]>): string[] =>
  paths.map((path) => asCode(at(value, path))).filter((code) => code !== undefined);

export const retryAfterOf = (value: unknown, wallNow: () => number): number | undefined => {
  const own = read(value, 'retryAfterMs');
  if (own !== undefined) return parseRetryAfter(own, wallNow, 1);
  return firstOf(value, HEADERS, (headers) => {
    for (const name of ['retry-after-ms', 'x-ms-retry-after-ms', 'grpc-retry-pushback-ms']) {
      const hint = parseRetryAfter(header(headers, name), wallNow, 1);
      if (hint !== undefined) return hint;
    }
    // The server says that asking again is no use: a pushback without a wait.
    return (
      parseRetryAfter(header(headers, 'retry-after'), wallNow) ??
      (header(headers, 'x-should-retry') === 'false' ? -1 : undefined)
    );
  });
};

/** The fields in which libraries say whether asking again can help. */
const RETRIABLE = [
  ['isRetryable'],
  ['retryable'],
  ['isRetriable'],
  ['retriable'],
  ['shouldRetry'],
  ['isTransient'],
  ['transient'],
  ['temporary'],
] as const;

const asFlag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined);

export const retriableOf = (value: unknown): boolean | undefined => {
  const said = firstOf(value, RETRIABLE, asFlag);
  if (said !== undefined) return said;
  // AWS has an object here; a wait is a number of seconds or of milliseconds, and says at least that waiting helps.
  if (
    read(value, '$retryable') !== undefined ||
    typeof read(value, 'retryAfter') === 'number' ||
    typeof read(value, 'retry_after') === 'number'
  )
    return true;
  return firstOf(value, HEADERS, (headers) => (header(headers, 'x-should-retry') === 'true' ? true : undefined));
};

/** A number is a gRPC code where gRPC's other fields are: a `DOMException` has such numbers too. */
const rpcOf = (value: unknown): number | undefined => {
  const code = read(value, 'code');
  return typeof code === 'number' && typeof read(value, 'details') === 'string' ? code : undefined;
};

const textOf = (value: unknown): string => {
  const text = typeof value === 'string' ? value : read(value, 'message');
  return typeof text === 'string' ? text.slice(0, MESSAGE_LENGTH_MAX) : '';
};

const describe = (thrown: unknown): string => {
  const text = textOf(thrown);
  if (text !== '' || typeof thrown === 'string') return text;
  if (thrown !== null && typeof thrown === 'object') return 'The tool threw a value without a message';
  return (
    'The tool threw ' +
    (typeof thrown === 'symbol' || typeof thrown === 'function' ? `a ${typeof thrown}` : String(thrown))
  );
};

/** The fields in which libraries older than `cause` keep the error behind theirs. */
const OLDER_CAUSES = [
  'originalError',
  'original',
  'parent',
  'innerError',
  'driverError',
  'networkError',
  'error',
  'reason',
];

/** Codes of connections that were never made. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** Whether a code says that nothing was sent. */
export const isUnsent = (code: unknown): boolean => NOT_CONNECTED.has(code);

/** Which of several errors at once stands for them all. */
export type Chooser = (errors: unknown) => unknown;

/** The first of several errors at once, as far as they can be read: a list has holes, and a proxy of one can throw. */
export const severalIn = (errors: unknown): readonly unknown[] => {
  try {
    return Array.isArray(errors) ? Array.from(errors.slice(0, CAUSE_DEPTH_MAX) as readonly unknown[]) : [];
  } catch {
    return [];
  }
};

/** The first that was sent. */
const firstSent: Chooser = (errors) => {
  const several = severalIn(errors);
  return several.find((error) => !isUnsent(read(error, 'code'))) ?? several[0];
};

/** The error behind an error: its cause, the last of several tries, the one that stands for several at once. */
const behind = (value: unknown, chooser: Chooser): unknown =>
  read(value, 'cause') ??
  read(value, 'lastError') ??
  chooser(read(value, 'errors')) ??
  OLDER_CAUSES.map((key) => read(value, key)).find((inner) => typeof read(inner, 'message') === 'string');

/**
 * Reads a thrown value and its causes. The outermost code, status and hint win, and behind a status no code is looked
 * for: what a server answered is not undone by what went wrong on its side of the answer. Never throws.
 */
export function readStructure(thrown: unknown, wallNow: () => number, chooser: Chooser = firstSent): ErrorStructure {
  let code: string | undefined;
  let status: number | undefined;
  let statusDepth = Infinity;
  let retryAfterMs: number | undefined;
  let retriable: boolean | undefined;
  let rpc: number | undefined;
  const links: Link[] = [];
  const texts: string[] = [];
  let room = TEXT_LENGTH_MAX;
  let link: unknown = thrown;
  for (let depth = 0; depth < CAUSE_DEPTH_MAX && link !== undefined && link !== null; depth++) {
    const answered = status !== undefined;
    if (!answered) {
      code ??= asCode(read(link, 'code') ?? at(link, ['error', 'code']));
      status = firstOf(link, STATUSES, asStatus);
      if (status !== undefined) statusDepth = depth;
      rpc ??= rpcOf(link);
    }
    retryAfterMs ??= retryAfterOf(link, wallNow);
    retriable ??= retriableOf(link);
    const name = answered ? undefined : asCode(read(link, 'name'));
    links.push({ codes: answered ? [] : codesAt(link, CODES), name, names: codesAt(link, NAMES) });
    const text = textOf(link).slice(0, room);
    room -= text.length;
    if (text !== '') texts.push(plainText(text));
    link = behind(link, chooser);
  }
  return { message: describe(thrown), code, status, statusDepth, retryAfterMs, retriable, rpc, links, texts };
}
