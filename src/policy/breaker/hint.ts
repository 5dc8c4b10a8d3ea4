import type { BreakerSettings } from './settings.ts';
import { breakerDueMs, type BreakerMemory } from './reducer.ts';

/**
 * What a probe is likely to need when nothing is known of it yet: the first backoff of the interactive profile (SI
 * 2.1).
 */
const PROBE_HINT_MIN_MS = 100;

/**
 * When a call that was rejected at `atMs` may ask again, in milliseconds; never beyond `cooldownMaxMs`.
 *
 * While a probe is out nobody knows when it ends. The deadline of half-open is when it is revoked, not when it ends: as
 * a hint it would keep a caller away for a minute from a tool that is well in 50 ms. So the hint is as long again as
 * the probe has been out, which for a duration that nothing is known of is the best guess there is; who asks again at
 * each hint backs off exponentially until then.
 */
export function rejectionHintMs(memory: BreakerMemory, settings: BreakerSettings, atMs: number): number {
  return Math.min(untilAdmittedMs(memory, settings, atMs), settings.cooldownMaxMs);
}

const untilAdmittedMs = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): number => {
  if (memory.rampFromMs !== undefined) return memory.rampFromMs + settings.rampMs - atMs;
  const leftMs = breakerDueMs(memory, settings) - atMs;
  // A forced-open breaker has no end of its own, so its cooldown stands in.
  if (leftMs === Infinity) return settings.cooldownMs;
  if (memory.type !== 'half_open') return leftMs;
  return Math.min(leftMs, Math.max(PROBE_HINT_MIN_MS, atMs - memory.lastProbeAtMs));
};
