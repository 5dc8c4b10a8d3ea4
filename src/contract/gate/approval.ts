import type { ToolOutput } from '../output.ts';
import type { Effects } from '../policy.ts';

/** What is known of a call when it is asked whether a person has to approve it. */
export interface NeedsApprovalContext {
  /** The tool that is about to run: an alternative's name where one stands in. */
  readonly toolName: string;
  /** The call's id, as the trace has it. */
  readonly callId: string;
  /** The turn, where the call is part of one. */
  readonly turnId?: string;
  /** The plan node, where the call is part of a turn. */
  readonly nodeId?: string;
  /** The session on whose behalf the call is made. */
  readonly session?: string;
  /** The user or service on whose behalf the call is made. */
  readonly actor?: string;
  /** The tenant. */
  readonly tenant?: string;
}

interface Rules<I> {
  rule(input: I, context: NeedsApprovalContext): ToolOutput<boolean>;
}

/**
 * Which inputs need approval, as data: what stands at a path, and one comparison. What is not there or cannot be
 * compared, such as a text with a number, needs it; of several values (`items[*].usd`) one is enough.
 *
 * @example { path: 'usd', above: 100 }
 */
export interface ApprovalWhen {
  /** A place in the input: `usd`, `items[0].usd` or `items[*].usd`. */
  readonly path: string;
  /** Needed where the number there is greater. */
  readonly above?: number;
  /** Needed where the number there is less. */
  readonly below?: number;
  /** Needed where this stands there, compared as JSON. */
  readonly equals?: unknown;
  /** Needed where anything else stands there. */
  readonly unless?: unknown;
}

/**
 * Whether a call needs a person's approval before it runs: `true`, data about its input, or a function of it. A
 * function that throws, gives no answer within 15 s, or anything but `true` or `false`, counts as `true`.
 */
// The type of a method, so that a tool of one input is a tool of any, as with `execute`.
export type NeedsApproval<I = never> = boolean | ApprovalWhen | Rules<I>['rule'];

/**
 * Why a person is asked. `needed`: the tool or the node says so. `uncertain`: an earlier attempt may have taken effect
 * already, and this one could make it a second time.
 */
export type ApprovalCause = 'needed' | 'uncertain';

/**
 * A question to a person: may this call run, with this input? It is of the first call that asks; others that ask the
 * same share it.
 */
export interface ApprovalRequest extends NeedsApprovalContext {
  /** Names this question, and no later one about the same input: `spillway approve ID`. */
  readonly id: string;
  /** Why it is asked. */
  readonly cause: ApprovalCause;
  /** What the tool does, in its author's words. Absent where it says nothing. */
  readonly description?: string;
  /** What the tool does to the world. */
  readonly effects: Effects;
  /**
   * What it would be given, as it may be shown: `[redacted]` in place of what looks like a secret, `[cut]` of what is
   * too much to show. The approval is for the whole input, by its hash.
   */
  readonly input: unknown;
  /** When it was asked first, in milliseconds since the Unix epoch by the store's clock. */
  readonly askedAtMs: number;
  /** When neither the question nor its answer counts any more, by the same clock. */
  readonly expiresAtMs: number;
}

/**
 * A person's answer: `true`, `false`, or with who gave it and why. Anything else is no answer, and the call is refused.
 */
export type ApprovalAnswer =
  | boolean
  | {
      /** `true`: it may run, once. */
      readonly approved: boolean;
      /** Who says so, for the trace, 1 to 256 characters. Default: nobody is named. */
      readonly by?: string;
      /** Why, 1 to 1,000 characters; the model is told of a no. Default: nothing is said. */
      readonly reason?: string;
    };

/** How a question stands in the store. `closed`: it is over, and another one can be asked about the same input. */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'closed';

/** A question in the store, and what became of it. JSON. */
export interface ApprovalRecord extends ApprovalRequest {
  /** The format. */
  readonly version: 1;
  /** How it stands. */
  readonly state: ApprovalState;
  /** With `closed`: `used` by an attempt, `denied` to the call that asked, or `withdrawn` since nobody waits for it. */
  readonly became?: 'used' | 'denied' | 'withdrawn';
  /** Who answered. */
  readonly by?: string;
  /** Why, in the words of who answered. */
  readonly reason?: string;
}
