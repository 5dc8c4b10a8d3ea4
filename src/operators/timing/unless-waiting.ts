import { NEVER, defer, distinctUntilChanged, finalize, startWith, switchMap, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { timeoutError } from '../attempt-timeout.ts';
import { silence } from '../idle-timeout.ts';
import { overdue } from './expiry.ts';
import { limitedBy } from './limited-by.ts';

/**
 * A limit on the time in which nobody is waited for: as `overdue`, but while the last value of `waiting$` is true no
 * time passes.
 */
function overdueUnlessWaiting(ms: number, runtime: Runtime, waiting$: Observable<boolean>): Observable<never> {
  return defer(() => {
    let leftMs = ms;
    const running$ = defer(() => {
      const startedAtMs = runtime.now();
      return overdue(Math.max(0, leftMs), runtime, () => timeoutError(ms)).pipe(
        finalize(() => {
          leftMs -= runtime.now() - startedAtMs;
        }),
      );
    });
    return waiting$.pipe(
      startWith(false),
      distinctUntilChanged(),
      switchMap((isWaiting) => (isWaiting ? NEVER : running$)),
    );
  });
}

/**
 * As `attemptTimeout`, for work that may tell once it has started when it waits for a person: that time does not count.
 *
 * @param waitingOf asked once the source has started; nothing where it waits for nobody
 */
export function heldTimeout(
  timeoutMs: number,
  runtime: Runtime,
  waitingOf: () => Observable<boolean> | undefined,
): <T>(source: Observable<T>) => Observable<T> {
  return limitedBy(() => {
    const startedAtMs = runtime.now();
    return defer(() => {
      const waiting$ = waitingOf();
      return waiting$ === undefined
        ? overdue(timeoutMs, runtime, timeoutError, startedAtMs)
        : overdueUnlessWaiting(timeoutMs, runtime, waiting$);
    });
  });
}

/** As `idleTimeout`, for work that may tell once it has started when it waits for a person: then it is not idle. */
export const heldIdleTimeout = (
  idleTimeoutMs: number,
  activity$: Observable<unknown>,
  runtime: Runtime,
  waitingOf: () => Observable<boolean> | undefined,
): (<T>(source: Observable<T>) => Observable<T>) => {
  const waited$ = (waiting$: Observable<boolean>): Observable<never> =>
    waiting$.pipe(
      startWith(false),
      distinctUntilChanged(),
      switchMap((isWaiting) => (isWaiting ? NEVER : silence(idleTimeoutMs, activity$, runtime))),
    );
  return limitedBy(() =>
    defer(() => {
      const waiting$ = waitingOf();
      return waiting$ === undefined ? silence(idleTimeoutMs, activity$, runtime) : waited$(waiting$);
    }),
  );
};
