import {
  concatMap,
  defer,
  dematerialize,
  from,
  map,
  materialize,
  of,
  throwError,
  type Observable,
  type ObservableNotification,
} from 'rxjs';
import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeOutcome, DedupeRecord, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { checkKeys, checkNumber, checkOneOf, given, positiveDuration } from '../policy/check.ts';
import { classify } from '../policy/recovery/classify.ts';
import { DEDUPE_DEFAULTS, PAYLOAD_MAX_CHARS, STORE_TIMEOUT_MS } from '../policy/profile.ts';
import { liveRuntime } from '../runtime.ts';
import { checkedStore } from './dedupe/checked-store.ts';
import { idempotent, type IdempotentRun } from './dedupe/idempotent.ts';

/** How `dedupe` treats a key. Times are milliseconds. */
export interface DedupeOptions {
  /**
   * `enforced` (default): waits for the one that runs, refuses without the store. `bestEffort`: errors at once while
   * another runs, runs without the store.
   */
  readonly mode?: 'enforced' | 'bestEffort';
  /** What is asked, as a digest: the same key with another one is a `conflict`. Default: the key says it all. */
  readonly fingerprint?: string;
  /** Under which name the records are listed. Default `dedupe`. */
  readonly tool?: string;
  /**
   * How long a claim holds without being renewed; it is, every third of it, or sooner where the store is slow. Default
   * 120,000.
   */
  readonly leaseMs?: number;
  /** How long values are kept. Default 86,400,000: a day (CLAW 1.3). */
  readonly doneTtlMs?: number;
  /** How long an error is kept. Default 300,000 (CLAW 1.3). */
  readonly failedTtlMs?: number;
  /** How long an answer of the store is waited for. Default 5,000. */
  readonly storeTimeoutMs?: number;
}

const OPTION_KEYS = ['mode', 'fingerprint', 'tool', 'leaseMs', 'doneTtlMs', 'failedTtlMs', 'storeTimeoutMs'];

type Settings = Required<DedupeOptions> & {
  readonly store: DedupeStore;
  readonly key: string;
  readonly runtime: Runtime;
};

const readOptions = (store: DedupeStore, key: string, options: DedupeOptions, runtime: Runtime): Settings => {
  checkKeys('dedupe', options, OPTION_KEYS);
  if (typeof key !== 'string' || key === '')
    throw new RangeError(`the key of dedupe must be a string that is not empty, not ${typeof key}`);
  const { leaseMs, doneTtlMs, failedTtlMs } = DEDUPE_DEFAULTS;
  const settings = {
    mode: 'enforced' as const,
    fingerprint: '',
    tool: 'dedupe',
    leaseMs,
    doneTtlMs,
    failedTtlMs,
    storeTimeoutMs: STORE_TIMEOUT_MS,
    ...given(options),
  };
  checkOneOf('mode', settings.mode, ['enforced', 'bestEffort']);
  for (const name of ['leaseMs', 'doneTtlMs', 'failedTtlMs', 'storeTimeoutMs'] as const)
    checkNumber(name, settings[name], positiveDuration);
  return { ...settings, store: checkedStore(store), key, runtime };
};

const failed = (error: ToolExecutionError, ttlMs: number, terminal: boolean): DedupeOutcome => ({
  state: 'failed',
  ttlMs,
  error: {
    code: error.kind,
    message: error.message,
    terminal,
    shouldRetriable: !terminal,
    ...(error.uncertain ? { uncertain: true } : {}),
  },
});

/** Each value in a box of its own: JSON has no `undefined`. */
const payloadOf = (values: readonly unknown[]): string => {
  const payload = JSON.stringify(values.map((value) => ({ value })));
  if (payload.length > PAYLOAD_MAX_CHARS) throw new RangeError(`they are longer than ${PAYLOAD_MAX_CHARS} characters`);
  return payload;
};

const doneOf = (values: readonly unknown[], { doneTtlMs }: Settings): DedupeOutcome => {
  try {
    return { state: 'done', ttlMs: doneTtlMs, payload: payloadOf(values) };
  } catch (thrown) {
    const error = new ToolExecutionError(
      'internal_error',
      `It ran under this key and its values cannot be replayed: ${toToolExecutionError(thrown).message}`,
    );
    return failed(error, doneTtlMs, true);
  }
};

