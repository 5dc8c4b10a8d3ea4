// Was: two looks at a new SQLite file saw its id from before and its tables from after another process made them, and
// took it for another program's. Now: it is taken as ours.
import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from 'spillway/stores/sqlite';
import { afterEach, expect, it, vi } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'spillway-sqlite-'));
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

it('R-10.2 a file that another process begins to use between two looks is not taken for someone else’s', async () => {
  const path = join(folder, 'calls.db');
  const { prepare } = DatabaseSync.prototype;
  let begun = 0;
  vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (this: DatabaseSync, sql: string) {
    // After the first look, at the file's id, and before the second, at what is in it.
    if (sql.includes('sqlite_schema') && begun++ === 0) {
      try {
        void sqliteStore(path, { busyTimeoutMs: 50 }).close?.();
      } catch {
        // It may be made to wait.
      }
    }
    return prepare.call(this, sql);
  });
  const store = sqliteStore(path);
  expect(begun).toBeGreaterThan(0);
  expect(await store.sweep()).toBe(0);
  await store.close?.();
});
