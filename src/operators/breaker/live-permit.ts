import type { BreakerOutcome, Permit } from '../../policy/breaker/reducer.ts';
import type { GivenPermit } from './breaker.ts';

/** The breaker's side of a permit: takes its end and its progress. */
export interface PermitOwner {
  ended(
    given: Permit,
    startedAtMs: number,
    outcome: BreakerOutcome,
    by: string | undefined,
    error?: unknown,
    atMs?: number,
  ): void;
  progressed(given: Permit): void;
}

/** A permit that ends once. A class, since five functions for each call would cost more than its two decisions. */
export class LivePermit implements GivenPermit {
  readonly admitted = true;
  readonly #given: Permit;
  readonly #startedAtMs: number;
  readonly #owner: PermitOwner;
  readonly #by: string | undefined;
  #ended = false;

  constructor(given: Permit, startedAtMs: number, owner: PermitOwner, by: string | undefined) {
    this.#given = given;
    this.#startedAtMs = startedAtMs;
    this.#owner = owner;
    this.#by = by;
  }

  success(atMs?: number): void {
    this.#settle('success', undefined, atMs);
  }

  failure(error?: unknown): void {
    this.#settle('failure', error);
  }

  answered(): void {
    this.#settle('answered');
  }

  ignore(error?: unknown): void {
    this.#settle('ignored', error);
  }

  progress(): void {
    if (!this.#ended && this.#given.probeEpoch !== undefined) this.#owner.progressed(this.#given);
  }

  release(): void {
    this.#settle('ignored');
  }

  #settle(outcome: BreakerOutcome, error?: unknown, atMs?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#owner.ended(this.#given, this.#startedAtMs, outcome, this.#by, error, atMs);
  }
}
