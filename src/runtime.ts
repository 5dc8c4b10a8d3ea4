import { Observable } from 'rxjs';
import { v7 as uuidv7 } from 'uuid';
import type { Runtime } from './contract/runtime.ts';

/** `setTimeout` takes 31 bits; a longer wait is a chain of these. */
const TIMER_MAX_MS = 2 ** 31 - 1;

const after = (ms: number, hold: boolean): Observable<0> =>
  new Observable((subscriber) => {
    let leftMs = ms;
    let handle: ReturnType<typeof setTimeout>;
    const wait = (): void => {
      const stepMs = Math.min(leftMs, TIMER_MAX_MS);
      leftMs -= stepMs;
      // Node drops the fraction, and the timer would come early.
      handle = setTimeout(leftMs > 0 ? wait : done, Math.ceil(stepMs));
      if (!hold) (handle as { unref?(): void }).unref?.();
    };
    const done = (): void => {
      subscriber.next(0);
      subscriber.complete();
    };
    wait();
    return () => clearTimeout(handle);
  });

/** Random bytes are drawn for many ids at a time: one draw costs more than the rest of an id. */
const POOL_BYTES = 4096;
const ID_BYTES = 16;
const pool = new Uint8Array(POOL_BYTES);
let drawn = POOL_BYTES;

const id = (): string => {
  if (drawn === POOL_BYTES) {
    crypto.getRandomValues(pool);
    drawn = 0;
  }
  drawn += ID_BYTES;
  return uuidv7({ random: pool.subarray(drawn - ID_BYTES, drawn) });
};

/** Read once: the property costs as much as the clock. */
const ORIGIN_MS = performance.timeOrigin;

const clock = {
  now: (): number => ORIGIN_MS + performance.now(),
  wallNow: (): number => Date.now(),
  random: (): number => Math.random(),
  id,
};

/** The machine's own clock, timers and die: the only place that touches them. */
export const liveRuntime: Runtime = {
  ...clock,
  after: (ms) => after(ms, true),
  background: { ...clock, after: (ms) => after(ms, false) },
};
