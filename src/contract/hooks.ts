import type { Observable } from 'rxjs';
import type { ToolResultEnvelope } from './envelope.ts';
import type { Effects } from './policy.ts';

/** What a hook may give: at once, as a promise, or as a stream whose first value counts. */
export type HookAnswer<T> = T | PromiseLike<T> | Observable<T>;

/** The call that a hook is asked about. */
export interface HookCall {
  readonly callId: string;
  readonly toolCallId?: string;
  readonly toolName: string;
  /** As the caller gave it, before the tool's schema; in `beforeToolCall` and `afterToolCall` as the tool gets it. */
  readonly input: unknown;
  readonly effects: Effects;
  readonly turnId?: string;
  readonly nodeId?: string;
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
  readonly tags?: readonly string[];
}

/** An attempt that a hook is asked about. */
export interface HookAttempt extends HookCall {
  /** Counted from 1 over the whole call; 0 for a call that ends without one: a replay, a rejection. */
  readonly attempt: number;
}

/** How an attempt ended. */
export interface HookReport extends HookAttempt {
  readonly durationMs: number;
  /** With attempt 0, the result of the call. */
  readonly result?: ToolResultEnvelope;
  /** Absent when it failed. */
  readonly output?: unknown;
  readonly error?: Error;
}

/** What `prepareCall` may change. A changed input is validated like any other. */
export interface Preparation {
  readonly input?: unknown;
  readonly idempotencyKey?: string;
  /** Why the call must not run. */
  readonly block?: string;
}

/** `block` says why the attempt must not be made. */
export interface Verdict {
  readonly block?: string;
}

/**
 * The host's say in every call. A hook that throws, or gives no answer within `hookTimeoutMs` (15,000), blocks the call: it fails with
 * `blocked`, nothing is counted against the tool, and the trace tells. Only what `afterToolCall` throws changes nothing.
 */
export interface Hooks {
  /** Once a call, before it claims its key: may change the input, give a key, or block. */
  readonly prepareCall?: (call: HookCall) => HookAnswer<Preparation | undefined | void>;
  /** Once an attempt: may block. */
  readonly beforeToolCall?: (attempt: HookAttempt) => HookAnswer<Verdict | undefined | void>;
  /** Once an attempt, and hears how it ended. Not waited for. */
  readonly afterToolCall?: (report: HookReport) => HookAnswer<unknown>;
}
