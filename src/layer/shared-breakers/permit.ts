import type { GivenPermit } from '../../operators/breaker/permit.ts';
import type { BreakerOutcome, Permit } from '../../policy/breaker/reducer.ts';
import type { SharedBreaker } from './breaker.ts';

/** A probe on behalf of all processes. */
export interface Probe {
  /** Of the record that admitted it. */
  readonly origin: number;
  /** By the record's generations. */
  readonly permit: Permit;
  readonly startedAtMs: number;
  /** The call that it was admitted for. */
  readonly by: string | undefined;
  /** When the record last said that it goes on. */
  toldAtMs: number;
}

/** The permit of a probe, whose end is written to the record for all processes. */
export class ProbePermit implements GivenPermit {
  readonly admitted = true;
  readonly #probe: Probe;
  readonly #breaker: SharedBreaker;
  #ended = false;

  constructor(probe: Probe, breaker: SharedBreaker) {
    this.#probe = probe;
    this.#breaker = breaker;
  }

  success(atMs?: number): void {
    this.#end('success', undefined, atMs);
  }

  failure(error?: unknown): void {
    this.#end('failure', error);
  }

  answered(): void {
    this.#end('answered');
  }

  ignore(error?: unknown): void {
    this.#end('ignored', error);
  }

  release(): void {
    this.#end('ignored');
  }

  progress(): void {
    if (!this.#ended) this.#breaker.probeProgressed(this.#probe);
  }

  #end(outcome: BreakerOutcome, error?: unknown, atMs?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#breaker.probeEnded(this.#probe, outcome, error, atMs);
  }
}

/** A permit of our own breaker; when its end opens that, the record is written for the other processes. */
export class WatchedPermit implements GivenPermit {
  readonly admitted = true;
  readonly #given: GivenPermit;
  readonly #breaker: SharedBreaker;

  constructor(given: GivenPermit, breaker: SharedBreaker) {
    this.#given = given;
    this.#breaker = breaker;
  }

  success(atMs?: number): void {
    this.#given.success(atMs);
    // One that was slow can open it, too.
    this.#breaker.heardOutcome();
  }

  failure(error?: unknown): void {
    this.#given.failure(error);
    this.#breaker.heardOutcome();
  }

  answered(): void {
    this.#given.answered();
  }

  ignore(error?: unknown): void {
    this.#given.ignore(error);
  }

  release(): void {
    this.#given.release();
  }

  progress(): void {
    this.#given.progress?.();
  }
}
