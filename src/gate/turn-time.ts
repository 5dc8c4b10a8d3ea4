import { BehaviorSubject, NEVER, defer, distinctUntilChanged, map, switchMap, type Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { expiry } from '../operators/timing/expiry.ts';
import type { HeldTime } from '../layer/gate-port.ts';

/**
 * A turn's time where a person can be waited for: it stands still meanwhile, for all of the turn.
 *
 * ```
 * holds            --h----g-----      somebody is waited for, and has answered
 * due$ of 6        -----------(0|)    4 frames were left when they were asked
 * ```
 */
export class TurnTime implements HeldTime {
  readonly #runtime: Runtime;
  #endMs: number;
  #heldSinceMs = 0;
  readonly #waiting$ = new BehaviorSubject(0);

  constructor(runtime: Runtime, endMs: number) {
    this.#runtime = runtime;
    this.#endMs = endMs;
  }

  get endMs(): number {
    return this.#waiting$.value === 0 ? this.#endMs : this.#endMs + (this.#runtime.now() - this.#heldSinceMs);
  }

  hold(): () => void {
    if (this.#waiting$.value === 0) this.#heldSinceMs = this.#runtime.now();
    this.#waiting$.next(this.#waiting$.value + 1);
    let holds = true;
    return () => {
      if (!holds) return;
      holds = false;
      if (this.#waiting$.value === 1) this.#endMs += this.#runtime.now() - this.#heldSinceMs;
      this.#waiting$.next(this.#waiting$.value - 1);
    };
  }

  get due$(): Observable<0> {
    return defer(() =>
      this.#waiting$.pipe(
        map((waiting) => waiting > 0),
        distinctUntilChanged(),
        switchMap((waits) => (waits ? NEVER : expiry(Math.max(0, this.#endMs - this.#runtime.now()), this.#runtime))),
      ),
    );
  }
}
