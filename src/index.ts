export type { BreakerStateName } from './contract/breaker-state.ts';
export { TOOL_ERROR_KIND_MEANINGS, type Classification, type ToolErrorKind, type ToolErrorKindMeaning } from './contract/error-kind.ts';
export { LLM_ERROR_KIND_MEANINGS, LlmError, isLlmError, type LlmErrorKind, type LlmErrorKindMeaning, type LlmErrorOptions } from './contract/llm-error.ts';
export { ToolExecutionError, isToolExecutionError, type ToolExecutionErrorOptions } from './contract/tool-error.ts';
export {
  toolCallEnvelopeSchema,
  toolResultEnvelopeSchema,
  type RetryRecord,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolResultEnvelope,
  type ToolResultStatus,
} from './contract/envelope.ts';
export type { BreakerAtStart, DedupeStep, ErrorReport, HookName, LayerEvent, PolicyInForce, ShadowAct, ToolEvent, ToolInForce, TraceEvent, TurnEvent, TurnOwnEvent } from './contract/event.ts';
export type { BreakerOptions, ClassificationOverrides, DedupePolicy, Effects, Mode, ProfileName, RetryBudgetOptions, RetryPolicy, ToolPolicy } from './contract/policy.ts';
export type { ToolProvider } from './contract/provider.ts';
export type { Evidence, FailureNotification, GuidanceRule, RecoveryCode, RecoveryDecision, RecoveryStrategy, Tally } from './contract/recovery.ts';
export type { Runtime } from './contract/runtime.ts';
export type { HookAnswer, HookAttempt, HookCall, HookReport, Hooks, Preparation, Verdict } from './contract/hooks.ts';
export {
  dedupeRecordSchema,
  type Awaitable,
  type DedupeClaim,
  type DedupeExecution,
  type DedupeFailure,
  type DedupeOutcome,
  type DedupeReading,
  type DedupeRecord,
  type DedupeRequest,
  type DedupeState,
  type DedupeStore,
  type StoreReport,
} from './contract/store.ts';
export type { ToolOutput } from './contract/output.ts';
export type { AnyTool, InputOf, OutputOf, Progress, Tool, ToolContext, TraceContext, TraceContextSource } from './contract/tool.ts';
export type { NodeResult, NodeState, PlanNode, PlanOptions, TurnResult, TurnStatus } from './contract/turn.ts';

export { toToolError, type Entrance } from './errors/read-error.ts';
export { toLlmError } from './errors/llm.ts';
export { toToolExecutionError } from './errors/tool.ts';

export { backoffDelayMs, retryPolicy } from './policy/retry/backoff.ts';
export { breakerSettings, type BreakerSettings } from './policy/breaker/settings.ts';
export { initialBreaker, reduceBreaker, type BreakerInput, type BreakerMemory, type BreakerOutcome, type Permit } from './policy/breaker/reducer.ts';
export { breakerOutcome } from './policy/breaker/outcome.ts';
export { VOLATILE_FIELDS, canonicalJson, type CanonicalJsonOptions } from './policy/key/canonical-json.ts';
export { decideCascade, turnStatus, type Cascade, type SettledNode } from './policy/recovery/cascade.ts';
export { decideClaim, type ClaimDecision, type ClaimQuestion, type DedupeMode } from './policy/key/claim.ts';
export { classify, type Classified } from './policy/recovery/classify.ts';
export { escalationOf, type Escalation, type EscalationChoice } from './policy/recovery/escalation.ts';
export { createExperience, type Episode, type Experience, type ExperienceMemory, type ExperienceOptions } from './policy/recovery/experience.ts';
export { callKey, type CallKey, type CallKeyParts, type KeyScope } from './policy/key/call-key.ts';
export { RETRY_PROFILES } from './policy/profile.ts';
export { seededRandom } from './policy/random.ts';
export { createRedactor, type Capture, type CaptureOptions, type RedactOptions } from './policy/redact/values.ts';
export { decideRecovery } from './policy/recovery/decide.ts';
export { createRetryBudget, type RetryBudget } from './policy/retry/budget.ts';

export { abortable } from './operators/work/abortable.ts';
export { attemptTimeout } from './operators/attempt-timeout.ts';
export { createBreaker, type Admission, type Breaker, type BreakerChange, type BreakerState } from './operators/breaker/breaker.ts';
export { circuitBreaker } from './operators/circuit-breaker.ts';
export { dedupe, type DedupeOptions } from './operators/dedupe.ts';
export { guard, type Guard, type GuardContext, type GuardOptions } from './operators/guard.ts';
export { hedge, type HedgePolicy } from './operators/hedge.ts';
export { idleTimeout } from './operators/idle-timeout.ts';
export { retryBackoff } from './operators/retry-backoff.ts';

export { liveRuntime } from './runtime.ts';
export type { BreakerEntry, BreakerOrder, Breakers } from './layer/breakers.ts';
export type { ErrorHandler, ErrorHandlerOptions } from './layer/error-handler.ts';
export type { BreakerReport, Flush, LayerReport, ToolReport } from './operate/inspection.ts';
export type { Around } from './layer/services.ts';
export type { BreakerTarget, OrderReport } from './operate/orders.ts';
export { loadExperience, saveExperience } from './layer/kept-experience.ts';
export { PlanError, plan, type NodeOptions, type Plan, type PlanBuilder, type PlanRule } from './turn/plan.ts';
export { tool, type ToolDefinition } from './layer/tool.ts';
export type { TurnOptions } from './turn/run.ts';

export { createSpillway, type CallOptions, type Spillway, type SpillwayOptions, type TypedTurnEvent } from './spillway.ts';
