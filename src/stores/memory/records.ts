import type { DedupeRecord } from '../../contract/store.ts';
import { Deadlines, type Deadline } from './deadlines.ts';
import { runs } from '../record-life.ts';

/** A record in its place. Running: in the heap of leases. Idle: in the list of use. */
export interface Entry extends Deadline {
  record: DedupeRecord;
  running: boolean;
  older: Entry | undefined;
  newer: Entry | undefined;
}

/**
 * Records in a bounded space. Who needs room takes that of the least recently used one that does not run. Running ones
 * are pinned: they stand in a heap by the end of their lease, from which they are released when room is short, or in a
 * sweep. Only a sweep and a list look at all records: a heap of expiries and sets by tool and session were tried, and
 * made each call more than twice as dear.
 */
export class MemoryRecords {
  readonly #max: number;
  readonly #removed: (key: string) => void;
  readonly #entries = new Map<string, Entry>();
  readonly #leases = new Deadlines<Entry>();
  #oldest: Entry | undefined;
  #newest: Entry | undefined;

  /** `removed` is told each key that goes to make room or because it has expired. */
  constructor(max: number, removed: (key: string) => void) {
    this.#max = max;
    this.#removed = removed;
  }

  /** Expired ones included that nobody swept yet. */
  get size(): number {
    return this.#entries.size;
  }

  find(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** All of them, expired ones included. */
  all(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** It is the last to go for lack of room. */
  touch(entry: Entry): void {
    if (entry.running || entry === this.#newest) return;
    this.#unlink(entry);
    this.#append(entry);
  }

  /** Adds the record of a new key; false when all that is there runs. */
  add(record: DedupeRecord, atMs: number): boolean {
    if (this.#entries.size >= this.#max && !this.#makeRoom(atMs)) return false;
    const entry: Entry = { record, running: false, older: undefined, newer: undefined, dueMs: 0, place: -1 };
    this.#entries.set(record.key, entry);
    this.#insert(entry, runs(record, atMs));
    return true;
  }

  /** Puts another record of the same key in an entry's place. @param pinned it stays for as long as it lives */
  replace(entry: Entry, record: DedupeRecord, atMs: number, pinned = false): void {
    const untilMs = pinned ? record.expiresAtMs : record.lockUntilMs;
    const running = pinned || runs(record, atMs);
    entry.record = record;
    if (entry.running && running) this.#leases.put(entry, untilMs ?? 0);
    else {
      this.#takeOut(entry);
      this.#insert(entry, running, untilMs);
    }
  }

  remove(entry: Entry): void {
    this.#takeOut(entry);
    this.#entries.delete(entry.record.key);
  }

  /** Removes what has expired; gives how many. */
  sweep(atMs: number): number {
    this.#release(atMs);
    let swept = 0;
    for (const entry of this.#entries.values()) {
      if (entry.record.expiresAtMs > atMs) continue;
      this.#forget(entry);
      swept++;
    }
    return swept;
  }

  #makeRoom(atMs: number): boolean {
    this.#release(atMs);
    if (this.#oldest === undefined) return false;
    this.#forget(this.#oldest);
    return true;
  }

  #forget(entry: Entry): void {
    this.remove(entry);
    this.#removed(entry.record.key);
  }

  /** Unpins what no longer runs. */
  #release(atMs: number): void {
    for (let { first } = this.#leases; first !== undefined && first.dueMs <= atMs; { first } = this.#leases) {
      this.#takeOut(first);
      this.#insert(first, false);
    }
  }

  #insert(entry: Entry, running: boolean, untilMs: number = entry.record.lockUntilMs ?? 0): void {
    entry.running = running;
    if (running) this.#leases.put(entry, untilMs);
    else this.#append(entry);
  }

  #takeOut(entry: Entry): void {
    if (entry.running) this.#leases.drop(entry);
    else this.#unlink(entry);
  }

  #append(entry: Entry): void {
    entry.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink(entry: Entry): void {
    const { older, newer } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    entry.older = undefined;
    entry.newer = undefined;
  }
}
