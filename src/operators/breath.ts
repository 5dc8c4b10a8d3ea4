import { firstValueFrom } from 'rxjs';
import { liveRuntime } from '../runtime.ts';

/** How many lines, breakers or tools are worked through at a time: less than a millisecond. */
export const PER_BREATH = 1_000;

/** Makes something of each of many, and gives the event loop its turn in between. */
export async function mapped<T, R>(all: Iterable<T>, made: (one: T) => R): Promise<R[]> {
  const results: R[] = [];
  for (const one of all) {
    results.push(made(one));
    if (results.length % PER_BREATH === 0) await breath();
  }
  return results;
}

/**
 * Lets the event loop do what is due, and goes on. It is the machine's own loop also where a test has a clock of its
 * own: what is being waited for is not a time, and a virtual clock that nobody moves would hold up the answer for ever.
 */
export async function breath(): Promise<void> {
  await firstValueFrom(liveRuntime.after(0));
}
