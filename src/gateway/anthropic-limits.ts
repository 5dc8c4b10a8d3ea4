import type { Runtime } from '../contract/runtime.ts';
import { expireAfter } from '../operators/expiry.ts';
import { GatewayError } from './error.ts';

/** How often one key may ask. */
export interface RateLimit {
  /** Requests in the window, and at once. */
  readonly requests: number;
  readonly windowMs: number;
}

/** Keys whose rate is remembered; the one that asked longest ago makes room. */
const KEYS_MAX = 10_000;

interface Bucket {
  readonly left: number;
  readonly atMs: number;
}

/** A place for one turn. */
export interface Place {
  /** Aborted when the gateway stops waiting for what runs. */
  readonly harvest: AbortSignal;
  /** Gives it back. Idempotent. */
  leave(): void;
}

/** Who may come in: so many turns at a time, so many of each key, nobody while the gateway is drained. */
export class TurnGate {
  readonly #maxTurns: number;
  readonly #rate: RateLimit | undefined;
  readonly #runtime: Runtime;
  readonly #buckets = new Map<string, Bucket>();
  /** Of those inside. */
  readonly #harvests = new Set<AbortController>();
  #draining = false;
  /** Who waits until all have left. */
  readonly #waiting = new Set<() => void>();

  constructor(maxTurns: number, rate: RateLimit | undefined, runtime: Runtime) {
    this.#maxTurns = maxTurns;
    this.#rate = rate;
    this.#runtime = runtime;
  }

  get running(): number {
    return this.#harvests.size;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** @throws GatewayError when there is no place */
  enter(key: string): Place {
    this.admit(key);
    if (this.running >= this.#maxTurns) throw new GatewayError('overloaded', `The gateway runs ${this.#maxTurns} turns, as many as it may; ask again in a moment`);
    const harvest = new AbortController();
    this.#harvests.add(harvest);
    return {
      harvest: harvest.signal,
      leave: () => {
        if (this.#harvests.delete(harvest) && this.running === 0) for (const resolve of this.#waiting) resolve();
      },
    };
  }

  /** For what takes no place. @throws GatewayError when the key has asked too often, and while the gateway is drained */
  admit(key: string): void {
    this.refuseWhileDraining();
    this.#spend(key);
  }

  refuseWhileDraining(): void {
    if (this.#draining) throw new GatewayError('draining', 'The gateway is being shut down; ask again');
  }

  /** Lets nobody in any more, and resolves when all have left. After `graceMs` the tools that run are harvested. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    if (this.running === 0) return;
    const deadline = expireAfter(graceMs, this.#runtime, () => {
      for (const harvest of this.#harvests) harvest.abort();
    });
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
    });
    deadline.cancel();
  }

  /** A token bucket: full at first, filled again over the window. */
  #spend(key: string): void {
    if (this.#rate === undefined) return;
    const { requests, windowMs } = this.#rate;
    const now = this.#runtime.now();
    const before = this.#buckets.get(key) ?? { left: requests, atMs: now };
    const left = Math.min(requests, before.left + ((now - before.atMs) / windowMs) * requests);
    if (left < 1) throw new GatewayError('rate_limited', `This key may ask ${requests} times in ${windowMs / 1_000}s; ask again later`, { retryAfterMs: ((1 - left) / requests) * windowMs });
    // The youngest is the last.
    this.#buckets.delete(key);
    this.#buckets.set(key, { left: left - 1, atMs: now });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > KEYS_MAX && oldest !== undefined) this.#buckets.delete(oldest);
  }
}
