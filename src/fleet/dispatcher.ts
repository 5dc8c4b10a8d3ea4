import type { Observable } from 'rxjs';

/** What becomes of a turn that a worker was given: it is over here, or is to be given to someone again. */
export type RunEnd =
  | { readonly act: 'done' }
  | {
      readonly act: 'again';
      readonly afterMs: number;
      /** No worker has begun it: it belongs to no version yet. */
      readonly isNew?: boolean;
    };

/** A turn as a worker is given it. */
export interface Given {
  readonly turnId: string;
  /** Emits when it was given to another, so far as the one who gives knows. */
  readonly lost$: Observable<unknown>;
}

/** Workers of one process. */
export interface Workforce {
  /** Resolves once turns are taken. */
  readonly ready: Promise<unknown>;
  /** No new turn is taken from now on. */
  pause(): Promise<void>;
  /** Resolves once all that were taken have ended. */
  close(): Promise<void>;
}

/**
 * Gives each turn to one worker, and to another when that one is dead: what an engine is for. That two may have one for
 * a while, since a worker was only thought to be dead, is the ledger's to bear.
 */
export interface Dispatcher {
  /** The engine's name. */
  readonly engine: string;
  /**
   * Has a turn given to a worker; again for one that waits or runs changes nothing.
   * @param place among the turns that wait: lower ones come first
   * @param once asked for again with the same, it changes nothing; an engine that remembers what it was asked for
   *   longer than the turn is kept tells by it whether this is another turn, or another try
   */
  add(turnId: string, place: number, once: string): Promise<void>;
  /** @param run never errors, emits once */
  work(run: (given: Given) => Observable<RunEnd>, concurrency: number): Workforce;
  close(): Promise<void>;
}
