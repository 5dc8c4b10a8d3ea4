import { catchError, firstValueFrom, from, map, of, race } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';

/** How long what ends waits for an engine that gives no answer. */
export const CLOSE_MS = 5_000;

/** Resolves once it is done, has failed, or the time is over: what ends must not wait for a server for ever. */
export const within = (ms: number, runtime: Runtime, done: Promise<unknown>): Promise<void> =>
  firstValueFrom(race(from(done).pipe(catchError(() => of(undefined))), runtime.after(ms)).pipe(map(() => undefined)));
