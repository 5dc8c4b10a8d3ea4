/** Rare states. One that is never reached over a whole batch means that the batch proves less than it seems to. */
export const SOMETIMES = [
  'deadline in a backoff', 'an old probe alive at the next half-open', 'breaker opens while another call backs off', 'unsubscribed inside next',
  'synchronous throw', 'empty turn', 'two answers at one instant, in order', 'two answers at one instant, out of order', 'late answer after a timeout',
  'success on a retry', 'alternative answers', 'detached call settles late', 'half-open rejects', 'half-open revokes its probes', 'breaker closes again',
  'ramp rejects', 'slow call opens a breaker', 'stall past several timers', 'wall clock jumps in a call', 'Retry-After is the wait', 'uncertain mutation refused',
  'retry budget refuses', 'node skipped', 'node ran with a default', 'required node skipped', 'ready node waits for a place', 'closed while running',
  'answer and deadline at one instant', 'idle timeout', 'signal aborted in an attempt', 'decision comes later', 'old generation ends', 'several probes at once', 'permanent answer in half-open',
] as const;
export type Sometimes = (typeof SOMETIMES)[number];

/** The invariants of this harness, by the ids of the list that the project keeps. The idempotency ones join with the stores. */
export type InvariantId =
  | 'RES-1' | 'RES-2' | 'RES-3' | 'TURN-1' | 'TURN-2' | 'RET-1' | 'RET-2' | 'RET-3' | 'RET-4' | 'RET-5' | 'DL-1' | 'TO-1' | 'BRK-1' | 'BRK-2' | 'BRK-3' | 'BRK-4' | 'BRK-5' | 'BRK-6'
  | 'DAG-1' | 'DAG-2' | 'DAG-3' | 'RSC-1' | 'RSC-2' | 'TRC-1' | 'TRC-2' | 'TRC-3' | 'DET-1' | 'ERR-1' | 'FB-1' | 'CLS-1';

export interface Violation {
  readonly invariant: InvariantId;
  readonly message: string;
  readonly atMs: number;
}

/** What the watchers of a run report to. */
export class Findings {
  readonly violations: Violation[] = [];
  readonly seen: Set<Sometimes> = new Set();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  saw(what: Sometimes): void {
    this.seen.add(what);
  }

  /** Reports unless it holds. The message is made only when it does not. */
  check(holds: boolean, invariant: InvariantId, message: () => string): void {
    // The first few say what went wrong; what follows from them says nothing.
    if (!holds && this.violations.length < 5) this.violations.push({ invariant, message: message(), atMs: this.#now() });
  }
}
