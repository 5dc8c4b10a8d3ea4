import type { BreakerStateName } from '../../src/contract/breaker-state.ts';
import type { LayerEvent } from '../../src/contract/event.ts';
import type { Breaker } from '../../src/operators/breaker/breaker.ts';
import { breakerSettings, type BreakerSettings } from '../../src/policy/breaker/settings.ts';
import { initialBreaker, reduceBreaker, type BreakerInput } from '../../src/policy/breaker/reducer.ts';
import type { Findings } from './findings.ts';

/** An attempt as a breaker sees it. */
export interface Admitted {
  readonly startedMs: number;
  /** Changes that the breaker had shown when it was admitted. */
  generation: number;
  /** Admitted by a half-open breaker. */
  readonly probe: boolean;
  /** Half-open's own deadline may have revoked it: nobody is told. */
  mayBeRevoked: boolean;
}

export type Ended = 'success' | 'failure' | 'neutral';

/** Times are added up in floating point. */
const SLACK_MS = 1e-6;

/** One breaker, watched through the trace alone: what it shows, and which attempts it let through. */
export class BreakerWatch {
  readonly key: string;
  readonly settings: BreakerSettings;
  readonly breaker: Breaker;
  type: BreakerStateName;
  readonly #findings: Findings;
  readonly #now: () => number;
  readonly #out = new Set<Admitted>();
  readonly #inputs: BreakerInput[] = [];
  #generation = 0;
  #openings = 0;
  /** When it opened, at the earliest: a change that time alone made is told only when somebody looks. */
  #openedMs = -Infinity;
  /** And at the latest. */
  #openedByMs = -Infinity;
  #closedMs = -Infinity;
  #lastProbeMs = -Infinity;
  #halfOpenMs = 0;
  #halfOpenByMs = 0;
  #probeEndedMs = -Infinity;
  #longestHintMs = 0;
  /** A change that an attempt's end must explain: with the very next event. */
  #unexplained:
    | { readonly from: BreakerStateName; readonly to: BreakerStateName; readonly generation: number }
    | undefined;

