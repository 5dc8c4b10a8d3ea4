import type { Observable } from 'rxjs';
import type { RetryPolicy } from '../../../src/contract/policy.ts';
import type { NodeState } from '../../../src/contract/turn.ts';
import type { Breaker } from './breaker.ts';
import type { Read } from './operators.ts';

/** How a call ended, as its result says it. */
export interface Outcome {
  readonly status: string;
  readonly attempts: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** What a call is guarded by. */
export interface Guards {
  readonly timeoutMs: number;
  readonly retry: Partial<RetryPolicy>;
  readonly breaker: Breaker;
  readonly read: Read;
  /** When the turn of which it is a part is over: no retry starts then. */
  readonly deadlineMs?: number;
  readonly aborted$?: Observable<unknown>;
}

export interface Settled {
  readonly index: number;
  readonly state: NodeState;
  readonly outcome?: Outcome;
}
/** A node as a turn's result looks at it. */
export interface Planned {
  readonly needs: readonly number[];
  readonly optional: boolean;
  readonly hasRun: () => boolean;
}
export interface Turn {
  readonly nodes: readonly Settled[];
  readonly status: string;
  readonly executedTools: number;
}

export interface Node extends Planned {
  readonly default: unknown;
  /** Given the values of its needs, in their order, and when the turn is over. */
  readonly call: (values: readonly unknown[], deadlineMs: number) => Observable<Outcome>;
}
export interface TurnSettings {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly onDeadline: 'detach' | 'abort';
  readonly aborted$: Observable<unknown>;
  /** Hears of each node at the instant at which it settles. */
  readonly told: (settled: Settled) => void;
}
