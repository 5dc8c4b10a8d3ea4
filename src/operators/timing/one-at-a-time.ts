import { EMPTY, defer, exhaustMap, of, repeat, tap, type Observable } from 'rxjs';

/**
 * Does the work at each value, one at a time; what comes meanwhile has it done once more. As `exhaustMap`, but nothing
 * that came is left without a work that began after it.
 *
 * ```
 * source                a--b-c-----d|
 * work (4 frames)       ---1
 *                           ---2            for b and c
 * oneAtATime(work)      ---1---2------3|
 * ```
 */
export const oneAtATime =
  <R>(work: () => Observable<R>) =>
  (source: Observable<unknown>): Observable<R> =>
    defer(() => {
      let isAsked = false;
      const asked$ = defer(() => {
        isAsked = false;
        return work();
      });
      return source.pipe(
        tap(() => (isAsked = true)),
        exhaustMap(() => asked$.pipe(repeat({ delay: () => (isAsked ? of(0) : EMPTY) }))),
      );
    });
