import { readFileSync } from 'node:fs';
import { machineNow } from '../runtime.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

const bootId = (): string => {
  try {
    return /^[0-9a-f-]{36}$/.exec(readFileSync(BOOT_ID, 'utf8').trim())?.[0] ?? '';
  } catch {
    return '';
  }
};

/**
 * Which start of this machine `machineNow` counts from, where the system has a name for it (Linux). Elsewhere it is
 * empty, and a later start is told by a clock that stands before the time in question.
 */
export const BOOT: string = bootId();

/** A lease as a row holds it. */
export interface MachineLease {
  readonly boot: unknown;
  readonly leasedAt: unknown;
  readonly leaseUntil: unknown;
}

/**
 * How much is left of a lease, below 0 when it has passed; `undefined` when it was given before this start of the
 * machine: then only the wall clock can say.
 */
export function leaseLeftMs({ boot, leasedAt, leaseUntil }: MachineLease): number | undefined {
  const nowMs = machineNow();
  if (boot !== BOOT || typeof leasedAt !== 'number' || typeof leaseUntil !== 'number' || nowMs < leasedAt)
    return undefined;
  return leaseUntil - nowMs;
}
