import { randomUUID } from 'node:crypto';
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { defer, interval, lastValueFrom, retry, throwError, timer, type Observable } from 'rxjs';

/** How a lock is looked at. */
export interface LockTimes {
  /** Who holds it shows that often that it is there. */
  readonly beatMs: number;
  /** One that is not shown for so long, while somebody looks, is of a process that is gone. */
  readonly staleMs: number;
}

const TIMES: LockTimes = { beatMs: 2_000, staleMs: 10_000 };
const LOOK_MS = 50;

/**
 * Looks for a sign of who holds a file. How old its last sign is by a clock says nothing: processes that wake up with
 * their machine find each other's signs old, and a clock may have been set back. So looks are counted.
 */
class Watch {
  readonly #looksMax: number;
  #mtimeMs: number | undefined;
  #looks = 0;

  constructor({ staleMs }: LockTimes) {
    this.#looksMax = staleMs / LOOK_MS;
  }

  /** Whether it has shown nothing for so many looks. */
  async isStale(file: string): Promise<boolean> {
    const { mtimeMs } = await stat(file);
    this.#looks = mtimeMs === this.#mtimeMs ? this.#looks + 1 : 0;
    this.#mtimeMs = mtimeMs;
    return this.#looks > this.#looksMax;
  }
}

/** What one who waits has seen: of the lock, and of who takes a stale one away. */
interface Seen {
  readonly lock: Watch;
  readonly clearing: Watch;
}

/** One process at a time takes a stale lock away: a second one would take away that of who came after the first. */
const clear = async (lock: string, seen: Seen): Promise<void> => {
  const clearing = `${lock}.clearing`;
  try {
    await writeFile(clearing, '', { flag: 'wx', mode: 0o600 });
  } catch {
    if (await seen.clearing.isStale(clearing)) await rm(clearing, { force: true });
    return;
  }
  try {
    if (await seen.lock.isStale(lock)) await rm(lock, { recursive: true, force: true });
  } finally {
    await rm(clearing, { force: true });
  }
};

/** Waits a little; what a process that is gone has left is taken away before. */
const passed = async (lock: string, seen: Seen): Promise<void> => {
  try {
    if (await seen.lock.isStale(lock)) await clear(lock, seen);
  } catch {
    // It was let go of meanwhile.
  }
  await lastValueFrom(timer(LOOK_MS));
};

const take = async (lock: string, owner: string, times: LockTimes): Promise<void> => {
  const seen: Seen = { lock: new Watch(times), clearing: new Watch(times) };
  const isTaken = (error: unknown): Observable<unknown> =>
    (error as NodeJS.ErrnoException).code === 'EEXIST' ? defer(() => passed(lock, seen)) : throwError(() => error);
  const taken$ = defer(() => writeFile(lock, owner, { flag: 'wx', mode: 0o600 }));
  await lastValueFrom(taken$.pipe(retry({ delay: isTaken })), { defaultValue: undefined });
};

/** Whether it is this owner's still: who was stopped for too long comes back to a lock of another's, or to none. */
const isHeld = async (lock: string, owner: string): Promise<boolean> =>
  (await readFile(lock, 'utf8').catch(() => undefined)) === owner;

/**
 * Does work that no other process, and nobody else in this one, does at the same time. The lock is a file with its
 * owner's name, and is shown to be held for as long as the work takes.
 *
 * @param lock the path of a file in a folder that is there
 * @param work is told how to find out whether the lock is held still: before it changes anything it has to, since a
 * process that was stopped meanwhile has lost it
 */
export async function locked<T>(
  lock: string,
  work: (holds: () => Promise<boolean>) => Promise<T>,
  times: LockTimes = TIMES,
): Promise<T> {
  const owner = randomUUID();
  await take(lock, owner, times);
  const shown = interval(times.beatMs).subscribe(() => {
    const now = new Date();
    utimes(lock, now, now).catch(() => undefined);
  });
  try {
    return await work(() => isHeld(lock, owner));
  } finally {
    shown.unsubscribe();
    if (await isHeld(lock, owner)) await rm(lock, { force: true });
  }
}
