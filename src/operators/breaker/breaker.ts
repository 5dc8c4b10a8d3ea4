import type { Observable } from 'rxjs';
import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { BreakerOptions } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { ErrorReader } from '../../contract/tool-error.ts';
import type { BreakerInput } from '../../policy/breaker/reducer.ts';
import { readAsCall } from '../../policy/recovery/classify.ts';
import { liveRuntime } from '../../runtime.ts';
import { OpenBreaker } from './open-breaker.ts';
import type { Admission } from './permit.ts';

/** What a breaker shows of itself. */
export interface BreakerState {
  /** The state's name. */
  readonly type: BreakerStateName;
  /** Failures in a row; kept while open. */
  readonly consecutiveFailures: number;
  /** Outcomes in the window, and how many of them failed. */
  readonly measured: number;
  /** How many outcomes of the window failed. */
  readonly failures: number;
  /** While open: until it lets a probe through. */
  readonly retryAfterMs?: number;
}

/**
 * A circuit breaker, as `createBreaker` makes it. Give it to `circuitBreaker`, or ask `admit()` before
 * each call and end what it gives.
 */
export interface Breaker {
  /** The state now, time that has passed without traffic included. */
  readonly state: BreakerState;
  /** The present state at once, then each change of `type` at its instant. Holds a timer only while it is watched. */
  readonly state$: Observable<BreakerState>;
  /** Each input of the breaker: folded with `reduceBreaker` from the start, it gives the breaker's states. */
  readonly inputs$: Observable<BreakerInput>;
  /**
   * Asks for one call. Whoever is admitted must end the permit, or a probe's place stays taken until
   * `halfOpenTimeoutMs`.
   * @param atMs now, from one who has just read the runtime's clock
   * @param by whose call it is; a change of state that it brings about is told with this name
   */
  admit(atMs?: number, by?: string): Admission;
  /** Rejects everything until `reset`. */
  forceOpen(): void;
  /** Straight to closed, with nothing remembered. */
  reset(): void;
  /** Admits everything and measures nothing until `reset`. */
  disable(): void;
}

/** Called after each change of a breaker's state, once the new state stands. What it throws is ignored. */
export type BreakerChange = (from: BreakerStateName, to: BreakerStateName) => void;

/**
 * A circuit breaker: it counts outcomes, stops calling what keeps failing, and probes for its recovery. Its state is a
 * `scan` of its inputs over the pure `reduceBreaker`; it opens after 5 consecutive failures or when half of the last 20
 * outcomes (at least 10) failed, stays open for 30 s, and closes after 2 good probes (SI 3.2, CLAW 1.5).
 *
 * @param options when it opens and how it recovers; see `BreakerOptions` for each default
 * @param runtime where time and chance come from
 * @param onChange called at each change of state once the new state stands, in order and before those who watch
 *   `state$`; what it throws is ignored
 * @throws RangeError for an option out of its range
 *
 * @example
 * const breaker = createBreaker({ failureThreshold: 3, cooldownMs: 10_000 });
 * const guarded$ = search$.pipe(circuitBreaker(breaker));
 * breaker.state$.subscribe(({ type }) => console.log(type)); // 'closed', later perhaps 'open'
 */
export function createBreaker(
  options: BreakerOptions = {},
  runtime: Runtime = liveRuntime,
  onChange?: BreakerChange,
): Breaker {
  return createBreakerFor(readAsCall, options, runtime, onChange);
}

/** `createBreaker` with a reader of errors as an argument: `spillway/mini` gives one without tables. */
export function createBreakerFor(
  read: ErrorReader,
  options: BreakerOptions,
  runtime: Runtime,
  onChange?: BreakerChange,
): Breaker {
  return new OpenBreaker(
    read,
    options,
    runtime,
    onChange === undefined ? {} : { changed: (from, to) => onChange(from, to) },
  ).breaker;
}
