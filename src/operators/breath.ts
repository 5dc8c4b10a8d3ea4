import { firstValueFrom } from 'rxjs';
import { liveRuntime } from '../runtime.ts';

/**
 * How long work of ours holds the event loop at a time, in milliseconds: a fifth of the 5 that it may, since garbage is
 * collected as well, and some of it is not ours.
 */
const HELD_MS = 1;

/** So many things are done between two looks at the clock: of a few nothing has to be broken off. */
const PER_LOOK = 16;

/**
 * Work on many things that gives the event loop its turn: by the clock, since how much can be done in a millisecond
 * depends on the machine and on what else it does. Ask `isDue` once after each of them, and take a `breath` when it
 * says so.
 *
 * It goes by the machine's own clock and loop also where a test has a clock of its own: what is being waited for is
 * not a time, and a virtual clock that nobody moves would hold up the answer for ever.
 */
export class Breathing {
  #sinceMs: number = liveRuntime.now();
  #done = 0;

  /** Whether the event loop has been held for long enough. */
  get isDue(): boolean {
    return ++this.#done % PER_LOOK === 0 && liveRuntime.now() - this.#sinceMs >= HELD_MS;
  }

  /** Lets the event loop do what is due, and goes on. */
  async breath(): Promise<void> {
    await firstValueFrom(liveRuntime.after(0));
    this.#sinceMs = liveRuntime.now();
  }
}

/** Makes something of each of many, and gives the event loop its turn in between. */
export async function mapped<T, R>(all: Iterable<T>, made: (one: T) => R): Promise<R[]> {
  const breathing = new Breathing();
  const results: R[] = [];
  for (const one of all) {
    results.push(made(one));
    if (breathing.isDue) await breathing.breath();
  }
  return results;
}
