import type { BreakerStateName } from '../../src/contract/breaker-state.ts';
import type { BreakerSettings } from '../../src/policy/breaker/settings.ts';

/** A permit as the naive breaker sees it. */
export interface NaivePermit {
  readonly generation: number;
  readonly probe: boolean;
  readonly startedMs: number;
}

interface Outcome {
  readonly atMs: number;
  readonly outcome: 'success' | 'failure' | 'answered';
  readonly slow: boolean;
}

/**
 * SPEC section 3 once more, written to be read: all outcomes of a closed period are kept and counted anew each time,
 * probes are objects in a set. It has no `scan`, no epochs and no shortcuts, and is compared with the real one step by
 * step.
 */
export class NaiveBreaker {
  type: BreakerStateName;
  generation = 0;
  readonly #settings: BreakerSettings;
  #outcomes: Outcome[] = [];
  #frozenMs: number | undefined;
  #openUntilMs = 0;
  #openings = 0;
  #goodProbes = 0;
  #halfOpenSinceMs = 0;
  #lastProbeMs = -Infinity;
  readonly #probes = new Set<NaivePermit>();

  constructor(settings: BreakerSettings) {
    this.#settings = settings;
    this.type = settings.initialState;
  }

  /** Lets time alone do what it does. */
  at(nowMs: number): void {
    for (;;) {
      if (this.type === 'open' && nowMs >= this.#openUntilMs) {
        this.#become('half_open');
        this.#halfOpenSinceMs = this.#openUntilMs;
        continue;
      }
      const deadlineMs = Math.max(this.#halfOpenSinceMs, this.#lastProbeMs) + this.#settings.halfOpenTimeoutMs;
      if (this.type === 'half_open' && this.#probes.size > 0 && nowMs >= deadlineMs) {
        this.#probes.clear();
        this.#open(deadlineMs);
        continue;
      }
      return;
    }
  }

  admit(nowMs: number): NaivePermit | undefined {
    this.at(nowMs);
    const probe = this.type === 'half_open';
    if (this.type === 'open' || this.type === 'forced_open') return undefined;
    if (probe && this.#probes.size >= this.#settings.probes) return undefined;
    const permit = { generation: this.generation, probe, startedMs: nowMs };
    if (probe) {
      this.#probes.add(permit);
      this.#lastProbeMs = nowMs;
    }
    return permit;
  }

  end(
    permit: NaivePermit,
    outcome: 'success' | 'failure' | 'answered' | 'ignored',
    nowMs: number,
    retryAfterMs = 0,
  ): void {
    this.at(nowMs);
    this.#probes.delete(permit);
    if (permit.generation !== this.generation || outcome === 'ignored') return;
    // Neutral as a probe.
    if (this.type === 'half_open' && outcome === 'answered') return;
    const slow = nowMs - permit.startedMs > this.#settings.slowCallMs;
    if (this.type === 'half_open') {
      if (outcome === 'failure' || slow) return this.#open(nowMs, retryAfterMs);
      this.#goodProbes++;
      if (this.#goodProbes >= this.#settings.successThreshold) this.#close();
      return;
    }
    if (this.type !== 'closed') return;
    this.#outcomes.push({ atMs: nowMs, outcome, slow });
    if (outcome === 'answered') return;
    if (outcome === 'success' && !slow) return;
    const { measured, failures, consecutiveFailures } = this.counts(nowMs);
    const byRow = consecutiveFailures >= this.#settings.failureThreshold;
    const byRate = measured >= this.#settings.minimumCalls && failures / measured >= this.#settings.failureRate;
    if (byRow || byRate) this.#open(nowMs, retryAfterMs);
  }

  forceOpen(nowMs: number): void {
    this.at(nowMs);
    this.#frozenMs ??= nowMs;
    this.#become('forced_open');
  }

  disable(nowMs: number): void {
    this.at(nowMs);
    this.#frozenMs ??= nowMs;
    this.#become('disabled');
  }

  reset(nowMs: number): void {
    this.at(nowMs);
    this.#close();
  }

  /** The counts as they are shown: of the closed period, or as they stood when it ended. */
  counts(nowMs: number): {
    readonly consecutiveFailures: number;
    readonly measured: number;
    readonly failures: number;
  } {
    const fromMs = (this.#frozenMs ?? nowMs) - this.#settings.windowMs;
    const fresh = this.#outcomes.filter(({ atMs }) => atMs >= fromMs);
    // An answer in words ends a row and is in no window.
    const last = fresh.filter(({ outcome }) => outcome !== 'answered').slice(-this.#settings.windowSize);
    const lastSuccess = fresh.findLastIndex(({ outcome }) => outcome !== 'failure');
    return {
      consecutiveFailures: fresh.length - 1 - lastSuccess,
      measured: last.length,
      failures: last.filter(({ outcome, slow }) => outcome === 'failure' || slow).length,
    };
  }

  retryAfterMs(nowMs: number): number | undefined {
    return this.type === 'open' ? this.#openUntilMs - nowMs : undefined;
  }

  #become(type: BreakerStateName): void {
    this.type = type;
    this.generation++;
    this.#goodProbes = 0;
  }

  #open(atMs: number, retryAfterMs = 0): void {
    this.#frozenMs ??= atMs;
    const { cooldownMs, cooldownMultiplier, cooldownMaxMs } = this.#settings;
    const grownMs = Math.min(cooldownMaxMs, cooldownMs * cooldownMultiplier ** this.#openings);
    this.#openings++;
    this.#become('open');
    this.#openUntilMs = atMs + Math.max(grownMs, Math.min(retryAfterMs, cooldownMaxMs));
  }

  #close(): void {
    this.#become('closed');
    this.#outcomes = [];
    this.#frozenMs = undefined;
    this.#openings = 0;
  }
}
