import { Observable } from 'rxjs';
import type { Runtime } from './contract/runtime.ts';

/** `setTimeout` takes 31 bits; a longer wait is a chain of these. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * Runs a function after the present task and what is due. It uses `setImmediate` where the platform has one, since
 * `setTimeout` would take a millisecond.
 */
const soon = (run: () => void): (() => void) => {
  if (typeof setImmediate !== 'function') {
    const handle = setTimeout(run, 0);
    return () => clearTimeout(handle);
  }
  // It keeps the process alive, for background work too: Node may not run an unreferenced one until something else
  // wakes it.
  const handle = setImmediate(run);
  return () => clearImmediate(handle);
};

/** The platform's own `setImmediate`, which always fires; a fake one that a test puts in its place may not. */
const OWN_IMMEDIATE: unknown = globalThis.setImmediate ?? 'none';

const wait = (ms: number, hold: boolean, done: () => void): (() => void) => {
  if (ms <= 0) return soon(done);
  let leftMs = ms;
  let handle: ReturnType<typeof setTimeout>;
  const step = (): void => {
    const stepMs = Math.min(leftMs, TIMER_MAX_MS);
    leftMs -= stepMs;
    // Node drops the fraction, and the timer would come early.
    handle = setTimeout(leftMs > 0 ? step : done, Math.ceil(stepMs));
    if (!hold) (handle as { unref?(): void }).unref?.();
  };
  step();
  return () => clearTimeout(handle);
};

const timers = (hold: boolean): Pick<Runtime, 'after' | 'soon'> => ({
  after: (ms) =>
    new Observable((subscriber) =>
      wait(ms, hold, () => {
        subscriber.next(0);
        subscriber.complete();
      }),
    ),
  soon: (run) => {
    const callOff = soon(run);
    return globalThis.setImmediate === OWN_IMMEDIATE ? undefined : callOff;
  },
});

/** Random bytes are drawn for many ids at a time: one draw costs more than the rest of an id. */
const pool = new Uint8Array(4096);
let drawn = pool.length;

const draw = (): number => {
  if (drawn === pool.length) {
    crypto.getRandomValues(pool);
    drawn = 0;
  }
  return pool[drawn++] as number;
};

const BYTES: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const drawHex = (): string => BYTES[draw()] as string;
/** The first id of a prefix is counted from below this, so that each prefix has at least half of its 256 ids left. */
const FIRST_MAX = 128;

/** The first eleven bytes of an id: for one millisecond, and at most 256 ids. */
let idPrefix = '';
let idPrefixMs = Number.NaN;
/** The 12 bits behind the time. */
let prefixOrder = 0;
let count = BYTES.length;

const renewPrefix = (ms: number): void => {
  // Further prefixes of a millisecond count on, so that ids stay in order; the first is below the middle, so that there
  // is room.
  prefixOrder = ms === idPrefixMs ? (prefixOrder + 1) % 4096 : (draw() * 256 + draw()) % 2048;
  const time = ms.toString(16).padStart(12, '0');
  const order = prefixOrder.toString(16).padStart(3, '0');
  const variant = BYTES[128 + (draw() % 64)];
  idPrefix = `${time.slice(0, 8)}-${time.slice(8)}-7${order}-${variant}${drawHex()}-${drawHex()}`;
  idPrefixMs = ms;
  count = draw() % FIRST_MAX;
};

/**
 * A UUIDv7. The ids of a millisecond share a prefix, are counted, and end in four random bytes, since writing all of an
 * id anew would cost five times as much.
 */
const id = (): string => {
  const ms = Date.now();
  if (ms !== idPrefixMs || count === BYTES.length) renewPrefix(ms);
  // The short part first: V8 copies up to twelve characters, and keeps a longer sum as a tree of its parts.
  const rest = `${BYTES[count++]}${drawHex()}${drawHex()}${drawHex()}${drawHex()}`;
  return idPrefix + rest;
};

/**
 * Bytes that nobody can guess, for keys. They are no part of a `Runtime`, since what can be replayed can be guessed.
 */
export const secretBytes = (length: number): Uint8Array => crypto.getRandomValues(new Uint8Array(length));

/** Read once: the property costs as much as the clock. */
const ORIGIN_MS = performance.timeOrigin;

/** Read once: a fake one that a test puts in its place would be this process's alone. */
const HRTIME: { bigint(): bigint } | undefined = globalThis.process?.hrtime;

/**
 * Milliseconds since the machine was started, the same for all its processes: Node counts by the system's monotonic
 * clock, which nobody can set. Not by `Runtime.now`, whose beginning is each process's own. In Node only.
 */
export const machineNow = (): number => Number(HRTIME?.bigint() ?? 0n) / 1e6;

const clock = {
  now: (): number => ORIGIN_MS + performance.now(),
  wallNow: (): number => Date.now(),
  random: (): number => Math.random(),
  id,
};

/**
 * The machine's own clock, timers and random numbers. Everything that takes a `runtime` uses it by default;
 * `virtualRuntime` and `runtimeOn` of `spillway/testing` stand in for it in tests.
 */
export const liveRuntime: Runtime = {
  ...clock,
  ...timers(true),
  background: { ...clock, ...timers(false) },
};
