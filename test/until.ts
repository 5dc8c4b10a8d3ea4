import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something holds, however busy the machine is; with real processes there is no other way. */
export async function until(holds: () => boolean, withinMs = 100_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error('it did not happen in time');
    await sleep(20);
  }
}
