import type { BreakerStateName } from '../breaker-state.ts';
import type { ToolResultEnvelope } from '../envelope.ts';
import type { Classification } from '../error-kind.ts';
import type { Usage } from '../gate/budget.ts';
import type { Mode } from '../policy.ts';
import type { RecoveryCode, RecoveryStrategy } from '../recovery.ts';
import type { VerifyFinding } from '../settle/verify.ts';
import type { Progress } from '../tool.ts';
import type { ApprovalEvent } from './gate.ts';
import type { EventHeader } from './header.ts';
import type { DedupeStep } from './key.ts';
import type { ToolInForce } from './layer.ts';
import type { BreakerAtStart, CallTerms } from './terms.ts';

interface CallHeader extends EventHeader {
  /** Tells the events of calls from those of turns and of the layer. */
  readonly source: 'call';
  /** The call's id, the same in all its events: `requestId` of its envelope, or a new UUIDv7. */
  readonly callId: string;
  /** The tool in use: an alternative's name while one is tried. */
  readonly toolName: string;
  /** The plan node, when the call is part of a turn. */
  readonly nodeId?: string;
  /** The attempt, counted from 1 over the whole call. */
  readonly attempt?: number;
  /** True for what a detached call does after its turn has settled. */
  readonly late?: true;
}

/** An error as events tell it. */
export interface ErrorReport {
  /** A `ToolErrorKind`. */
  readonly kind: string;
  /** The error's text; in `trace$` without what looks like a secret. Nothing is decided by it. */
  readonly message: string;
  /** The failing party's own code, such as `ECONNRESET`. */
  readonly code?: string;
  /** The HTTP status, where the failure was an answered request. */
  readonly status?: number;
  /** The wait that the failing party asked for, in milliseconds; negative or `NaN` forbids a retry. */
  readonly retryAfterMs?: number;
  /** Present when the tool may have taken effect. */
  readonly uncertain?: true;
  /** Whether the tool ran, where the error says otherwise than its kind means. */
  readonly executed?: boolean;
}

/** The hooks of `Hooks` by name, as a `hook` event gives the one that spoke. */
export type HookName = 'prepareCall' | 'beforeToolCall' | 'afterToolCall';
/** What the layer would have done in shadow mode: replay a result, wait for another, refuse, retry, or time out. */
export type ShadowAct = 'replay' | 'wait' | 'reject' | 'retry' | 'time_out';

