import type { Runtime } from '../../contract/runtime.ts';
import { expireAfter } from '../../operators/timing/expiry.ts';
import { RateBuckets, type RateLimit } from './rate.ts';
import { GatewayError } from './error.ts';

export type { RateLimit } from './rate.ts';

/** The permission for one turn to run. */
export interface TurnPermit {
  /** Aborted when the gateway stops waiting for what runs. */
  readonly harvest: AbortSignal;
  /** Gives it back. Idempotent. */
  leave(): void;
}

const isDraining = (): GatewayError => new GatewayError('draining', 'The gateway is being shut down; ask again');

/** Lets turns in: so many at a time, so many for each key, and none while the gateway is drained. */
export class TurnGate {
  readonly #maxTurns: number;
  readonly #rates: RateBuckets | undefined;
  readonly #runtime: Runtime;
  /** Of those inside. */
  readonly #harvests = new Set<AbortController>();
  readonly #closing = new AbortController();
  /** Called when the last turn has ended. */
  readonly #waiting = new Set<() => void>();

  constructor(maxTurns: number, rate: RateLimit | undefined, runtime: Runtime) {
    this.#maxTurns = maxTurns;
    this.#rates = rate === undefined ? undefined : new RateBuckets(rate, runtime);
    this.#runtime = runtime;
  }

  get running(): number {
    return this.#harvests.size;
  }

  get draining(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted when no turn is let in any more, so that no body need be waited for. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** @throws GatewayError when there is no place, and while the gateway is drained */
  enter(): TurnPermit {
    this.refuseWhileDraining();
    this.refuseWhileFull();
    const harvest = new AbortController();
    this.#harvests.add(harvest);
    return {
      harvest: harvest.signal,
      leave: () => {
        if (this.#harvests.delete(harvest) && this.running === 0) for (const resolve of this.#waiting) resolve();
      },
    };
  }

  /**
   * @param keys those that the request shows. @throws GatewayError when one of them has asked too often, and while the
   * gateway is drained
   */
  admit(keys: readonly string[]): void {
    this.refuseWhileDraining();
    this.#rates?.spend(keys);
  }

  refuseWhileFull(): void {
    if (this.running < this.#maxTurns) return;
    throw new GatewayError(
      'overloaded',
      `The gateway runs ${this.#maxTurns} turns, as many as it may; ask again in a moment`,
    );
  }

  refuseWhileDraining(): void {
    if (this.draining) throw isDraining();
  }

  /** Lets nobody in any more, and resolves when all have left. After `graceMs` the tools that run are harvested. */
  async drain(graceMs: number): Promise<void> {
    this.#closing.abort(isDraining());
    if (this.running === 0) return;
    const deadline = expireAfter(graceMs, this.#runtime, () => {
      for (const harvest of this.#harvests) harvest.abort();
    });
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
    });
    deadline.unsubscribe();
  }
}
