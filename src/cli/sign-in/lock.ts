import { randomUUID } from 'node:crypto';
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { defer, interval, lastValueFrom, retry, throwError, timer, type Observable } from 'rxjs';

/** How a lock is looked at. */
export interface LockTimes {
  /** Who holds it shows that often that it is there. */
  readonly beatMs: number;
  /** One that nobody has shown for so long is of a process that is gone. */
  readonly staleMs: number;
}

const TIMES: LockTimes = { beatMs: 2_000, staleMs: 10_000 };
const LOOK_MS = 50;

const isStale = async (file: string, { staleMs }: LockTimes): Promise<boolean> => {
  const { mtimeMs } = await stat(file);
  return Date.now() - mtimeMs > staleMs;
};

/** One process at a time takes a stale lock away: a second one would take away that of who came after the first. */
const clear = async (lock: string, times: LockTimes): Promise<void> => {
  const clearing = `${lock}.clearing`;
  try {
    await writeFile(clearing, '', { flag: 'wx', mode: 0o600 });
  } catch {
    if (await isStale(clearing, times)) await rm(clearing, { force: true });
    return;
  }
  try {
    if (await isStale(lock, times)) await rm(lock, { recursive: true, force: true });
  } finally {
    await rm(clearing, { force: true });
  }
};

/** Waits a little; what a process that is gone has left is taken away before. */
const passed = async (lock: string, times: LockTimes): Promise<void> => {
  try {
    if (await isStale(lock, times)) await clear(lock, times);
  } catch {
    // It was let go of meanwhile.
  }
  await lastValueFrom(timer(LOOK_MS));
};

const take = async (lock: string, owner: string, times: LockTimes): Promise<void> => {
  const isTaken = (error: unknown): Observable<unknown> =>
    (error as NodeJS.ErrnoException).code === 'EEXIST' ? defer(() => passed(lock, times)) : throwError(() => error);
  const taken$ = defer(() => writeFile(lock, owner, { flag: 'wx', mode: 0o600 }));
  await lastValueFrom(taken$.pipe(retry({ delay: isTaken })), { defaultValue: undefined });
};

const letGo = async (lock: string, owner: string): Promise<void> => {
  // Who was stopped for too long comes back to a lock of another's.
  const holder = await readFile(lock, 'utf8').catch(() => undefined);
  if (holder === owner) await rm(lock, { force: true });
};

/**
 * Does work that no other process, and nobody else in this one, does at the same time. The lock is a file with its
 * owner's name, and is shown to be held for as long as the work takes.
 *
 * @param lock the path of a file in a folder that is there
 */
export async function locked<T>(lock: string, work: () => Promise<T>, times: LockTimes = TIMES): Promise<T> {
  const owner = randomUUID();
  await take(lock, owner, times);
  const shown = interval(times.beatMs).subscribe(() => {
    const now = new Date();
    utimes(lock, now, now).catch(() => undefined);
  });
  try {
    return await work();
  } finally {
    shown.unsubscribe();
    await letGo(lock, owner);
  }
}
