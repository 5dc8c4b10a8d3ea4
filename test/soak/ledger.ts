import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * What happened to a key, in the order in which it was written. Times are the machine's wall clock, which is Redis' own
 * here.
 */
export type Entry = {
  /** The caller's idempotency key. */
  readonly key: string;
  /** The claim it happened under. */
  readonly fence: number;
  readonly pid: number;
  readonly atMs: number;
  /** The machine's monotonic clock, the same for all its processes. */
  readonly monotonicMs: number;
} & (
  | { readonly what: 'claimed'; readonly untilMs: number; readonly over: boolean }
  | { readonly what: 'renewed'; readonly untilMs: number }
  /** The holder is about to end its claim: whatever the store answers, it no longer counts on it. */
  | { readonly what: 'ending' }
  | { readonly what: 'recorded'; readonly version: number; readonly value: string | undefined }
  /** The side effect: the tool runs from `started` to `finished`. */
  | { readonly what: 'started' | 'finished' }
);

/** An entry without what every one has. */
export type Note = Entry extends infer E
  ? E extends Entry
    ? Omit<E, 'pid' | 'atMs' | 'monotonicMs'> & { readonly atMs?: number }
    : never
  : never;

export interface Ledger {
  write(note: Note): void;
  close(): void;
}

/**
 * A file that several processes append to: one write a line, which the system keeps whole, and which a kill does not
 * take back.
 */
export function openLedger(path: string): Ledger {
  const file = openSync(path, 'a');
  return {
    write: (note) => {
      const entry = { atMs: Date.now(), ...note, pid: process.pid, monotonicMs: Number(process.hrtime.bigint()) / 1e6 };
      writeSync(file, `${JSON.stringify(entry)}\n`);
    },
    close: () => closeSync(file),
  };
}

export const readLedger = (path: string): Entry[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
