import type { Observable } from 'rxjs';
import type { ZodType } from 'zod';
import type { NeedsApproval } from './gate/approval.ts';
import type { Usage } from './gate/budget.ts';
import type { ToolOutput } from './output.ts';
import type { ToolPolicy } from './policy.ts';
import type { CompensateContext } from './settle/compensate.ts';
import type { VerifyAnswer, VerifyContext } from './settle/verify.ts';
import type { TraceContext } from './event/trace-context.ts';

export type { TraceContext } from './event/trace-context.ts';

/** How far an attempt has come. Each report resets the idle timeout, never the hard one. */
export interface Progress {
  /** How much is done, in the tool's own unit. */
  readonly progress?: number;
  /** How much there is to do, in the same unit. */
  readonly total?: number;
  /** What the tool is at, for a person. */
  readonly message?: string;
}

/**
 * Gives the trace context of an attempt, asked when its tool is started: after the trace has told `attempt_started`, so
 * that a sink has made the attempt's span by then.
 *
 * @param callId the call, as the trace names it
 * @param attempt counted over the whole call, as in the trace
 * @returns nothing where it knows of none: the attempt goes on from what the caller gave
 */
export type TraceContextSource = (callId: string, attempt: number) => TraceContext | undefined;

/** What a tool is given beside its input. */
export interface ToolContext {
  /** Fresh for each attempt; aborted when the attempt is over before the tool is. */
  readonly signal: AbortSignal;
  /** Counted from 1. */
  readonly attempt: number;
  /**
   * Identifies the call across retries, processes and repeated requests under one key: hand it to the resource, which
   * can then refuse to act twice. It is the caller's own key; with a tenant a hash of both, since two tenants may
   * choose the same key; else the computed key, or the call's id.
   */
  readonly callKey: string;
  /**
   * Grows with each claim of the key: a resource that keeps the highest it has seen can refuse a worker that lost its
   * lease and does not know. Absent without a claim.
   */
  readonly fence?: number;
  /**
   * What the tool's own requests are to continue: the context of this very attempt where the layer's option
   * `traceContext` gives one, else the caller's. Absent without either.
   */
  readonly traceContext?: TraceContext;
  /** The same, `traceparent` alone. */
  readonly traceparent?: string;
  /** W3C baggage of the same; the caller's where the attempt's context has none of its own. */
  readonly baggage?: Readonly<Record<string, string>>;
  /**
   * Reports how far the attempt has come: emits a `progress` event and resets the idle timeout. A report after the
   * attempt's end does nothing.
   */
  progress(report: Progress): void;
  /**
   * Tells the attempt when a person is asked something: while the last value of `waiting$` is true, neither `timeoutMs`
   * nor `idleTimeoutMs` runs. Deadlines of the call and the turn do. To be called once, before `execute` returns; later
   * it does nothing. Absent where a tool is run by something other than a layer.
   */
  holdWhile?(waiting$: Observable<boolean>): void;
  /**
   * Tells what the attempt has used, for the layer's budgets, in place of what the tool declares as its `cost`; what is
   * told several times adds up. After the attempt's end it does nothing. Absent where the layer has no `budget`.
   */
  usage?(used: Usage): void;
}

/** A tool as the layer runs it. Make one with `tool()`. */
export interface Tool<I = unknown, O = unknown, Name extends string = string> {
  /** What calls and plans name it by, 1 to 256 characters, unique in a layer. */
  readonly name: Name;
  /** What the tool does, for a model. */
  readonly description?: string;
  /** Checked before anything runs. */
  readonly input?: ZodType;
  /** Checked on the last value; a value that does not fit is a permanent, uncertain failure. */
  readonly output?: ZodType;
  /** The input's JSON Schema, for a tool that comes from a wire. */
  readonly inputJsonSchema?: Readonly<Record<string, unknown>>;
  /** How its calls are guarded; what is left out comes from the layer. */
  readonly policy?: ToolPolicy;
  /** The name of what the tool depends on; tools of one dependency can share a breaker. */
  readonly dependency?: string;
  /**
   * Runs one attempt. Its last value is the output; what it throws, rejects or errors with is a failure. Stop when
   * `context.signal` is aborted: nobody waits for what comes later.
   *
   * @param input as its schema gives it, for this attempt alone: objects and lists in it are copies, so that what is
   *   changed in them reaches no retry, alternative or verification
   */
  execute(input: I, context: ToolContext): ToolOutput<O>;
  /**
   * Says whether a call took effect whose attempt ended uncertain, before anything is decided about it; it only looks.
   * How long and how often it is asked is `verify` of the policy. A tool that has it is `mutating`.
   */
  verify?(input: I, context: VerifyContext): ToolOutput<VerifyAnswer<O>>;
  /**
   * Whether a person has to approve a call before it runs: the layer's `approvals` ask. Without them each call is
   * refused. Default: nobody has to.
   */
  readonly needsApproval?: NeedsApproval<I>;
  /**
   * Undoes what a call did, for a turn with `onFailure: 'compensate'` that fails after it. Each is a guarded call of
   * its own under the key `callKey/undo`. A tool that has it is `mutating`.
   */
  compensate?(output: O, context: CompensateContext<I>): ToolOutput<unknown>;
}

/** Any tool, whatever its input: what a layer's list holds. */
export type AnyTool = Tool<never, unknown>;

/** The input that callers of a tool give it. */
export type InputOf<T> = T extends { execute(input: infer I, context: ToolContext): unknown } ? I : never;
/** The output of a tool: its last value. */
export type OutputOf<T> = T extends Tool<never, infer O> ? O : never;
