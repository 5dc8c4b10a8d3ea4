// What the inspector knows of a trace, for programs: `spillway/inspect`.
export { addEvent } from './inspect/model/add.ts';
export { emptyTrace } from './inspect/model/empty.ts';
export type {
  AttemptOutcome,
  AttemptTold,
  BreakerChangeSeen,
  BreakerTold,
  BudgetTold,
  CallTold,
  DecisionTold,
  KeyTold,
  Mark,
  MarkKind,
  MoveTold,
  NodeTold,
  NoteTold,
  TraceModel,
  TurnTold,
} from './inspect/model.ts';
export type { TraceLimits } from './inspect/model/limits.ts';
export { pendingTimers, type PendingKind, type PendingTimer } from './inspect/model/pending.ts';
export { marbleTest, type MarbleTest } from './inspect/share/marble-test.ts';
export { compareTraces, compareTurns } from './inspect/compare.ts';
export type { FlippedDecision, NodeComparison, Pair, TurnComparison } from './inspect/compare.ts';
export { lintTrace, type Lint, type LintName } from './inspect/lints.ts';
export { agentText } from './inspect/share/agent-text.ts';
export { marblesSvg } from './inspect/share/marbles-svg.ts';
export { toOtlp, type OtlpOptions } from './inspect/share/otlp.ts';
export { toPerfetto } from './inspect/share/perfetto.ts';
export {
  serveInspector,
  serveTrace,
  serveTraceFile,
  type InspectedLayer,
  type InspectorOptions,
  type InspectorServer,
  type TraceEventsOptions,
  type TraceFileOptions,
} from './gateway/inspector-server.ts';
export type { InspectorGuardOptions } from './gateway/inspector.ts';
