import type { BreakerStateName } from '../../../contract/breaker-state.ts';
import type { BreakerOptions } from '../../../contract/policy.ts';
import { rejectionHintMs } from '../../../policy/breaker/hint.ts';
import {
  advanceBreaker,
  decideBreaker,
  initialBreaker,
  type BreakerMemory,
  type BreakerOutcome,
  type Permit,
} from '../../../policy/breaker/reducer.ts';
import { breakerSettings, type BreakerSettings } from '../../../policy/breaker/settings.ts';

/** A breaker without the streams around it. */
export class PureBreaker {
  readonly #settings: BreakerSettings;
  readonly #changed: (state: BreakerStateName) => void;
  #memory: BreakerMemory;

  constructor(options: BreakerOptions, changed: (state: BreakerStateName) => void) {
    this.#settings = breakerSettings(options);
    this.#changed = changed;
    this.#memory = initialBreaker(this.#settings);
  }

  /** What it is by now: one that opens for no time at all is half-open at once. */
  stateAt(atMs: number): BreakerStateName {
    return advanceBreaker(this.#memory, this.#settings, atMs).type;
  }

  /** A permit, or `undefined` for a refusal. */
  admit(atMs: number, random: () => number): Permit | undefined {
    const draw = this.#memory.rampFromMs === undefined ? {} : { random: random() };
    const [next, permit] = decideBreaker(this.#memory, { type: 'admit', atMs, ...draw }, this.#settings);
    this.#become(next);
    return permit;
  }

  /** What a refusal asks to wait. */
  hintMs(atMs: number): number {
    return rejectionHintMs(this.#memory, this.#settings, atMs);
  }

  /** An attempt gave a value: one that half-open waits for has shown that it is not stuck. */
  progressed(permit: Permit, atMs: number): void {
    if (this.#memory.type === 'half_open')
      this.#become(decideBreaker(this.#memory, { type: 'progress', atMs, permit }, this.#settings)[0]);
  }

  /** Ends a permit. */
  settle(permit: Permit, startedMs: number, atMs: number, outcome: BreakerOutcome, retryAfterMs?: number): void {
    const hint = retryAfterMs === undefined ? {} : { retryAfterMs };
    const input = { type: 'outcome', atMs, permit, outcome, durationMs: atMs - startedMs, ...hint } as const;
    this.#become(decideBreaker(this.#memory, input, this.#settings)[0]);
  }

  #become(next: BreakerMemory): void {
    const { type } = this.#memory;
    this.#memory = next;
    if (next.type !== type) this.#changed(next.type);
  }
}
