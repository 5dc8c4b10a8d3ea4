import { checkKeys, checkNumber, checkOneOf, duration, integer } from '../policy/check.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeStore } from '../contract/store.ts';
import { liveRuntime } from '../runtime.ts';
import { acrossProcesses } from './across-processes.ts';
import { SqliteFile } from './sqlite/file.ts';
import { createSqliteStore } from './sqlite/records.ts';

/** How long the store waits for its file, and how durable it is. */
export interface SqliteStoreOptions {
  /** For waiting and polling; records are timed by the machine's own clock since its start. Default the machine's. */
  readonly runtime?: Runtime;
  /**
   * How long an operation waits for another process's lock on the file, in milliseconds; it does not block this
   * process. Writes wait in order, and share a transaction. Making the store waits as long, and blocks. Default 5,000.
   */
  readonly busyTimeoutMs?: number;
  /**
   * How many records are kept; the record that expires next and does not run makes room. Default `Infinity`: no bound
   * but the disk.
   */
  readonly maxRecords?: number;
  /**
   * SQLite's own setting. `normal`, the default: what was acknowledged survives the end of the process, kill -9
   * included, and may be lost with the power. `full`: it survives that too, at the price of a disk flush for each
   * write.
   */
  readonly synchronous?: 'normal' | 'full';
}

const BUSY_TIMEOUT_MS = 5_000;
const MAX_RECORDS_MAX = 1_000_000_000;
/** SQLite keeps it in 31 bits. */
const BUSY_TIMEOUT_MAX_MS = 2 ** 31 - 1;

/**
 * Records in a SQLite file, through Node's own `node:sqlite`: durable, without a server, and shared by the processes of
 * one machine that open the same path. Not for network file systems. Answers at once unless another process holds the
 * lock.
 *
 * All times go by the monotonic clock of the machine, which its processes share and nobody can set; those of records
 * from before the machine was started by the wall clock as SQLite reads it. Expired records are removed as new ones
 * come, and by `sweep`.
 *
 * @param path the file, made if it is missing; its folder must exist
 * @param options waiting, size and durability
 * @throws RangeError for an option out of range
 * @throws Error where `node:sqlite` is missing: it needs Node 22.13 or later
 * @throws `store_unavailable` (ToolExecutionError) when the file cannot be used: its folder is missing, it is
 * read-only, damaged, another program's or locked
 *
 * @example
 * const store = sqliteStore('./calls.db', { synchronous: 'full' });
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): DedupeStore {
  checkKeys('sqliteStore', options, ['runtime', 'busyTimeoutMs', 'maxRecords', 'synchronous']);
  const {
    runtime = liveRuntime,
    busyTimeoutMs = BUSY_TIMEOUT_MS,
    maxRecords = Infinity,
    synchronous = 'normal',
  } = options;
  if (typeof path !== 'string' || path === '' || path.includes('\0') || /^(?::memory:|file:)/.test(path)) {
    throw new RangeError(
      `path must be the path of a file, not ${JSON.stringify(path)}; for records in memory there is memoryStore()`,
    );
  }
  checkNumber('busyTimeoutMs', busyTimeoutMs, {
    ...duration,
    holds: (value) => value >= 0 && value <= BUSY_TIMEOUT_MAX_MS,
    rule: `a duration from 0 to ${BUSY_TIMEOUT_MAX_MS} milliseconds`,
  });
  if (maxRecords !== Infinity) checkNumber('maxRecords', maxRecords, integer(1, MAX_RECORDS_MAX));
  checkOneOf('synchronous', synchronous, ['normal', 'full']);
  const file = new SqliteFile(path, { runtime, busyTimeoutMs, synchronous });
  return acrossProcesses(createSqliteStore(file, { runtime, maxRecords, synchronous }));
}
