import type { TraceEvent } from '../../src/contract/event.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/virtual-runtime.ts';
import { Findings, type InvariantId } from './findings.ts';
import type { Outcome } from './simulate.ts';
import { TraceDigest, line } from './trace-digest.ts';
import { untilQuiet, type Watched } from './until-quiet.ts';

/**
 * What the smaller worlds have in common: virtual time with a shuffled order, findings, and a digest of all that was
 * told. Each is about one thing that the great world leaves out, so that what must be true of it can be worked out
 * anew in a few lines.
 */
export class SideWorld implements Watched {
  readonly seed: number;
  readonly runtime: VirtualRuntime;
  readonly findings: Findings;
  readonly digest: TraceDigest = new TraceDigest();
  readonly log: ((line: string) => void) | undefined;
  readonly #startMs: number;

  constructor(seed: number, log?: (line: string) => void) {
    this.seed = seed;
    this.log = log;
    this.runtime = virtualRuntime({ seed, shuffle: true });
    this.#startMs = this.runtime.now();
    this.findings = new Findings(() => this.elapsedMs);
  }

  get elapsedMs(): number {
    return this.runtime.now() - this.#startMs;
  }

  check(holds: boolean, invariant: InvariantId, message: () => string): void {
    this.findings.check(holds, invariant, message);
  }

  heard(event: TraceEvent): void {
    this.digest.add(event);
    this.log?.(`${this.elapsedMs.toFixed(1).padStart(8)} ${line(event)}`);
  }

  checkGivenUp(): void {
    // Nobody gives up here: the great world is about that.
  }

  leaving(): void {
    // What must be over by now is checked where it ends.
  }

  async toTheEnd(): Promise<void> {
    await untilQuiet(this);
    // What follows from a violation says nothing.
    if (this.findings.violations.length > 0) return;
    this.check(this.runtime.pending === 0, 'RSC-1', () => `${this.runtime.pending} timers are left`);
  }

  get outcome(): Outcome {
    const { seed, findings, digest } = this;
    return { seed, violations: findings.violations, seen: findings.seen, hash: digest.hash };
  }
}
