import { defer, firstValueFrom, repeat, type Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeClaim, DedupeReading, DedupeRecord, DedupeStore } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { claimed, ended, mayClaim, renewed } from './record-life.ts';
import { sqliteFault } from './sqlite-fault.ts';
import type { SqliteFile } from './sqlite-file.ts';
import { recordOf, written } from './sqlite-row.ts';
import { createWatchers } from './watchers.ts';

/** The machine's clock as SQLite reads it, whatever this process makes of `Date`. */
const NOW = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
const COLUMNS = 'key, version, lock_until, expires_at, record';

const READ = `SELECT now, ${COLUMNS} FROM (SELECT ${NOW} AS now) LEFT JOIN records ON key = ?`;
const NEXT = 'UPDATE counters SET version = version + 1 RETURNING version, records';
const PUT = `INSERT INTO records (key, tool, session, version, lock_until, expires_at, record) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET tool = excluded.tool, session = excluded.session, version = excluded.version,
    lock_until = excluded.lock_until, expires_at = excluded.expires_at, record = excluded.record`;
/** Of a record that stays under its tool and session: their indexes are left alone. */
const UPDATE = 'UPDATE records SET version = ?, lock_until = ?, expires_at = ?, record = ? WHERE key = ?';
const DELETE = `DELETE FROM records WHERE key = ? AND (? IS NULL OR version = ?) AND expires_at > ${NOW}`;
const SWEEP = `DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE expires_at <= ${NOW} LIMIT ?)`;
const MAKE_ROOM = 'DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE lock_until <= ? ORDER BY expires_at LIMIT ?)';
const LAST_ROW = 'SELECT max(rowid) AS last FROM records';
const page = (column: 'tool' | 'session'): string =>
  `SELECT rowid AS row, ${COLUMNS} FROM records WHERE ${column} = ? AND rowid > ? AND rowid <= ? AND expires_at > ${NOW} ORDER BY rowid LIMIT ?`;
const BY = { tool: page('tool'), session: page('session') };

/** How often the file is asked whether another process wrote, while anyone watches. */
const POLL_MS = 50;
const PAGE = 64;
/** A transaction that removes more would hold the lock for long. */
const SWEEP_MAX = 500;
/** Every so many claims, what has expired is removed. */
const CLAIMS_PER_SWEEP = 100;

const POWER_LOSS = 'What was acknowledged survives the end of the process, but a loss of power may lose the latest of it: synchronous "full" keeps that too.';

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
      // Whoever waits asks for itself, and is told what is wrong.
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
  /** What is there of a key: its row, and the record in it unless that has expired. */
  const read = (key: string): { readonly occupied: boolean; readonly record: DedupeRecord | undefined; readonly atMs: number } => {
    const row = file.row(READ, written(key)) ?? {};
    const atMs = Number(row['now']);
    const occupied = row['key'] !== null;
    const expired = typeof row['expires_at'] === 'number' && row['expires_at'] <= atMs;
    return { occupied, record: occupied && !expired ? recordOf(row, file.path) : undefined, atMs };
  };
  const put = (record: DedupeRecord): DedupeRecord => {
    const { key, tool, request, version, lockUntilMs = 0, expiresAtMs } = record;
    file.change(PUT, written(key), written(tool), written(request.sessionKey), version, lockUntilMs, expiresAtMs, JSON.stringify(record));
    return record;
  };
  const update = (record: DedupeRecord): DedupeRecord => {
    file.change(UPDATE, record.version, record.lockUntilMs ?? 0, record.expiresAtMs, JSON.stringify(record), written(record.key));
    return record;
  };
  const next = (): { readonly version: number; readonly records: number } => {
    const row = file.row(NEXT);
    return { version: Number(row?.['version']), records: Number(row?.['records']) };
  };
  const makeRoom = (atMs: number, excess: number): void => {
    if (excess <= 0 || file.change(MAKE_ROOM, atMs, excess) > 0) return;
    throw new ToolExecutionError('store_unavailable', `store full: all ${maxRecords} records are claims that run; raise maxRecords, or run fewer calls at once`, { code: 'store_full' });
  };
  async function* listed(sql: string, name: string): AsyncGenerator<DedupeRecord, void, undefined> {
    const last = Number((await file.perform(() => file.row(LAST_ROW)))?.['last'] ?? 0);
    let damaged: unknown;
    for (let row = -1; ; ) {
      const rows = await file.perform(() => file.rows(sql, written(name), row, last, PAGE));
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
    const { occupied, record: standing, atMs } = read(wish.key);
    if (standing !== undefined && !mayClaim(standing, over, atMs)) return { created: false, record: standing, atMs };
    file.checkPlace();
    const { version, records } = next();
    if (!occupied) makeRoom(atMs, records + 1 - maxRecords);
    if (++claims % CLAIMS_PER_SWEEP === 0) file.change(SWEEP, SWEEP_MAX);
    return { created: true, record: put(claimed(wish, version, atMs)), atMs };
  };
  /** What the work gave, after those who watch the key were told. */
  const changed = <T>(key: string, result: T): T => {
    watchers.note(key);
    watchers.tell();
    return result;
  };

  return {
    get: (key) =>
      file.perform((): DedupeReading | undefined => {
        const { record, atMs } = read(key);
        return record === undefined ? undefined : { record, atMs };
      }),
    setIfNotExists: (wish, over) =>
      file.perform(() => {
        // Most that is refused is refused by a read, which waits for no lock and works on a full disk.
        const { record, atMs } = read(wish.key);
        if (record !== undefined && !mayClaim(record, over, atMs)) return { created: false, record, atMs };
        const result = file.immediate(() => claim(wish, over));
        return result.created ? changed(wish.key, result) : result;
      }),
    compareAndSet: (key, version, outcome) =>
      file.perform(() => {
        const settled = file.immediate(() => {
          const { record, atMs } = read(key);
          return record?.version === version ? update(ended(record, outcome, next().version, atMs)) : undefined;
        });
        return settled === undefined ? undefined : changed(key, settled);
      }),
    renew: (key, version, leaseMs) =>
      file.perform(() =>
        file.immediate(() => {
          const { record, atMs } = read(key);
          if (record?.version !== version || record.state !== 'inflight') return false;
          update(renewed(record, leaseMs, atMs));
          return true;
        }),
      ),
    delete: (key, version) => file.perform(() => (file.change(DELETE, written(key), version ?? null, version ?? null) > 0 ? changed(key, true) : false)),
    byTool: (tool) => listed(BY.tool, tool),
    bySession: (sessionKey) => listed(BY.session, sessionKey),
    sweep: async () => {
      let swept = 0;
      for (;;) {
        const removed = await file.perform(() => file.change(SWEEP, SWEEP_MAX));
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
