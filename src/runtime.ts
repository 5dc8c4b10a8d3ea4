import { Observable } from 'rxjs';
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

const ascii = (text: string): number[] => Array.from(text, (character) => character.charCodeAt(0));

/** Random bytes are drawn for many ids at a time: one draw costs more than the rest of an id. */
const POOL_BYTES = 4096;
const pool = new Uint8Array(POOL_BYTES);
let drawn = POOL_BYTES;

const DIGITS = ascii('0123456789abcdef');
/** A UUID of version 7 (RFC 9562): `t` is a digit of the wall clock's time, `x` a random one, `y` the variant. */
const PATTERN = 'tttttttt-tttt-7xxx-yxxx-xxxxxxxxxxxx';
const placesOf = (letters: string): number[] => Array.from(PATTERN, (letter, place) => (letters.includes(letter) ? [place] : [])).flat();
const TIME_PLACES = placesOf('t');
const RANDOM_PLACES = placesOf('xy');
const VARIANT_PLACE = PATTERN.indexOf('y');

/** The codes of the id that is being made. It becomes a string as a whole: strings joined of pieces would keep all of them, for as long as a result is kept. */
const text = ascii(PATTERN);
let writtenMs = -1;

const writeTime = (wallMs: number): void => {
  writtenMs = wallMs;
  const digits = wallMs.toString(16).padStart(TIME_PLACES.length, '0');
  TIME_PLACES.forEach((place, index) => void (text[place] = digits.charCodeAt(index)));
};

const id = (): string => {
  if (drawn + RANDOM_PLACES.length > POOL_BYTES) {
    crypto.getRandomValues(pool);
    drawn = 0;
  }
  const wallMs = Date.now();
  if (wallMs !== writtenMs) writeTime(wallMs);
  for (const place of RANDOM_PLACES) text[place] = DIGITS[(pool[drawn++] ?? 0) & 0xf] ?? 0;
  // 8, 9, a or b: the digit keeps two of its random bits.
  text[VARIANT_PLACE] = DIGITS[((pool[drawn - 1] ?? 0) >> 4) & 0x3 | 0x8] ?? 0;
  return String.fromCharCode(...text);
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
