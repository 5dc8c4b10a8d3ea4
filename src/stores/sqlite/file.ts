import { realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type * as sqlite from 'node:sqlite';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { firstValueFrom } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { closedFault, isBusy, sqliteFault } from './fault.ts';
import { SqliteQueue } from './queue.ts';
import { SCHEMA, SCHEMA_VERSION, UPGRADES, APPLICATION_ID } from './schema.ts';

export interface SqliteFileSettings {
  readonly runtime: Runtime;
  readonly busyTimeoutMs: number;
  readonly synchronous: 'normal' | 'full';
}

type Sqlite = typeof sqlite;

/** What is asked of a host: Node 22.3 and later have it as `process`. */
interface Host {
  getBuiltinModule?(id: 'node:sqlite'): Sqlite | undefined;
}

const WAIT_MAX_MS = 50;
/** Whoever turns a new file's journal to WAL at the same moment makes the others try again. */
const JOURNAL_TRIES = 100;

/** Which files they are, wherever their paths lead. */
const placeOf = (paths: readonly string[]): string =>
  paths
    .map((path) => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? 'nowhere' : `${stats.dev} ${stats.ino}`;
    })
    .join();

/** Throws an Error with the remedy where `node:sqlite` is missing. */
export function loadSqlite(host: Host = globalThis.process): Sqlite {
  const module = host.getBuiltinModule?.('node:sqlite');
  if (module === undefined)
    throw new Error(
      'sqliteStore needs node:sqlite: use Node 22.13 or later, or start Node 22.5 to 22.12 with --experimental-sqlite',
    );
  return module;
}

/**
 * A SQLite file in use: prepared statements, transactions, waiting for the lock. All that it throws is
 * `store_unavailable`, or a `RangeError` from inside.
 */
export class SqliteFile {
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #runtime: Runtime;
  readonly #busyTimeoutMs: number;
  /**
   * What was committed and is not in the file yet, and the locks of those who use it, are in files beside it, or beside
   * the one that a symbolic link leads to.
   */
  readonly #parts: readonly string[];
  readonly #place: string;
  readonly #queue: SqliteQueue;
  #closed = false;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, { runtime, busyTimeoutMs, synchronous }: SqliteFileSettings) {
    const { DatabaseSync } = loadSqlite();
    // As it is now: the process may change its folder.
    this.path = resolve(path);
    this.#runtime = runtime;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#queue = new SqliteQueue(runtime, busyTimeoutMs, (work) => this.#immediate(work));
    let db: DatabaseSync | undefined;
    try {
      this.#checkName();
      db = new DatabaseSync(path);
      this.#db = db;
      this.#open(synchronous);
      const real = realpathSync(this.path);
      this.#parts = [this.path, `${real}-wal`, `${real}-shm`];
      this.#place = placeOf(this.#parts);
    } catch (error) {
      db?.close();
      throw sqliteFault(error, path);
    }
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** For pragmas and what runs once. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** The first row, as its reader checks it. */
  row(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return this.#statement(sql).get(...values);
  }

  rows(sql: string, ...values: SQLInputValue[]): readonly Record<string, unknown>[] {
    return this.#statement(sql).all(...values);
  }

  /** How many rows it changed. */
  change(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Runs what only reads: at once, and again from time to time in the rare moments when SQLite lets nobody read. */
  perform<T>(work: () => Awaitable<T>): Awaitable<T> {
    if (!this.isOpen) throw closedFault(this.path);
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw sqliteFault(error, this.path);
      return this.#later(work);
    }
  }

