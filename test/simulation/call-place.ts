import type { Behaviour } from './behaviour.ts';
import type { Admitted, BreakerWatch } from './breaker-watch.ts';
import type { Findings } from './findings.ts';
import type { CallOperation, ToolSpec } from './scenario.ts';

/** An attempt that runs. */
export interface Running {
  readonly number: number;
  readonly own: number;
  readonly startedMs: number;
  readonly endsByMs: number;
  readonly breaker: BreakerWatch | undefined;
  readonly admitted: Admitted | undefined;
  heardMs: number;
  behaviour?: Behaviour;
  signal?: AbortSignal;
  executed: boolean;
}

/** Where a call stands in the run. */
export interface CallPlace {
  readonly n: number;
  readonly startedMs: number;
  /** The call's own deadline; `Infinity` without one. */
  readonly ownDeadlineMs: number;
  readonly envelope?: CallOperation['envelope'];
  /** The deadline of its turn. */
  readonly turnDeadlineMs: number;
  readonly tenant: string;
}

/** What a call watch needs of the run it is in. */
export interface CallSurroundings {
  readonly findings: Findings;
  now(): number;
  toolNamed(name: string): ToolSpec | undefined;
  breakerOf(tool: ToolSpec, place: CallPlace): BreakerWatch | undefined;
  retried(atMs: number): void;
  /** When a deadline was found to have passed: at its instant, or at the end of the stall that it fell into. */
  foundPassedMs(deadlineMs: number): number;
}