/** What happens in one call, in the order in which it happens. Exactly one `settled` is the last. */
export type ToolEvent = CallHeader &
  (
    | {
        /** First of all events of a call. */
        readonly type: 'call_started';
        /** The id that the model gave the call. */
        readonly toolCallId?: string;
        /** `control.requestTags` of the envelope. */
        readonly tags?: readonly string[];
        /** `target.correlationId` of the envelope. */
        readonly correlationId?: string;
        /** `control.fromHook` of the envelope: the host's hook that asked for the call. */
        readonly fromHook?: string;
        /** `target.agentId` of the envelope: the agent that asks. */
        readonly agentId?: string;
        /** `target.workspaceId` of the envelope. */
        readonly workspaceId?: string;
        /** The session on whose behalf the call is made. */
        readonly session?: string;
        /** The tenant, by which keys and breakers are kept apart. */
        readonly tenant?: string;
        /** The W3C trace context that the caller gave. */
        readonly traceparent?: string;
        /** The vendors' part of it. */
        readonly tracestate?: string;
        /** The breaker of its tool as this process sees it now; absent where the tool is unknown or has none. */
        readonly breaker?: BreakerAtStart;
        /** What the call asks for itself; absent where it asks for nothing. */
        readonly terms?: CallTerms;
        /** As the switches stand for its tool, where that is not `on`: nothing guards it. */
        readonly mode?: Exclude<Mode, 'on'>;
        /** The call in doubt that this one finds out about, since that one's `verify` names its tool. */
        readonly verifies?: string;
        /** The call whose effect this one undoes. */
        readonly undoes?: string;
        /**
         * The policy in force of a tool that `layer_started` did not name, since the call or its plan brought it along,
         * or its provider listed it later: with the first call of it that a subscriber of the trace hears of.
         */
        readonly tool?: ToolInForce;
        /** With `capture`; in the trace, only what it lists. */
        readonly input?: unknown;
      }
    | {
        /** At each step of the call's idempotency key. */
        readonly type: 'dedupe';
        /** Which step it was. */
        readonly step: DedupeStep;
        /** Tells keys apart and gives none away. */
        readonly keyFingerprint: string;
        /** The call that runs or ran under the key, when it is another; with `taken_over`, the one that lost it. */
        readonly leaderCallId?: string;
        /** With `waiting`: when the other's lease ends, on the clock of `atMs`, unless it is renewed until then. */
        readonly leaseUntilMs?: number;
        /** With `claimed` and `taken_over`: grows with each claim of the key. */
        readonly fence?: number;
        /** With `replayed`: milliseconds since the result was recorded. */
        readonly ageMs?: number;
        /** A sentence, where the step alone does not say why. */
        readonly message?: string;
      }
    | {
        /** When a hook blocked or changed the call, or failed: one that failed or timed out blocks as well. */
        readonly type: 'hook';
        /** Which hook. */
        readonly hook: HookName;
        /** `changed` comes from `prepareCall` only. A failed `afterToolCall` blocks nothing. */
        readonly outcome: 'blocked' | 'changed' | 'failed' | 'timed_out';
        /** The attempt it was asked about; 0 for `prepareCall`, and for a call that ends without an attempt. */
        readonly attempt: number;
        /** The reason that the hook gave, or how it failed. */
        readonly message?: string;
      }
    | ApprovalEvent
    | {
        /** In shadow mode, when the layer would have acted. */
        readonly type: 'shadow';
        /** What it would have done. */
        readonly would: ShadowAct;
        /** The error kind, recovery code or state that would have led to it. */
        readonly reason: string;
        /** The same as a sentence. */
        readonly message: string;
      }
    | {
        /** When the tool is about to run. */
        readonly type: 'attempt_started';
        /** Counted from 1 over the whole call, alternatives included. */
        readonly attempt: number;
        /**
         * When it is cut off, on the clock of `atMs`: its timeout, or the call's own deadline if that is sooner. Absent
         * without a limit.
         */
        readonly dueAtMs?: number;
      }
    | {
        /** At each progress report of the tool. */
        readonly type: 'progress';
        /** The attempt that reports. */
        readonly attempt: number;
        /** What the tool said. */
        readonly report: Progress;
      }
    | {
        /** When an attempt has given its last value and that fits the output schema. */
        readonly type: 'attempt_succeeded';
        /** The attempt that succeeded. */
        readonly attempt: number;
        /** How long it took. */
        readonly durationMs: number;
        /** After a retry: `Tool succeeded on retry 2`, with the attempt's number at this tool. */
        readonly message?: string;
        /** What the tool said that it used, where budgets count that. */
        readonly usage?: Usage;
      }
    | {
        /** When an attempt has failed, before anything is decided about it. */
        readonly type: 'attempt_failed';
        /** The attempt that failed. */
        readonly attempt: number;
        /** How long it took. */
        readonly durationMs: number;
        /** How it failed. */
        readonly error: ErrorReport;
        /** Whether asking again can help. */
        readonly classification: Classification;
        /** The rule that gave the class. */
        readonly rule: string;
        /** The state of the breaker once it has counted the failure. */
        readonly breakerState: BreakerStateName;
        /** The limit that passed, when the failure is the layer's own timeout. */
        readonly timeoutMs?: number;
        /** What the tool said that it used, where budgets count that. */
        readonly usage?: Usage;
      }
    | {
        /** When it was asked whether an uncertain attempt took effect, before anything is decided about it. */
        readonly type: 'verified';
        /** The attempt in doubt, counted over the whole call; 0 for one of another process. */
        readonly attempt: number;
        /** What was found; `unknown` also where the answer could not be read, or did not come in time. */
        readonly finding: VerifyFinding;
        /** How long that took, with the wait until the attempt had stopped. */
        readonly durationMs: number;
        /** How many questions were asked. */
        readonly asked: number;
        /** With `unknown`: why, as a sentence. */
        readonly message?: string;
      }
    | {
        /** When a running attempt was aborted: its caller left, or something else ended the call. */
        readonly type: 'attempt_canceled';
        /** The attempt that was aborted. */
        readonly attempt: number;
        /** How long it had run. */
        readonly durationMs: number;
        /** It had given a value: for its breaker it counts as a success. */
        readonly answered?: true;
      }
    | {
        /** When a call was refused without an attempt: a breaker, invalid input, an unknown tool. */
        readonly type: 'rejected';
        /** Why. */
        readonly error: ErrorReport;
        /** Whether asking again can help. */
        readonly classification: Classification;
        /** The rule that gave the class. */
        readonly rule: string;
        /** Present, here and below, if a breaker saw the call. */
        readonly breakerState?: BreakerStateName;
      }
    | {
        /** After each failure, once it is decided what follows. */
        readonly type: 'decision';
        /** What follows. */
        readonly strategy: RecoveryStrategy;
        /** Why, for programs. */
        readonly code: RecoveryCode;
        /** Why, as a sentence. */
        readonly reason: string;
        /** The class of the failure. */
        readonly classification: Classification;
        /** The breaker's state after the failure. */
        readonly breakerState?: BreakerStateName;
        /** The failure that was decided about. */
        readonly error: ErrorReport;
        /**
         * The attempt that failed, counted from 1 at its tool, as `maxAttempts` is: after an alternative took over,
         * another number than that of `attempt_failed`, which counts over the whole call. 0 when none was made.
         */
        readonly attempt: number;
        /** With `retry`: the wait before the next attempt. */
        readonly delayMs?: number;
        /** The number in [0, 1) that the wait was made with; absent where none was drawn. It repeats the wait. */
        readonly draw?: number;
        /**
         * Retries that all calls of the layer could make when this was decided, one that it orders included. Absent
         * without a budget.
         */
        readonly budgetLeft?: number;
      }
    | {
        /** When a person has to choose, after the decision `escalate`. */
        readonly type: 'escalated';
        /** A sentence for that person. */
        readonly message: string;
        /** What is open to them, each an `EscalationChoice`. */
        readonly choices: readonly string[];
        /** The failure. */
        readonly error: ErrorReport;
        /** The class of the failure. */
        readonly classification: Classification;
        /** The breaker's state after the failure. */
        readonly breakerState?: BreakerStateName;
        /** The attempt that failed, counted as in `decision`; 0 when none was made. */
        readonly attempt: number;
      }
    | {
        /** When an alternative takes over; `toolName` is its name from here on. */
        readonly type: 'alternative_used';
        /** The tool that failed. */
        readonly from: string;
        /** `Used alternative tool`. */
        readonly message: string;
      }
    | {
        /** When the caller unsubscribed before the call settled: the last event then, which only the trace gets. */
        readonly type: 'abandoned';
      }
    | {
        /** Last of all events of a call that was not abandoned, exactly once. */
        readonly type: 'settled';
        /** The result; in `trace$` without its output, unless `capture` lists parts of it. */
        readonly result: ToolResultEnvelope;
        /** For how long in all it waited for the host's hooks; absent where it did not. */
        readonly hooksMs?: number;
      }
  );
