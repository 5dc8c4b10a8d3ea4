import type { Runtime } from '../contract/runtime.ts';
import { expireAfter, type Expiry } from './expiry.ts';

/** Calls `expired` once `ms` have passed since `startedAtMs`, as `expireAfter` does. */
export function expireFrom(startedAtMs: number, ms: number, runtime: Runtime, expired: () => void): Expiry {
  // Whole milliseconds only, so that deadlines of one length can share a timer.
  const passedMs = Math.floor(runtime.now() - startedAtMs);
  return expireAfter(Math.max(0, ms - passedMs), runtime, expired);
}