  /**
   * Runs `work` as one transaction that has the lock from its start: at once if it is free, else in its turn, without
   * blocking the process.
   *
   * @param urgent it goes before others that wait: whoever holds a lease loses it by waiting
   */
  write<T>(work: () => T, urgent = false): Awaitable<T> {
    if (!this.isOpen) throw closedFault(this.path);
    try {
      const result = this.#queue.run(work, urgent);
      return result instanceof Promise ? result.catch((error: unknown) => this.#fail(error)) : result;
    } catch (error) {
      return this.#fail(error);
    }
  }

  /**
   * Throws when the path no longer leads to this file: others would use the new one, and a key would have two owners.
   */
  checkPlace(): void {
    if (placeOf(this.#parts) === this.#place) return;
    throw new ToolExecutionError(
      'store_unavailable',
      `${this.path}: the file, or its -wal or -shm, was moved, deleted or replaced while it was in use; close the ` +
        'store and make another one',
      { code: 'store_moved' },
    );
  }

  /** Under each name SQLite has another log and other locks beside the one file: a key would have two owners. */
  #checkName(): void {
    const stats = statSync(this.path, { throwIfNoEntry: false });
    if (stats?.isFile() !== true || stats.nlink <= 1) return;
    throw new ToolExecutionError(
      'store_unavailable',
      `${this.path}: the file has another name as well, by a hard link, and whoever opens it by that one sees ` +
        'other records; remove that name, or link symbolically',
      { code: 'store_linked' },
    );
  }

  #fail(error: unknown): never {
    throw sqliteFault(error, this.path);
  }

  /** It waits at the start or not at all. */
  #immediate<T>(work: () => T): T {
    this.change('BEGIN IMMEDIATE');
    try {
      // Whatever it would write, nobody else would see it.
      this.checkPlace();
      const result = work();
      this.change('COMMIT');
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.close(() => closedFault(this.path));
    this.#statements.clear();
    this.#db.close();
  }

  #rollBack(): void {
    try {
      this.change('ROLLBACK');
    } catch {
      // After some errors SQLite has undone it already. Node 22's early releases cannot be asked whether it has.
    }
  }

  async #later<T>(work: () => Awaitable<T>): Promise<T> {
    const untilMs = this.#runtime.now() + this.#busyTimeoutMs;
    for (let waitMs = 1; ; waitMs = Math.min(2 * waitMs, WAIT_MAX_MS)) {
      await firstValueFrom(this.#runtime.after(waitMs * (0.5 + this.#runtime.random())));
      if (!this.isOpen) throw closedFault(this.path);
      try {
        return await work();
      } catch (error) {
        if (!isBusy(error) || this.#runtime.now() >= untilMs) throw sqliteFault(error, this.path);
      }
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, (statement = this.#db.prepare(sql)));
    return statement;
  }

  #pragma(name: string): unknown {
    return Object.values(this.#db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  }

  #open(synchronous: 'normal' | 'full'): void {
    this.exec(`PRAGMA busy_timeout = ${Math.ceil(this.#busyTimeoutMs)}`);
    // One snapshot: a file that another one begins to use between two looks would seem to be someone else's.
    this.exec('BEGIN');
    this.#adopt(false);
    this.exec('COMMIT');
    this.#setJournal();
    // Another one may have made the schema meanwhile; and a file that cannot be written to is found out now.
    this.exec('BEGIN IMMEDIATE');
    this.#adopt(true);
    this.exec('COMMIT');
    this.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA busy_timeout = 0`);
  }

  /**
   * Makes the schema in an empty file, when it is `ours` by lock; refuses another program's file, and one of a later
   * release.
   */
  #adopt(ours: boolean): void {
    const refuse = (what: string): ToolExecutionError =>
      new ToolExecutionError('store_unavailable', `${this.path}: ${what}`, { code: 'store_schema' });
    const id = this.#pragma('application_id');
    const version = Number(this.#pragma('user_version'));
    const empty = this.#db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
    if (empty && (id === 0 || id === APPLICATION_ID)) {
      if (ours) this.exec(SCHEMA);
    } else if (id === APPLICATION_ID && UPGRADES.has(version)) {
      if (ours) this.exec(UPGRADES.get(version) ?? '');
    } else if (id !== APPLICATION_ID) throw refuse('the file holds another program’s database; give a path of its own');
    else if (version !== SCHEMA_VERSION)
      throw refuse(
        `the file has schema version ${version}, and this release of spillway knows ${SCHEMA_VERSION}; use ` +
          'the release that made it, or another file',
      );
  }

  #setJournal(): void {
    for (let left = JOURNAL_TRIES; ; left--) {
      try {
        const mode = this.#pragma('journal_mode = WAL');
        if (mode === 'wal') return;
        throw new ToolExecutionError(
          'store_unavailable',
          `${this.path}: its file system cannot do write-ahead logging (journal mode ${String(mode)}); use a ` +
            'file on a local disk',
          { code: 'store_journal' },
        );
      } catch (error) {
        if (!isBusy(error) || left === 0) throw error;
        // SQLite does not wait by itself here. It does for a transaction.
        this.exec('BEGIN IMMEDIATE; COMMIT');
      }
    }
  }
}
