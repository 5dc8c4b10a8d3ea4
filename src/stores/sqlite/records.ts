import { defer, firstValueFrom, repeat, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable, DedupeClaim, DedupeReading, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { claimed, ended, mayClaim, renewed } from '../record-life.ts';
import { machineNow } from '../../runtime.ts';
import { BOOT, leaseLeftMs } from '../machine-clock.ts';
import { sqliteFault } from './fault.ts';
import type { SqliteFile } from './file.ts';
import { recordOf, written } from './row.ts';
import { createWatchers } from '../watchers.ts';

/** The machine's clock as SQLite reads it, whatever this process makes of `Date`. */
const NOW = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
const COLUMNS = 'key, version, lock_until, expires_at, record, boot, leased_at, lease_until';
/**
 * Whether a lease is valid: by the machine's own clock, which no one can set; one from before the machine was started
 * by the wall clock.
 */
const RUNS = `CASE WHEN boot = '${BOOT}' AND leased_at <= ? THEN lease_until > ? ELSE lock_until > ${NOW} END`;
/** Nothing is forgotten early, nor kept for longer, wherever the wall clock was set to. */
const LIVE = `CASE WHEN boot = '${BOOT}' AND leased_at <= ? THEN lease_until + (expires_at - lock_until) > ?
  ELSE expires_at > ${NOW} END`;

const READ = `SELECT now, ${COLUMNS} FROM (SELECT ${NOW} AS now) LEFT JOIN records ON key = ?`;
const NEXT = 'UPDATE counters SET version = version + 1 RETURNING version, records';
const PUT = `
  INSERT INTO records (key, tool, session, version, lock_until, expires_at, record, boot, leased_at, lease_until)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET tool = excluded.tool, session = excluded.session, version = excluded.version,
    lock_until = excluded.lock_until, expires_at = excluded.expires_at, record = excluded.record,
    boot = excluded.boot, leased_at = excluded.leased_at, lease_until = excluded.lease_until`;
/** Of a record that stays under its tool and session: their indexes are left alone. */
const UPDATE = `
  UPDATE records SET version = ?, lock_until = ?, expires_at = ?, record = ?, boot = ?, leased_at = ?, lease_until = ?
  WHERE key = ?`;
const DELETE = `DELETE FROM records WHERE key = ? AND (? IS NULL OR version = ?) AND ${LIVE}`;
/** Those that the wall clock says have expired are looked at, since there is an index of them. */
const SWEEP = `DELETE FROM records WHERE rowid IN (SELECT rowid FROM (
  SELECT rowid, * FROM records WHERE ${NOW} >= expires_at ORDER BY expires_at LIMIT ?) WHERE NOT ${LIVE})`;
const MAKE_ROOM = `DELETE FROM records WHERE rowid IN (
  SELECT rowid FROM records WHERE NOT ${RUNS} ORDER BY expires_at LIMIT ?)`;
const LAST_ROW = 'SELECT max(rowid) AS last FROM records';
const page = (column: 'tool' | 'session'): string =>
  `SELECT rowid AS row, ${COLUMNS} FROM records
  WHERE ${column} = ? AND rowid > ? AND rowid <= ? AND ${LIVE} ORDER BY rowid LIMIT ?`;
const BY = { tool: page('tool'), session: page('session') };

/** How often the file is asked whether another process wrote, while anyone watches. */
const POLL_MS = 50;
const PAGE = 64;
/** A transaction that removes more would hold the lock for long. */
const SWEEP_MAX = 500;
/** Every so many claims, what has expired is removed. */
const CLAIMS_PER_SWEEP = 100;

const POWER_LOSS =
  'What was acknowledged survives the end of the process, but a loss of power may lose the latest of it: ' +
  'synchronous "full" keeps that too.';

interface Found {
  readonly occupied: boolean;
  readonly record: DedupeRecord | undefined;
  readonly atMs: number;
  readonly wallMs: number;
}

type Claimed = DedupeReading & { readonly created: boolean };

interface Settings {
  readonly runtime: Runtime;
  readonly maxRecords: number;
  readonly synchronous: 'normal' | 'full';
}

export function createSqliteStore(file: SqliteFile, { runtime, maxRecords, synchronous }: Settings): DedupeStore {
  const background = runtime.background ?? runtime;
  let polling: Subscription | undefined;
  let claims = 0;

  const dataVersion = (): unknown => {
    try {
      return file.row('PRAGMA data_version')?.['data_version'];
    } catch {
      // A caller that waits reads the file itself, and gets the error then.
      return undefined;
    }
  };
  const poll = (watched: boolean): void => {
    polling?.unsubscribe();
    polling = undefined;
    if (!watched || !file.isOpen) return;
    let known = dataVersion();
    polling = defer(() => background.after(POLL_MS))
      .pipe(repeat())
      .subscribe(() => {
        const before = known;
        known = dataVersion();
        if (known !== before) watchers.tellAll();
      });
  };
  const watchers = createWatchers(poll);
  /** Twice the time by which leases are valid, and records live. */
  const at = (): [number, number] => {
    const nowMs = machineNow();
    return [nowMs, nowMs];
  };
  const sweepSome = (): number => file.change(SWEEP, SWEEP_MAX, ...at());
  /**
   * What is there of a key: its row, and the record in it unless that has expired. `wallMs` is the wall clock; `atMs`
   * the time by which the record is to be judged: the wall clock as it was when it was written, and as much later as
   * has passed since.
   */
  const read = (key: string): Found => {
    const row = file.row(READ, written(key)) ?? {};
    const wallMs = Number(row['now']);
    if (row['key'] === null) return { occupied: false, record: undefined, atMs: wallMs, wallMs };
    const lockUntilMs = Number(row['lock_until']);
    const leftMs = leaseLeftMs({ boot: row['boot'], leasedAt: row['leased_at'], leaseUntil: row['lease_until'] });
    // Whole, where an age is told of it; a lease may have a fraction.
    const atMs = leftMs === undefined ? wallMs : lockUntilMs - (lockUntilMs === 0 ? Math.round(leftMs) : leftMs);
    const expired = typeof row['expires_at'] === 'number' && row['expires_at'] <= atMs;
    return { occupied: true, record: expired ? undefined : recordOf(row, file.path), atMs, wallMs };
  };
  /** What a row says beside its key, tool and session. `atMs` is the time by which the record was made. */
  const valuesOf = (record: DedupeRecord, atMs: number): [number, number, number, string, string, number, number] => {
    const { version, lockUntilMs = 0, expiresAtMs } = record;
    const nowMs = machineNow();
    return [version, lockUntilMs, expiresAtMs, JSON.stringify(record), BOOT, nowMs, nowMs + (lockUntilMs - atMs)];
  };
  const put = (record: DedupeRecord, atMs: number): DedupeRecord => {
    const { key, tool, request } = record;
    file.change(PUT, written(key), written(tool), written(request.sessionKey), ...valuesOf(record, atMs));
    return record;
  };
  const update = (record: DedupeRecord, atMs: number): DedupeRecord => {
    file.change(UPDATE, ...valuesOf(record, atMs), written(record.key));
    return record;
  };
  const next = (): { readonly version: number; readonly records: number } => {
    const row = file.row(NEXT);
    return { version: Number(row?.['version']), records: Number(row?.['records']) };
  };
  const makeRoom = (excess: number): void => {
    if (excess <= 0 || file.change(MAKE_ROOM, ...at(), excess) > 0) return;
    throw new ToolExecutionError(
      'store_unavailable',
      `store full: all ${maxRecords} records are claims that run; raise maxRecords, or run fewer calls at once`,
      { code: 'store_full' },
    );
  };
  async function* listed(sql: string, name: string): AsyncGenerator<DedupeRecord, void, undefined> {
    const last = Number((await file.perform(() => file.row(LAST_ROW)))?.['last'] ?? 0);
    let damaged: unknown;
    for (let row = -1; ;) {
      const rows = await file.perform(() => file.rows(sql, written(name), row, last, ...at(), PAGE));
      for (const found of rows) {
        row = Number(found['row']);
        let record: DedupeRecord | undefined;
        try {
          record = recordOf(found, file.path);
        } catch (error) {
          damaged ??= error;
        }
        if (record !== undefined) yield record;
      }
      if (rows.length < PAGE) break;
    }
    // The others come first: one damaged record hides none of them.
    if (damaged !== undefined) throw sqliteFault(damaged, file.path);
  }

  const claim = (wish: DedupeClaim, over: number | undefined): Claimed => {
    const { occupied, record: standing, atMs, wallMs } = read(wish.key);
    if (standing !== undefined && !mayClaim(standing, over, atMs)) return { created: false, record: standing, atMs };
    const { version, records } = next();
    if (!occupied) makeRoom(records + 1 - maxRecords);
    if (++claims % CLAIMS_PER_SWEEP === 0) sweepSome();
    return { created: true, record: put(claimed(wish, version, wallMs), wallMs), atMs: wallMs };
  };
  /** What the work gave, after those who watch the key were told. */
  const changed = <T>(key: string, result: T): T => {
    watchers.note(key);
    watchers.tell();
    return result;
  };

  const told = <T>(key: string, writing: Awaitable<T>, wrote: (result: T) => boolean): Awaitable<T> => {
    const tell = (result: T): T => (wrote(result) ? changed(key, result) : result);
    return writing instanceof Promise ? writing.then(tell) : tell(writing as T);
  };

  return {
    get: (key) =>
      file.perform((): DedupeReading | undefined => {
        file.checkPlace();
        const { record, atMs } = read(key);
        return record === undefined ? undefined : { record, atMs };
      }),
    setIfNotExists: (wish, over) =>
      file.perform((): Awaitable<Claimed> => {
        file.checkPlace();
        // Most that is refused is refused by a read, which waits for no lock and works on a full disk.
        const { record, atMs } = read(wish.key);
        if (record !== undefined && !mayClaim(record, over, atMs)) return { created: false, record, atMs };
        return told(
          wish.key,
          file.write(() => claim(wish, over)),
          ({ created }) => created,
        );
      }),
    compareAndSet: (key, version, outcome) => {
      const settle = (): DedupeRecord | undefined => {
        const { record, wallMs } = read(key);
        return record?.version === version ? update(ended(record, outcome, next().version, wallMs), wallMs) : undefined;
      };
      return told(key, file.write(settle, true), (settled) => settled !== undefined);
    },
    renew: (key, version, leaseMs) =>
      file.write(() => {
        const { record, atMs } = read(key);
        if (record?.version !== version || record.state !== 'inflight') return false;
        update(renewed(record, leaseMs, atMs), atMs);
        return true;
      }, true),
    delete: (key, version) =>
      told(
        key,
        file.write(() => file.change(DELETE, written(key), version ?? null, version ?? null, ...at()) > 0, true),
        (gone) => gone,
      ),
    byTool: (tool) => listed(BY.tool, tool),
    bySession: (sessionKey) => listed(BY.session, sessionKey),
    sweep: async () => {
      let swept = 0;
      for (;;) {
        const removed = await file.write(sweepSome);
        swept += removed;
        if (removed < SWEEP_MAX) return swept;
        await firstValueFrom(runtime.after(0));
      }
    },
    changes: (key) => watchers.changes(key),
    report: () =>
      file.perform(() => ({
        kind: 'sqlite',
        durability: 'disk',
        shared: true,
        warnings: synchronous === 'full' ? [] : [POWER_LOSS],
        records: Number(file.row('SELECT records FROM counters')?.['records']),
      })),
    close: () => {
      watchers.close();
      file.close();
    },
  };
}
