import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { RetryRecord, ToolResultEnvelope, ToolResultStatus } from '../contract/envelope.ts';
import type { ErrorReport } from '../contract/event.ts';
import { TOOL_ERROR_KIND_TRAITS, type Classification } from '../contract/error-kind.ts';
import type { RecoveryCode } from '../contract/recovery.ts';
import type { VerifyFinding } from '../contract/settle/verify.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { given } from '../policy/check.ts';

/** How a call failed for good. */
export interface Failure {
  readonly error: ToolExecutionError;
  readonly classification: Classification;
  /** The breaker's state after it was counted; absent where no breaker saw the call. */
  readonly breakerState?: BreakerStateName;
  /** Why it was not retried, once that is decided. */
  readonly code?: RecoveryCode;
}

/** A failure at a tool, which its breaker has seen. */
export type SeenFailure = Failure & { readonly breakerState: BreakerStateName };

/** How a call ended, for the turn it is part of. */
export interface CallOutcome {
  readonly result: ToolResultEnvelope;
  /** Absent when it succeeded. */
  readonly error?: ToolExecutionError;
  /** Of a replayed failure: nothing of its work was under way any more when it was recorded. */
  readonly hasStopped?: boolean;
}

/** What of a call's history its result tells. */
export interface History {
  readonly requestId: string;
  readonly toolName: string;
  readonly durationMs: number;
  readonly attempts: number;
  readonly retriedBy: readonly RetryRecord[];
  readonly verified: VerifyFinding | undefined;
}

/** The codes that end a row of retries: attempts, time, budget, or the breaker that its failures opened. */
const EXHAUSTED: ReadonlySet<RecoveryCode | undefined> = new Set([
  'attempts_exhausted',
  'time_exhausted',
  'retry_after_too_long',
  'budget_exhausted',
  'circuit_open',
  'turn_deadline',
]);

const statusOf = ({ error, classification, code }: Failure, { attempts, retriedBy }: History): ToolResultStatus => {
  if (error.kind === 'circuit_open' && attempts === 0) return 'circuit_open';
  if (classification === 'permanent') return 'error';
  if (retriedBy.length > 0 && EXHAUSTED.has(code)) return 'retry_exhausted';
  if (retriedBy.length === 0 && (error.kind === 'timeout' || error.kind === 'deadline_exceeded')) return 'timeout';
  return 'retriable_error';
};

const common = ({
  requestId,
  toolName,
  durationMs,
  attempts,
  retriedBy,
  verified,
}: History): Omit<ToolResultEnvelope, 'status'> => ({
  requestId,
  fromCache: false,
  ...(verified === undefined ? undefined : { verified }),
  toolName,
  durationMs,
  attempts,
  ...(retriedBy.length === 0 ? undefined : { retriedBy: [...retriedBy] }),
});

export function successResult(
  history: History,
  content: unknown,
  metadata?: Record<string, unknown>,
): ToolResultEnvelope {
  return {
    ...common(history),
    status: 'success',
    output: metadata === undefined ? { content } : { content, metadata },
  };
}

/** @param modelText what a model reads of it */
export function failureResult(history: History, failure: Failure, modelText: string): ToolResultEnvelope {
  const { error, classification, breakerState } = failure;
  const terminal = classification === 'permanent';
  return {
    ...common(history),
    status: statusOf(failure, history),
    error: given({
      code: error.kind,
      message: error.message,
      retriable: !terminal,
      terminal,
      breakerState,
      uncertain: error.uncertain ? (true as const) : undefined,
      modelText,
    }),
  };
}

/** An error as events tell it. */
export function reportOf(error: ToolExecutionError): ErrorReport {
  const { kind, message, code, status, retryAfterMs, uncertain, executed } = error;
  return given({
    kind,
    message,
    code,
    status,
    retryAfterMs,
    uncertain: uncertain ? (true as const) : undefined,
    executed: executed === TOOL_ERROR_KIND_TRAITS[kind].executed ? undefined : executed,
  });
}
