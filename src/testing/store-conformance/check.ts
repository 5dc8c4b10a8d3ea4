import type {
  Awaitable,
  DedupeClaim,
  DedupeFailure,
  DedupeReading,
  DedupeRecord,
  DedupeStore,
} from '../../contract/store.ts';

/** A store to be tried, and what its cases need around it. */
export interface StoreHarness {
  /** The store that is tried: empty, and used by nobody else. */
  readonly store: DedupeStore;
  /**
   * Lets at least `ms` pass by the store's own clock: virtual time where it has one, else a real wait. Cases ask for 10
   * to 1,000.
   */
  readonly pass: (ms: number) => Awaitable<unknown>;
  /**
   * Another handle on the same records, as another process has it. Without it, a case that needs one uses `store`
   * itself.
   */
  readonly open?: () => Awaitable<DedupeStore>;
  /** The store forgets what has expired without `sweep`, which may therefore find nothing. Default false. */
  readonly forgetsAlone?: boolean;
  /** Ends the store, and every handle that was opened. */
  readonly close: () => Awaitable<unknown>;
}

/** A case as a file of them has it: the harness is made and closed around it. */
export interface HarnessCase {
  readonly name: string;
  readonly run: (harness: StoreHarness) => Promise<void>;
}

/** Long enough that no machine is too busy for it. */
export const LONG_MS = 600_000;
/** A lease or a time to live that is meant to pass. */
export const SHORT_MS = 50;
/** After it, what was short is over. */
export const OVER_MS = 150;
/** Stores keep whole milliseconds, or fractions. */
const CLOCK_STEP_MS = 1;

const SHOWN_MAX = 400;
const show = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}... (${text.length} characters)` : text;
};

/** @throws Error with `what` unless `holds` */
export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const equal = (a: unknown, b: unknown): boolean => {
  if (!isObject(a) || !isObject(b)) return Object.is(a, b);
  const keys = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]))
  );
};

/** @throws Error unless both are equal, member by member */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (!equal(actual, expected)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** @throws Error unless both lie within a step of the store's clock */
export function sameMs(actual: number | undefined, expected: number, what: string): void {
  if (actual === undefined || Math.abs(actual - expected) > CLOCK_STEP_MS)
    throw new Error(`${what}: expected ${expected} within ${CLOCK_STEP_MS} ms, got ${show(actual)}`);
}

export interface ClaimPart {
  readonly tool?: string;
  readonly sessionKey?: string;
  readonly tenantId?: string;
  readonly requestId?: string;
  readonly leaseMs?: number;
  readonly ttlMs?: number;
}

/** A claim of `key` with a long lease, unless told otherwise. */
export function claimOf(
  key: string,
  {
    tool = 'search',
    sessionKey = 's1',
    tenantId,
    requestId = 'r1',
    leaseMs = LONG_MS,
    ttlMs = LONG_MS,
  }: ClaimPart = {},
): DedupeClaim {
  const request = {
    sessionKey,
    actorId: 'a1',
    requestId,
    paramsDigest: '0'.repeat(64),
    ...(tenantId === undefined ? {} : { tenantId }),
  };
  return { key, tool, idempotencyKey: `of ${key}`, request, leaseMs, ttlMs };
}

/** Claims a key that must be free. */
export async function own(store: DedupeStore, claim: DedupeClaim, over?: number): Promise<DedupeRecord> {
  const { created, record } = await store.setIfNotExists(claim, over);
  check(
    created,
    `the key ${show(claim.key)} was to be granted${over === undefined ? '' : ` over version ${over}`}, and ` +
      `${show(record)} stands in its way`,
  );
  return record;
}

/** Claims a key that must be refused. */
export async function refused(store: DedupeStore, claim: DedupeClaim, over?: number): Promise<DedupeReading> {
  const { created, record, atMs } = await store.setIfNotExists(claim, over);
  check(
    !created,
    `a claim of ${show(claim.key)}${over === undefined ? '' : ` over version ${over}`} was to be refused, ` +
      `and was granted as ${show(record)}`,
  );
  return { record, atMs };
}

/** Reads a record that must be there. */
export async function found(store: DedupeStore, key: string): Promise<DedupeReading> {
  const reading = await store.get(key);
  check(reading !== undefined, `the record of ${show(key)} is gone`);
  return reading;
}

/** Ends a claim; it must be accepted. */
export async function finish(
  store: DedupeStore,
  { key, version }: DedupeRecord,
  payload = '"ok"',
  ttlMs: number = LONG_MS,
): Promise<DedupeRecord> {
  const record = await store.compareAndSet(key, version, { state: 'done', ttlMs, payload });
  check(record !== undefined, `the outcome of ${show(key)}, version ${version}, was refused`);
  return record;
}

export const failure: DedupeFailure = {
  code: 'ECONNRESET',
  message: 'the connection was lost',
  terminal: false,
  shouldRetriable: true,
};
