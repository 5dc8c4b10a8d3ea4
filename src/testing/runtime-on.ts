import { map, timer, type SchedulerLike } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { seededRandom } from '../policy/random.ts';

/**
 * A runtime whose time is a scheduler's and whose chance is a seed's: marble tests pass it to operators and layers.
 * RxJS's `TestScheduler` makes `timer` virtual but not `performance.now()`; this makes both one.
 *
 * @param scheduler a `TestScheduler`, or any other virtual one
 * @param seed the same seed gives the same delays; default 1
 *
 * @example
 * const runtime = runtimeOn(scheduler);
 * expectObservable(source.pipe(attemptTimeout(3, runtime))).toBe('---#', undefined, timedOut);
 */
export function runtimeOn(scheduler: SchedulerLike, seed = 1): Runtime {
  const random = seededRandom(seed);
  let ids = 0;
  return {
    now: () => scheduler.now(),
    wallNow: () => scheduler.now(),
    after: (ms) => timer(ms, scheduler).pipe(map((): 0 => 0)),
    random,
    // The shape of a UUIDv7, counted up: the same run gives the same ids.
    id: () => `00000000-0000-7000-8000-${(++ids).toString(16).padStart(12, '0')}`,
  };
}
