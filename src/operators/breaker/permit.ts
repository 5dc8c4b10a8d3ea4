import type { BreakerOutcome, Permit } from '../../policy/breaker/reducer.ts';

/** An admission: a permit that ends once, with the first of its verbs to be called, or a rejection. */
export type Admission =
  | {
      /** The call may be made; it holds a probe's place while the breaker is half-open. */
      readonly admitted: true;
      /**
       * Ends the permit: the dependency answered.
       * @param atMs now, from one who has just read the runtime's clock
       */
      success(atMs?: number): void;
      /** The error's `retryAfterMs` is a floor under the cooldown. */
      failure(error?: unknown): void;
      /**
       * It was refused in words alone, by whomever: a row of failures ends, and nothing else is known of the
       * dependency.
       */
      answered(): void;
      /**
       * It ended, and says nothing about the dependency.
       * @param error with which; a refusal by this very breaker tells it that the call needed a second place
       */
      ignore(error?: unknown): void;
      /**
       * It gave a value, and is not done: half-open’s deadline is counted from the last one. A breaker of your own may
       * leave it out.
       */
      progress?(): void;
      /** It was given up before it ended. */
      release(): void;
    }
  | {
      /** The call must not be made. */
      readonly admitted: false;
      /** How long until the breaker may admit one, in milliseconds. */
      readonly retryAfterMs: number;
    };

/** An admission that was given. */
export type GivenPermit = Extract<Admission, { admitted: true }>;

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
