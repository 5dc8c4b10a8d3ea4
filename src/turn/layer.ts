import type { Observable } from 'rxjs';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { AnyTool } from '../contract/tool.ts';
import type { Experience } from '../policy/experience.ts';
import type { RetryBudget } from '../policy/retry-budget.ts';
import type { Breakers } from './breakers.ts';
import type { Registry } from './registry.ts';
import type { RunningCalls } from './running-calls.ts';
import type { Trace } from './trace.ts';

/** What all calls of one `createSpillway` share. */
export interface Layer {
  readonly runtime: Runtime;
  readonly registry: Registry;
  readonly breakers: Breakers;
  /** The name of the breaker that a tool shares; by default its own. */
  readonly breakerKey: ((tool: AnyTool) => string) | undefined;
  readonly retryBudget: RetryBudget | undefined;
  readonly trace: Trace;
  /** The error handler: what to do about a failure, now or later. */
  readonly recover: (failure: FailureNotification, renewed: () => FailureNotification) => RecoveryDecision | Observable<RecoveryDecision>;
  readonly experience: Experience | undefined;
  /** The calls that are running, for `close()`. */
  readonly running: RunningCalls;
  /** After `close()` nothing begins. */
  closed: boolean;
}
