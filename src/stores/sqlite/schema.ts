/** 'splw': a file that holds something else is not touched. */
export const APPLICATION_ID = 0x73_70_6c_77;
export const SCHEMA_VERSION = 2;
/**
 * The clock that counts since the machine was started, and of which start of the machine it is (`machine-clock.ts`):
 * when the row was written, and what `lock_until` is by it, which for a record that is not leased is the epoch. So
 * whatever the row says in wall clock time is known by a clock that nobody can set.
 */
const LEASE: readonly string[] = [
  "boot TEXT NOT NULL DEFAULT 'none'",
  'leased_at REAL NOT NULL DEFAULT 0',
  'lease_until REAL NOT NULL DEFAULT 0',
];
/**
 * Times are REAL, which holds a whole number up to 2^53 exactly, and the fraction that a lease may have. Text is JSON:
 * it keeps NUL and lone surrogates.
 */
export const SCHEMA: string = `
  CREATE TABLE records (
    key TEXT NOT NULL PRIMARY KEY, tool TEXT NOT NULL, session TEXT NOT NULL,
    version INTEGER NOT NULL, lock_until REAL NOT NULL, expires_at REAL NOT NULL, record TEXT NOT NULL,
    ${LEASE.join(', ')}
  ) STRICT;
  CREATE INDEX records_by_expiry ON records (expires_at);
  CREATE INDEX records_by_tool ON records (tool);
  CREATE INDEX records_by_session ON records (session);
  CREATE TABLE counters (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, records INTEGER NOT NULL) STRICT;
  INSERT INTO counters VALUES (1, CAST(unixepoch('subsec') * 1000000 AS INTEGER), 0);
  CREATE TRIGGER records_added AFTER INSERT ON records BEGIN UPDATE counters SET records = records + 1; END;
  CREATE TRIGGER records_removed AFTER DELETE ON records BEGIN UPDATE counters SET records = records - 1; END;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;
/** What makes a file of an earlier version one of this. Leases that it holds go by the wall clock. */
export const UPGRADES: ReadonlyMap<number, string> = new Map([
  [
    1,
    `${LEASE.map((column) => `ALTER TABLE records ADD COLUMN ${column};`).join(' ')} PRAGMA user_version = ` +
      `${SCHEMA_VERSION};`,
  ],
]);
