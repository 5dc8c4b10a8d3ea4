import type { ToolOutput } from '../output.ts';
import type { ToolExecutionError } from '../tool-error.ts';
import type { TraceContext } from '../event/trace-context.ts';

/**
 * What `verify` says of a call that may have taken effect. `done`: it has, and the call succeeds with `output`.
 * `done: false`: it has not and will not, so that it may be made again. `unknown`, and all else: it stays uncertain.
 */
export type VerifyAnswer<O = unknown> =
  | {
      /** The effect is there. */
      readonly done: true;
      /** What the call gives then, checked by the tool's output schema. Default: nothing. */
      readonly output?: O | undefined;
    }
  | {
      /** The effect is not there. */
      readonly done: false;
      /**
       * The resource has seen to it that the effect never comes: it refuses what may still be under way, as one that
       * has canceled the key. Then the answer counts at once. Default: it may still come, for `settleMs`.
       */
      readonly final?: boolean;
    }
  | 'unknown';

/** What a verification came to; what answers nothing that can be read is `unknown`. */
export type VerifyFinding = 'done' | 'not_done' | 'unknown';

/** What `verify` is given beside the input of the call that is in doubt. */
export interface VerifyContext {
  /** What the attempts in doubt had as `callKey`: look for the effect by it, where the resource keeps it. */
  readonly callKey: string;
  /** Why it is not known whether the call took effect. */
  readonly error: ToolExecutionError;
  /** The attempt in doubt, counted from 1 at this tool; 0 when another process made it. */
  readonly attempt: number;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /**
   * As the tool's own: a resource that keeps the highest fence it was asked with can refuse an older attempt that is
   * still under way. Absent without a claim.
   */
  readonly fence?: number;
  /** What the requests of the verification are to continue: what the caller gave. Absent without it. */
  readonly traceContext?: TraceContext;
}

/**
 * Says whether a call took effect. Only looks, and changes nothing: it may be asked any number of times.
 */
export type Verify<I = never, O = unknown> = (input: I, context: VerifyContext) => ToolOutput<VerifyAnswer<O>>;

/** How an answer of the tool that is looked with is read: a place in its output, and what stands there. */
export interface VerifyComparison {
  /**
   * A place in the output, such as `status`, `messages[*].id` or `items[0].name`; `[*]` is any item of a list. A list
   * or mapping on the way that is not there as it should be leaves the answer `unknown`.
   */
  readonly path: string;
  /**
   * The value that is there when the call took effect, `null` included; references in it are filled in as in `input`.
   * Default: any value but `null`.
   */
  readonly equals?: unknown;
}

/** A verification by data: another tool that only reads, what it is asked, and how its answer is read. */
export interface VerifyLookup {
  /** The tool to look with, by its name in the layer. It has to declare `effects: 'read'`. */
  readonly tool: string;
  /**
   * Its input. In its texts `${input.from}` is a part of the input of the call in doubt and `${callKey}` its key; `$${`
   * is a plain `${`. Default: the input of the call in doubt.
   */
  readonly input?: unknown;
  /** What its answer has to hold for `done`. */
  readonly done: VerifyComparison;
  /** Where in its answer the output of the call is, as a path. Default: the call then gives nothing. */
  readonly output?: string;
  /**
   * What an answer without it means: `not_done`, or, where it may be on another page, `unknown`. Default `not_done`,
   * but `unknown` for an answer that lacks the last key of the path, which may be an answer about something else.
   */
  readonly otherwise?: 'not_done' | 'unknown';
  /** Statuses by which that tool says that there is nothing, such as 404: `not_done`. Default: none. */
  readonly absentOn?: readonly number[];
}

/** How a tool's verification is made (`verify` of its policy). Units are milliseconds. */
export interface VerifyPolicy extends Partial<VerifyLookup> {
  /** Limit on one question, and on the wait until the attempt in doubt has stopped. Default 5,000. */
  readonly timeoutMs?: number;
  /** How often it is asked while the answer is `unknown`, 1 to 100. Default 3. */
  readonly maxAttempts?: number;
  /** The wait between two such questions. Default 500. */
  readonly delayMs?: number;
  /**
   * How long an effect can still come after its attempt has stopped, as when the server goes on with a request whose
   * caller has gone: after a `done: false` so much later it is asked once more, and only the second answer counts.
   * Default 1,000.
   */
  readonly settleMs?: number;
  /**
   * Whether an Observable that `execute` gives has stopped once it is unsubscribed, as one that aborts its request has.
   * Otherwise an attempt that was cut short may still be under way, as with `defer(() => pay())`, and a `done: false`
   * about it is no answer. Of a Promise and an AsyncIterable it is seen when they stop. Default false.
   */
  readonly stopsOnUnsubscribe?: boolean;
}
