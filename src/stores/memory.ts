import type { Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeRecord, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { MemoryRecords, type Entry } from './memory/records.ts';
import { claimed, ended, mayClaim, renewed } from './record-life.ts';
import { createWatchers } from './watchers.ts';

/** How much is kept in memory, and for how long. */
export interface MemoryStoreOptions {
  /** How many records are kept. Default 25,000 (CLAW). */
  readonly maxKeys?: number;
  /** Clock and timer. Default: the machine's. */
  readonly runtime?: Runtime;
  /** How often expired records are removed, in milliseconds; `Infinity` for never by itself. Default 60,000. */
  readonly sweepMs?: number;
  /**
   * Called when the store begins to refuse claims because all it holds runs, and again only after it had room in
   * between. What it throws is dropped. Default: nobody is.
   */
  readonly onFull?: (full: {
    /** The limit that was reached. */
    readonly maxKeys: number;
  }) => void;
}

const MAX_KEYS = 25_000;
/** A `Map` holds some 16 million. */
const MAX_KEYS_MAX = 10_000_000;
const SWEEP_MS = 60_000;
/** Versions start at the clock's microseconds: a process that starts anew goes on above its last fence. */
const VERSIONS_PER_MS = 1_000;

async function* listed(
  records: MemoryRecords,
  fits: (record: DedupeRecord) => boolean,
  now: () => number,
): AsyncGenerator<DedupeRecord, void, undefined> {
  const keys: string[] = [];
  for (const { record } of records.all()) if (fits(record)) keys.push(record.key);
  // As each of them is by the time it is read.
  for (const key of keys) {
    const record = records.find(key)?.record;
    if (record !== undefined && record.expiresAtMs > now() && fits(record)) yield record;
  }
}

/**
 * Records in this process's memory: gone with it, seen by nobody else, and answered at once. Works wherever JavaScript
 * runs.
 *
 * It keeps `maxKeys` records. For one more, the least recently used one that does not run is given up. A claim whose
 * lease is valid never is, nor the journal of a turn: when all that is there is such, a new claim is refused with
 * `store_unavailable`. `byTool`,
 * `bySession` and `sweep` look through all records. Time is the monotonic clock's, so that a wall clock set forward
 * ends no lease.
 *
 * @param options size, clock and timer
 * @throws RangeError for an option out of range
 *
 * @example
 * const store = memoryStore({ maxKeys: 10_000 });
 */
export function memoryStore(options: MemoryStoreOptions = {}): DedupeStore {
  checkKeys('memoryStore', options, ['maxKeys', 'runtime', 'sweepMs', 'onFull']);
  const { maxKeys = MAX_KEYS, runtime = liveRuntime, sweepMs = SWEEP_MS, onFull } = options;
  checkNumber('maxKeys', maxKeys, integer(1, MAX_KEYS_MAX));
  if (sweepMs !== Infinity) checkNumber('sweepMs', sweepMs, positiveDuration);

  const background = runtime.background ?? runtime;
  const aheadMs = runtime.wallNow() - runtime.now();
  const clock = (): number => runtime.now() + aheadMs;
  const watchers = createWatchers();
  const records = new MemoryRecords(maxKeys, (key) => watchers.note(key));
  let version = Math.floor(runtime.wallNow() * VERSIONS_PER_MS);
  let janitor: Subscription | undefined;
  let refusing = false;
  let closed = false;

  const sweep = (): number => {
    const swept = records.sweep(clock());
    settle();
    return swept;
  };
  /** The end of each operation that wrote: the timer runs while anything is stored, and listeners may ask. */
  const settle = (): void => {
    if (records.size === 0) {
      janitor?.unsubscribe();
      janitor = undefined;
    } else if (janitor === undefined && !closed && sweepMs !== Infinity) {
      janitor = background.after(sweepMs).subscribe(() => {
        janitor = undefined;
        sweep();
      });
    }
    watchers.tell();
  };
  const live = (key: string, atMs: number): Entry | undefined => {
    const entry = records.find(key);
    return entry !== undefined && entry.record.expiresAtMs > atMs ? entry : undefined;
  };
  const full = (): ToolExecutionError => {
    if (!refusing) {
      refusing = true;
      try {
        onFull?.({ maxKeys });
      } catch {
        // A listener that throws must not fail the claim.
      }
    }
    return new ToolExecutionError(
      'store_unavailable',
      `store full: all ${maxKeys} records are claims that run; raise maxKeys, or run fewer calls at once`,
      { code: 'store_full' },
    );
  };

  return {
    get: (key) => {
      const atMs = clock();
      const entry = live(key, atMs);
      if (entry === undefined) return undefined;
      records.touch(entry);
      return { record: entry.record, atMs };
    },
    setIfNotExists: (claim, over) => {
      const atMs = clock();
      const entry = records.find(claim.key);
      if (entry !== undefined && !mayClaim(entry.record, over, atMs)) {
        records.touch(entry);
        return { created: false, record: entry.record, atMs };
      }
      const record = claimed(claim, version + 1, atMs);
      if (entry !== undefined) records.replace(entry, record, atMs);
      else if (!records.add(record, atMs)) throw full();
      version++;
      refusing = false;
      watchers.note(claim.key);
      settle();
      return { created: true, record, atMs };
    },
    compareAndSet: (key, of, outcome) => {
      const atMs = clock();
      const entry = live(key, atMs);
      if (entry?.record.version !== of) return undefined;
      const record = ended(entry.record, outcome, version + 1, atMs);
      version++;
      records.replace(entry, record, atMs, outcome.pinned);
      watchers.note(key);
      settle();
      return record;
    },
    renew: (key, of, leaseMs) => {
      const atMs = clock();
      const entry = live(key, atMs);
      if (entry?.record.version !== of || entry.record.state !== 'inflight') return false;
      records.replace(entry, renewed(entry.record, leaseMs, atMs), atMs);
      return true;
    },
    delete: (key, of) => {
      const entry = live(key, clock());
      if (entry === undefined || (of !== undefined && entry.record.version !== of)) return false;
      records.remove(entry);
      watchers.note(key);
      settle();
      return true;
    },
    byTool: (tool) => listed(records, (record) => record.tool === tool, clock),
    bySession: (sessionKey) => listed(records, ({ request }) => request.sessionKey === sessionKey, clock),
    sweep,
    changes: (key) => watchers.changes(key),
    report: () => {
      sweep();
      return {
        kind: 'memory',
        durability: 'process',
        shared: false,
        warnings: ['Records are lost when this process ends, and other processes do not see them.'],
        records: records.size,
      };
    },
    close: () => {
      closed = true;
      janitor?.unsubscribe();
      janitor = undefined;
      watchers.close();
    },
  };
}
