import type { Observable } from 'rxjs';
import type { ToolResultEnvelope } from './envelope.ts';
import type { Effects } from './policy.ts';

/** What a hook may give: at once, as a promise, or as a stream whose first value counts. */
export type HookAnswer<T> = T | PromiseLike<T> | Observable<T>;

/** The call that a hook is asked about. */
export interface HookCall {
  /** The call's id, the same in all its events. */
  readonly callId: string;
  /** The id that the model gave the call. */
  readonly toolCallId?: string;
  /** The tool in use: an alternative's name while one is tried. */
  readonly toolName: string;
  /** As the caller gave it, before the tool's schema; in `beforeToolCall` and `afterToolCall` as the tool gets it. */
  readonly input: unknown;
  /** What the tool does to the world, as declared or by default. */
  readonly effects: Effects;
  /** The turn that the call belongs to; absent outside of one. */
  readonly turnId?: string;
  /** The plan node; absent outside of a turn. */
  readonly nodeId?: string;
  /** The session that the caller named. */
  readonly session?: string;
  /** The user or service that the caller named. */
  readonly actor?: string;
  /** The tenant that the caller named. */
  readonly tenant?: string;
  /** The `requestTags` of the call's envelope. */
  readonly tags?: readonly string[];
}

/** An attempt that a hook is asked about. */
export interface HookAttempt extends HookCall {
  /** Counted from 1 over the whole call; 0 for a call that ends without one: a replay, a rejection. */
  readonly attempt: number;
}

/** How an attempt ended. */
export interface HookReport extends HookAttempt {
  /** How long the attempt took, in milliseconds; with attempt 0, the call. */
  readonly durationMs: number;
  /** With attempt 0, the result of the call. */
  readonly result?: ToolResultEnvelope;
  /** Absent when it failed. */
  readonly output?: unknown;
  /** How it failed; absent when it succeeded. */
  readonly error?: Error;
}

/** What `prepareCall` may change. A changed input is validated like any other. */
export interface Preparation {
  /** Replaces the call's input. */
  readonly input?: unknown;
  /** A key for a call whose caller gave none, 1 to 512 characters. Another value blocks the call. */
  readonly idempotencyKey?: string;
  /** Why the call must not run. */
  readonly block?: string;
}

/** `block` says why the attempt must not be made. */
export interface Verdict {
  /** Blocks the call with this reason, which the model is told, too. */
  readonly block?: string;
}

/**
 * Functions of the host's that are asked about every call. A hook that throws, or gives no answer within
 * `hookTimeoutMs` (15,000), blocks the call: it fails with `blocked`, nothing is counted against the tool, and the
 * trace says so. Only what `afterToolCall` throws changes nothing.
 */
export interface Hooks {
  /** Once a call, before it claims its key: may change the input, give a key, or block. */
  readonly prepareCall?: (call: HookCall) => HookAnswer<Preparation | undefined | void>;
  /** Once an attempt: may block. */
  readonly beforeToolCall?: (attempt: HookAttempt) => HookAnswer<Verdict | undefined | void>;
  /** Once an attempt, with how it ended. Nobody waits for its answer. */
  readonly afterToolCall?: (report: HookReport) => HookAnswer<unknown>;
}
