/** Notifications that wait while another is being delivered. */
const waiting: Array<() => void> = [];
let telling = false;

/**
 * Tells observers of a change, one change after the other: an observer that brings about the next one cannot make
 * others hear of it first. One queue for all breakers, since one may be tripped by who watches another. RxJS's own
 * `queueScheduler` would do the same, but it is everybody's: a task of somebody else's that throws there drops all that
 * waits.
 *
 * @param tell delivers one change; what it throws is dropped, so that no observer can break the breaker or another
 *   observer
 */
export function tellInOrder(tell: () => void): void {
  waiting.push(tell);
  if (telling) return;
  telling = true;
  // It grows while it is gone through, so no iterator's end is asked for.
  for (let place = 0; place < waiting.length; place++) {
    try {
      waiting[place]?.();
    } catch {
      // See above.
    }
  }
  waiting.length = 0;
  telling = false;
}
