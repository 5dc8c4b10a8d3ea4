import { ToolExecutionError } from '../../contract/tool-error.ts';

/**
 * SQLite's primary result codes that a reader can do something about: its name for it, and what to do.
 * https://sqlite.org/rescode.html
 */
const FAULTS: ReadonlyMap<number, readonly [code: string, what: string]> = new Map([
  [
    5,
    [
      'SQLITE_BUSY',
      'another process holds the lock of the file for longer than busyTimeoutMs; look for a transaction left ' +
        'open, or raise busyTimeoutMs',
    ],
  ],
  [6, ['SQLITE_LOCKED', 'the file is locked by this process; look for a transaction left open']],
  [8, ['SQLITE_READONLY', 'the file or its folder may not be written to; give this process the right to write both']],
  [
    10,
    [
      'SQLITE_IOERR',
      'the disk reported an error; check the disk and the file system, and keep the file off network file systems',
    ],
  ],
  [
    11,
    [
      'SQLITE_CORRUPT',
      'the file is damaged; move it away with its -wal and -shm files and start with a new one, or restore ' +
        'it from a copy',
    ],
  ],
  [13, ['SQLITE_FULL', 'the disk is full; make room, or set maxRecords']],
  [
    14,
    [
      'SQLITE_CANTOPEN',
      'the file cannot be opened; its folder must exist, and this process must be allowed to write to it',
    ],
  ],
  [26, ['SQLITE_NOTADB', 'the file is no SQLite database, or is damaged; move it away, or give another path']],
]);

const BUSY: ReadonlySet<number | undefined> = new Set([5, 6]);
/** The low byte; the others say more than is needed. */
const PRIMARY = 0xff;

const resultCode = (error: unknown): number | undefined => {
  const code: unknown = typeof error === 'object' && error !== null && 'errcode' in error ? error.errcode : undefined;
  return typeof code === 'number' ? code & PRIMARY : undefined;
};

/** Somebody else writes just now, and nothing was done. */
export function isBusy(error: unknown): boolean {
  return BUSY.has(resultCode(error));
}

/** What SQLite threw, as the store's own error. A `RangeError` for a bad argument stays one. */
export function sqliteFault(error: unknown, path: string): unknown {
  if (error instanceof ToolExecutionError || error instanceof RangeError) return error;
  if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_INVALID_STATE')
    return closedFault(path);
  const result = resultCode(error);
  const [code, what] = FAULTS.get(result ?? -1) ?? [
    'SQLITE_ERROR',
    `SQLite reported ${result === undefined ? 'an error' : `error ${result}`}; its cause says more`,
  ];
  return new ToolExecutionError('store_unavailable', `${path}: ${what}`, { code, cause: error });
}

export function closedFault(path: string): ToolExecutionError {
  return new ToolExecutionError('store_unavailable', `${path}: the store was closed; make another one`, {
    code: 'store_closed',
  });
}
