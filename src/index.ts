export type { BreakerStateName } from './contract/breaker-state.ts';
export type { Classification, ToolErrorKind } from './contract/error-kind.ts';
export { LlmError, isLlmError, type LlmErrorKind, type LlmErrorOptions } from './contract/llm-error.ts';
export { ToolExecutionError, isToolExecutionError, type ToolExecutionErrorOptions } from './contract/tool-error.ts';
export type { ToolCallEnvelope, ToolCallRequest, ToolResultEnvelope, ToolResultStatus } from './contract/envelope.ts';
export type { ToolEvent, TraceEvent, TurnEvent } from './contract/event.ts';
export type {
  BreakerOptions,
  ClassificationOverrides,
  DedupePolicy,
  Effects,
  Mode,
  ProfileName,
  RetryBudgetOptions,
  RetryPolicy,
  ToolPolicy,
} from './contract/policy.ts';
export type { ToolProvider } from './contract/provider.ts';
export type {
  FailureNotification,
  GuidanceRule,
  RecoveryCode,
  RecoveryDecision,
  RecoveryStrategy,
} from './contract/recovery.ts';
export type { Runtime } from './contract/runtime.ts';
export type { HookAnswer, HookAttempt, HookCall, HookReport, Hooks, Preparation, Verdict } from './contract/hooks.ts';
export type { DedupeStore } from './contract/store.ts';
export type { ToolOutput } from './contract/output.ts';
export type { AnyTool, InputOf, OutputOf, Progress, Tool, ToolContext } from './contract/tool.ts';
export type { NodeResult, NodeState, PlanNode, PlanOptions, TurnResult, TurnStatus } from './contract/turn.ts';

export { toToolError, type Entrance } from './errors/read-error.ts';
export { toLlmError } from './errors/llm.ts';
export { toToolExecutionError } from './errors/tool.ts';

export type { BreakerOutcome } from './policy/breaker/reducer.ts';
export { classify, type Classified } from './policy/recovery/classify.ts';
export { createExperience, type Experience, type ExperienceOptions } from './policy/recovery/experience.ts';
export type { KeyScope } from './policy/key/call-key.ts';
export type { CaptureOptions, RedactOptions } from './policy/redact/values.ts';
export { decideRecovery } from './policy/recovery/decide.ts';

export { abortable } from './operators/work/abortable.ts';
export { attemptTimeout } from './operators/attempt-timeout.ts';
export { createBreaker, type Breaker, type BreakerChange, type BreakerState } from './operators/breaker/breaker.ts';
export type { Admission } from './operators/breaker/permit.ts';
export { circuitBreaker } from './operators/circuit-breaker.ts';
export { dedupe, type DedupeOptions } from './operators/dedupe.ts';
export { guard, type Guard, type GuardContext, type GuardOptions } from './operators/guard.ts';
export { hedge, type HedgePolicy } from './operators/hedge.ts';
export { idleTimeout } from './operators/idle-timeout.ts';
export { retryBackoff } from './operators/retry-backoff.ts';

export { liveRuntime } from './runtime.ts';
export type { ErrorHandler, ErrorHandlerOptions } from './layer/error-handler.ts';
export type { Around } from './layer/services.ts';
export type { Plan } from './contract/turn.ts';
export { PlanError, plan, type NodeOptions, type PlanBuilder, type PlanRule } from './turn/plan.ts';
export { tool, type ToolDefinition } from './layer/tool.ts';
export type { TurnOptions } from './turn/run.ts';

export type { SpillwayOptions } from './options.ts';
export { createSpillway, type CallOptions, type Spillway, type TypedTurnEvent } from './spillway.ts';