const replayOf = <T>({ state, payload, error }: DedupeRecord): Observable<T> => {
  if (state !== 'done') {
    const {
      code = 'internal_error',
      message = 'The earlier one failed',
      terminal = true,
      uncertain = false,
    } = error ?? {};
    const classification = terminal ? 'permanent' : 'transient';
    return throwError(
      () => new ToolExecutionError(code as ToolErrorKind, message, { classification, executed: false, uncertain }),
    );
  }
  return defer(() => {
    try {
      // Written by this operator, of values of the same stream.
      return from(JSON.parse(payload ?? '[]') as ReadonlyArray<{ readonly value: T }>).pipe(map(({ value }) => value));
    } catch (thrown) {
      throw new ToolExecutionError(
        'store_unavailable',
        'What the store holds under this key cannot be read; clear the key to run it again',
        { cause: thrown },
      );
    }
  });
};

type End = Exclude<ObservableNotification<unknown>, { readonly kind: 'N' }>;

const outcomeOf = (end: End, values: readonly unknown[], settings: Settings): DedupeOutcome => {
  if (end.kind === 'C') return doneOf(values, settings);
  const error = toToolExecutionError(end.error, () => settings.runtime.wallNow());
  return failed(error, settings.failedTtlMs, classify(error).classification === 'permanent');
};

/** As with a breaker, who leaves after a value has had an answer, as `firstValueFrom` does. */
const leftAfter = (values: readonly unknown[], settings: Settings): DedupeOutcome => {
  if (values.length > 0) return doneOf(values, settings);
  const error = new ToolExecutionError('canceled', 'Its subscriber left while it ran', { uncertain: true });
  return { ...failed(error, settings.doneTtlMs, true), state: 'cancelled' };
};

const LOST = 'The idempotency key was lost while this ran, and it may have taken effect; ask again under the same key';

/** One subscription to a deduped stream. */
const runOf = <T>(settings: Settings): IdempotentRun<T> => {
  const { store, key, mode, tool, fingerprint, leaseMs, doneTtlMs, storeTimeoutMs, runtime } = settings;
  const request = { sessionKey: '', actorId: '', requestId: runtime.id(), paramsDigest: fingerprint };
  const values: T[] = [];
  let isKept = false;
  return {
    claim: { key, tool, idempotencyKey: key, request, leaseMs, ttlMs: doneTtlMs },
    terms: { store, runtime, leaseMs, storeTimeoutMs, hasOwnId: true, mode, global: true, neverTwice: false },
    // An operator has no trace.
    tell: () => undefined,
    // Without a lease nothing is recorded, and a stream may have no end.
    begins: ({ lease }) => {
      isKept = lease !== undefined;
    },
    replay: ({ record }) => replayOf(record),
    // Values pass as they come, and the end once it is recorded, or it is known that it cannot be.
    recorded: (source, record) =>
      source.pipe(
        materialize(),
        concatMap((notification) => {
          if (notification.kind !== 'N')
            return record(
              () => outcomeOf(notification, values, settings),
              () => of(notification),
            );
          if (isKept) values.push(notification.value);
          return of(notification);
        }),
        dematerialize(),
      ),
    left: () => leftAfter(values, settings),
    lost: () =>
      throwError(() => new ToolExecutionError('store_unavailable', LOST, { executed: true, uncertain: true })),
  };
};

/**
 * Runs a stream once per key, whoever subscribes and in whichever process: a second subscriber waits for the first and
 * gets its values, and so does everyone after it for as long as they are kept. Values pass as they come; the
 * end is emitted once it is recorded.
 *
 * ```
 * source                -a-b-|              is subscribed to once
 * dedupe(store, key)    -a-b-|
 * one that waits          ---(ab|)          gets its values once they are recorded
 * one that comes late            (ab|)
 * ```
 *
 * Without the outcome of the first there is none: one that fails replays its error (a `ToolExecutionError`), and one
 * whose subscriber left before its first value leaves the key blocked until it is cleared with `store.delete(key)`,
 * since it may have taken effect. When others of this process wait, it runs on without its subscriber. Exactly-once
 * effects need the key checked at the resource: a worker that is killed runs again.
 *
 * @param store where keys are remembered
 * @param key what makes two subscriptions the same; `callKey` computes one
 * @param options `mode` (`enforced`), `fingerprint`, `leaseMs` (120,000), `doneTtlMs` (24 h), `failedTtlMs` (5 min),
 * `storeTimeoutMs` (5,000)
 * @throws RangeError for an option out of its range; errors with `conflict`, `duplicate_in_flight`,
 * `store_unavailable`, or `canceled`
 *
 * @example const ticket$ = defer(() => fetch('https://example.com/book', { method: 'POST' })).pipe(map(({ status }) =>
 * status), dedupe(memoryStore(), 'order-1'));
 */
export function dedupe(
  store: DedupeStore,
  key: string,
  options: DedupeOptions = {},
  runtime: Runtime = liveRuntime,
): <T>(source: Observable<T>) => Observable<T> {
  const settings = readOptions(store, key, options, runtime);
  return (source) => defer(() => source.pipe(idempotent(runOf(settings))));
}
