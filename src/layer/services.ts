import type { Observable } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import type { TraceContextSource } from '../contract/tool.ts';
import type { Experience } from '../policy/recovery/experience.ts';
import type { RetryBudget } from '../policy/retry/budget.ts';
import type { Breakers } from './breakers.ts';
import type { DedupeLayer } from './idempotency.ts';
import type { Recovery } from './error-handler.ts';
import type { Gates } from './gate-port.ts';
import type { HookRunner } from './hooks.ts';
import type { PoliciesInForce } from './policy-in-force.ts';
import type { Registry } from './registry.ts';
import type { RunningCalls } from './running-calls.ts';
import type { SharedBreakers } from './shared-breakers/registry.ts';
import type { Switches } from './switches.ts';
import type { Trace } from './trace.ts';

/** Surroundings for a tool's `execute`; gives what `run` gives. */
export type Around = (callId: string, attempt: number, run: () => unknown) => unknown;

/** On whose behalf a call is made. */
export interface Caller {
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly baggage?: Readonly<Record<string, string>>;
  /** The call in doubt. */
  readonly verifies?: string;
}

/** What all calls of one `createSpillway` share. */
export interface Layer {
  readonly runtime: Runtime;
  readonly registry: Registry;
  readonly breakers: Breakers;
  /** Where breakers are shared with other processes. */
  readonly sharedBreakers: SharedBreakers | undefined;
  readonly retryBudget: RetryBudget | undefined;
  readonly trace: Trace;
  readonly inForce: PoliciesInForce;
  /** The error handler: what to do about a failure, now or later. */
  readonly recovery: Recovery;
  readonly experience: Experience | undefined;
  readonly dedupe: DedupeLayer;
  readonly hooks: HookRunner | undefined;
  readonly switches: Switches;
  /** Who approves calls, and what these may use, where the host has somebody or limits it. */
  readonly gates: Gates | undefined;
  readonly around: Around | undefined;
  /** What each attempt's own trace context is, where the host can tell. */
  readonly traceContext: TraceContextSource | undefined;
  /** Whether events may hold parts of an input. */
  readonly captures: boolean;
  /** Calls a tool by its name on behalf of another call, such as one that has to look something up. */
  readonly lookUp: (
    toolName: string,
    input: unknown,
    by: Caller,
  ) => Observable<{ readonly result: ToolResultEnvelope; readonly error?: ToolExecutionError }>;
  /** The calls that are running, for `close()`. */
  readonly running: RunningCalls;
  /** After `close()` nothing begins. */
  closed: boolean;
}
