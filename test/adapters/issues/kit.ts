import { setTimeout as sleep } from 'node:timers/promises';

/** What users of a framework have told its makers, with its real package, as it comes and with a few lines of ours. */
export interface Issue {
  /** `owner/repository#number`. */
  readonly id: string;
  /** Its own, shortened. */
  readonly title: string;
  /** What it comes to, in the words of `run`. */
  readonly alone: string;
  readonly solved: string;
  /** The lines in `if (guarded) { ... }` are what solves it. */
  run(guarded: boolean): Promise<string>;
}

/** A tool that never answers is not waited for so long: a limit of its own takes 200 ms. */
const HANGS_MS = 3_000;
/** Guarded none hangs, however busy the machine is. */
const BUSY_MS = 30_000;

/** How a run ends, in a word. */
export const endOf = (run: Promise<unknown>, guarded: boolean): Promise<string> =>
  Promise.race([
    run.then(
      () => 'answers',
      () => 'throws',
    ),
    sleep(guarded ? BUSY_MS : HANGS_MS, 'hangs', { ref: false }),
  ]);

export const never = (): Promise<string> => new Promise(() => undefined);
