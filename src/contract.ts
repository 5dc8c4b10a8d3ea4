/**
 * The shapes of what passes through the layer, for whoever writes a store, a sink or a host: `spillway/contract`. It
 * has the schemas of the envelopes and of stored records, the parts of `DedupeStore` and of the trace's events, and
 * what each kind of error means. The shapes that a program names from day to day are at the root.
 */
export { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKindMeaning } from './contract/error-kind.ts';
export { LLM_ERROR_KIND_MEANINGS, type LlmErrorKindMeaning } from './contract/llm-error.ts';
export { toolCallEnvelopeSchema, toolResultEnvelopeSchema, type RetryRecord } from './contract/envelope.ts';
export type { TraceContext, TraceContextSource } from './contract/tool.ts';
export type {
  BreakerAtStart,
  DedupeStep,
  ErrorReport,
  HookName,
  LayerEvent,
  PolicyInForce,
  ShadowAct,
  ToolInForce,
  TurnOwnEvent,
} from './contract/event.ts';
export type { Evidence, Tally } from './contract/recovery.ts';
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
  type StoreReport,
} from './contract/store.ts';
export type { JournalledDecision, JournalledNode, TurnJournal, TurnMove } from './contract/fleet/journal.ts';
export type {
  Closeable,
  FleetEngine,
  FleetHealth,
  FleetLayer,
  FleetPlan,
  FleetTurns,
  SubmitOptions,
  Submitted,
  WorkerReport,
} from './contract/fleet/port.ts';
export type {
  Compensate,
  CompensateCall,
  CompensateContext,
  CompensatePolicy,
  CompensationReason,
} from './contract/settle/compensate.ts';
export type {
  Verify,
  VerifyAnswer,
  VerifyComparison,
  VerifyContext,
  VerifyFinding,
  VerifyLookup,
  VerifyPolicy,
} from './contract/settle/verify.ts';
export type { Compensation, LeftBehind } from './contract/turn.ts';