  constructor(
    key: string,
    breaker: Breaker,
    settings: BreakerSettings | undefined,
    findings: Findings,
    now: () => number,
  ) {
    this.key = key;
    this.breaker = breaker;
    this.settings = settings ?? breakerSettings();
    this.type = this.settings.initialState;
    this.#findings = findings;
    this.#now = now;
    breaker.inputs$.subscribe((input) => this.#inputs.push(input));
  }

  /** The longest that it may stay open, whatever has happened so far. */
  get cooldownBoundMs(): number {
    const { cooldownMs, cooldownMultiplier, cooldownMaxMs } = this.settings;
    return Math.max(
      Math.min(cooldownMs * cooldownMultiplier ** this.#openings, cooldownMaxMs),
      Math.min(this.#longestHintMs, 3_600_000, cooldownMaxMs),
    );
  }

  /** Probes that run, with or without those that may have been revoked. */
  #probesOut(all: boolean): number {
    let count = 0;
    for (const { probe, mayBeRevoked } of this.#out) if (probe && (all || !mayBeRevoked)) count++;
    return count;
  }

  /**
   * When half-open's own deadline opens it again: counted from its last probe, though never from before it became
   * half-open.
   */
  #timesOutMs(sinceMs: number): number {
    return Math.max(sinceMs, this.#lastProbeMs) + this.settings.halfOpenTimeoutMs;
  }

  /** An old probe was out long enough for half-open's deadline to come. */
  get #mayHaveReopened(): boolean {
    return (
      this.#probesOut(true) > 0 ||
      this.#probeEndedMs + SLACK_MS >= this.#openedMs + this.settings.cooldownMs + this.settings.halfOpenTimeoutMs
    );
  }

  changed({ from, to }: Extract<LayerEvent, { type: 'breaker_changed' }>, byHand: boolean): void {
    const { settings } = this;
    const now = this.#now();
    const generation = this.#generation++;
    this.#findings.check(
      from === this.type,
      'BRK-3',
      () => `${this.key} says it went from ${from} but was ${this.type}`,
    );
    const timedOut = from === 'half_open' && to === 'open' && now + SLACK_MS >= this.#timesOutMs(this.#halfOpenMs);
    if (from === 'open' && to === 'half_open') {
      this.#findings.check(
        now + SLACK_MS >= this.#openedMs + settings.cooldownMs,
        'BRK-3',
        () => `${this.key} is half-open ${now - this.#openedMs} ms after it opened`,
      );
      if (this.#probesOut(false) > 0) this.#findings.saw('an old probe alive at the next half-open');
    } else if (!byHand && !timedOut) {
      this.#unexplained = { from, to, generation };
    }
    if (timedOut) this.#findings.saw('half-open revokes its probes');
    // While nobody looks it may have opened and become half-open again, any number of times.
    if (from === 'half_open') this.#openings += Math.floor((now - this.#halfOpenMs) / settings.halfOpenTimeoutMs);
    if (from === 'open')
      this.#openings += Math.max(
        0,
        Math.floor((now - this.#openedMs - settings.cooldownMs) / settings.halfOpenTimeoutMs),
      );
    if (to === 'half_open') {
      this.#halfOpenMs = Math.min(now, this.#openedMs + settings.cooldownMs);
      this.#halfOpenByMs = Math.min(now, this.#openedByMs + this.cooldownBoundMs);
    }
    if (to === 'open') {
      this.#openings++;
      // A timeout that nobody looked at is told late: it opened some time since then.
      this.#openedMs = timedOut ? this.#timesOutMs(this.#halfOpenMs) : now;
      this.#openedByMs = timedOut ? Math.min(now, this.#timesOutMs(this.#halfOpenByMs)) : now;
    }
    if (to === 'closed') {
      this.#openings = 0;
      this.#closedMs = now;
      if (!byHand) this.#findings.saw('breaker closes again');
    }
    this.type = to;
  }

  admitted(): Admitted {
    const now = this.#now();
    const attempt: Admitted = {
      startedMs: now,
      generation: this.#generation,
      probe: this.type === 'half_open',
      mayBeRevoked: false,
    };
    this.#findings.check(
      this.type !== 'open' && this.type !== 'forced_open',
      'BRK-2',
      () => `an attempt started while ${this.key} was ${this.type}`,
    );
    if (attempt.probe) {
      // Half-open's own deadline revokes what is out; no sooner than this, whatever else happened.
      if (now + SLACK_MS >= this.#lastProbeMs + this.settings.halfOpenTimeoutMs)
        for (const old of this.#out) old.mayBeRevoked = true;
      const out = this.#probesOut(false) + 1;
      if (out > 1) this.#findings.saw('several probes at once');
      this.#findings.check(
        out <= this.settings.probes,
        'BRK-1',
        () => `${out} probes of ${this.key} at once, ${this.settings.probes} allowed`,
      );
      this.#lastProbeMs = now;
    }
    this.#out.add(attempt);
    return attempt;
  }

  rejected(): void {
    const { settings } = this;
    const now = this.#now();
    const ramps = settings.rampMs > 0 && now <= this.#closedMs + settings.rampMs;
    if (this.type === 'closed' && ramps) this.#findings.saw('ramp rejects');
    this.#findings.check(
      this.type !== 'disabled' && (this.type !== 'closed' || ramps),
      'BRK-2',
      () => `${this.key} rejected while ${this.type}`,
    );
    if (this.type === 'half_open') {
      this.#findings.saw('half-open rejects');
      const out = this.#probesOut(true);
      this.#findings.check(
        out >= settings.probes,
        'BRK-4',
        () =>
          `${this.key} rejected while half-open with ${out} of ${settings.probes} probes out: a permit was not given back`,
      );
    }
    if (this.type === 'open') {
      // With an old probe out it may have been half-open, timed out and opened again, while nobody looked.
      this.#findings.check(
        now <= this.#openedByMs + this.cooldownBoundMs + SLACK_MS || this.#mayHaveReopened,
        'BRK-3',
        () => `${this.key} is still open ${now - this.#openedByMs} ms after it opened`,
      );
    }
  }

  ended(attempt: Admitted, how: Ended, hintMs: number | undefined): void {
    this.#out.delete(attempt);
    if (attempt.probe) this.#probeEndedMs = this.#now();
    if (hintMs !== undefined && hintMs > 0) this.#longestHintMs = Math.max(this.#longestHintMs, hintMs);
    if (attempt.generation !== this.#generation && this.#unexplained === undefined)
      this.#findings.saw('old generation ends');
    const change = this.#unexplained;
    this.#unexplained = undefined;
    if (change === undefined) return;
    const slow = this.#now() - attempt.startedMs > this.settings.slowCallMs;
    if (slow && how === 'success' && change.to === 'open') this.#findings.saw('slow call opens a breaker');
    this.#findings.check(
      attempt.generation === change.generation,
      'BRK-3',
      () => `${this.key} went from ${change.from} to ${change.to} by an outcome of an older generation`,
    );
    const explains =
      change.to === 'open'
        ? how === 'failure' || (slow && how === 'success')
        : change.to === 'closed' && how === 'success' && change.from === 'half_open';
    this.#findings.check(explains, 'BRK-3', () => `${this.key} went from ${change.from} to ${change.to} by a ${how}`);
  }

  /** Called with each event that is not an attempt's end: a change must have been explained by then. */
  unexplained(): void {
    const change = this.#unexplained;
    if (change === undefined) return;
    this.#unexplained = undefined;
    this.#findings.check(
      false,
      'BRK-3',
      () => `${this.key} went from ${change.from} to ${change.to} by no outcome and before its time`,
    );
  }

  /** Once quiet: the recorded inputs, replayed, give the state that it shows. */
  replay(): void {
    const replayed = this.#inputs.reduce(
      (memory, input) => reduceBreaker(memory, input, this.settings),
      initialBreaker(this.settings),
    );
    const shown = reduceBreaker(replayed, { type: 'tick', atMs: this.#now() }, this.settings);
    const { type, consecutiveFailures } = this.breaker.state;
    this.#findings.check(
      shown.type === type,
      'BRK-6',
      () => `${this.key} replayed is ${shown.type}, lived it is ${type}`,
    );
    if (type === 'open')
      this.#findings.check(
        shown.window.streakMs.length === consecutiveFailures,
        'BRK-6',
        () => `${this.key} replayed counts otherwise`,
      );
    this.#findings.check(this.#out.size === 0, 'BRK-4', () => `${this.#out.size} attempts of ${this.key} never ended`);
  }
}
