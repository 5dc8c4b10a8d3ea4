import { Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { seededRandom } from '../policy/random.ts';
import { VirtualScheduler } from './virtual-scheduler.ts';

/** How a virtual runtime begins, and in which order it runs what is due. */
export interface VirtualRuntimeOptions {
  /** The same seed gives the same delays. Default 1. */
  readonly seed?: number;
  /**
   * Whether to shuffle what is due at one instant, by the seed: it finds code that relies on an order that nobody
   * promised. Default `false`.
   */
  readonly shuffle?: boolean;
  /** The wall clock at the start, in epoch milliseconds. Default: the beginning of 2026, in UTC. */
  readonly wallMs?: number;
}

/** A runtime whose time a test moves. */
export interface VirtualRuntime extends Runtime {
  /** The same time for RxJS's own operators: `timer(100, runtime.scheduler)`. */
  readonly scheduler: VirtualScheduler;
  /** How many timers wait. */
  readonly pending: number;
  /** Runs the next timer at its time, and then what promises made of it; false when none waits. */
  step(): Promise<boolean>;
  /** Lets `ms` pass; timers run in order, each at its own instant, promises between them. */
  advance(ms: number): Promise<void>;
  /**
   * Lets time pass until no timer waits.
   * @throws RangeError after `stepsMax` timers (1,000,000): something sets a new one for ever
   */
  run(stepsMax?: number): Promise<void>;
  /** Time passes and no timer runs, as when the event loop is stalled: what became due meanwhile comes late. */
  stall(ms: number): void;
  /** The wall clock jumps, as when it is corrected; monotonic time does not. */
  jumpWall(ms: number): void;
}

const STEPS_MAX = 1_000_000;
/** It starts at no round number, so that nothing can lean on zero. */
const START_MS = 1_234_567;
const WALL_MS = Date.UTC(2026, 0, 1);

/**
 * Ends when every chain of promises has run out: a tick comes after all microtasks, however many they make. A number of
 * awaits would be a guess.
 */
const drained = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });

/**
 * Time and chance for tests (in Node): nothing waits, and the same seed gives the same run.
 *
 * @example
 * const runtime = virtualRuntime({ seed: 7 });
 * const spillway = createSpillway({ tools: [flights], runtime });
 * const result = spillway.execute({ toolName: 'flights', input: { from: 'HEL' } });
 * await runtime.advance(30_000); // no second passes
 * expect((await result).status).toBe('timeout');
 */
export function virtualRuntime({
  seed = 1,
  shuffle = false,
  wallMs = WALL_MS,
}: VirtualRuntimeOptions = {}): VirtualRuntime {
  const scheduler = new VirtualScheduler({ startMs: START_MS, ...(shuffle ? { seed } : {}) });
  let wallAheadMs = wallMs - START_MS;
  let ids = 0;
  const step = async (): Promise<boolean> => {
    // Before it as well: a timer may be set by a promise that has not come to it yet.
    await drained();
    const stepped = scheduler.step();
    await drained();
    return stepped;
  };
  return {
    scheduler,
    now: () => scheduler.now(),
    wallNow: () => scheduler.now() + wallAheadMs,
    after: (ms) =>
      new Observable((subscriber) => {
        const task = scheduler.after(ms, () => {
          subscriber.next(0);
          subscriber.complete();
        });
        return () => task.cancel();
      }),
    random: seededRandom(seed),
    // The shape of a UUIDv7, counted up: the same run gives the same ids.
    id: () => `00000000-0000-7000-8000-${(++ids).toString(16).padStart(12, '0')}`,
    get pending() {
      return scheduler.pending();
    },
    step,
    advance: async (ms) => {
      const untilMs = scheduler.now() + ms;
      await drained();
      while (scheduler.nextMs() <= untilMs) await step();
      scheduler.runUntil(untilMs);
    },
    run: async (stepsMax = STEPS_MAX) => {
      for (let steps = 0; await step(); steps++) {
        if (steps >= stepsMax)
          throw new RangeError(`timers still wait after ${stepsMax} steps: something sets a new one for ever`);
      }
    },
    stall: (ms) => scheduler.stall(ms),
    jumpWall: (ms) => {
      wallAheadMs += ms;
    },
  };
}
