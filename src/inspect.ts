// What the inspector knows of a trace, for programs: `spillway/inspect`.
export { addEvent } from './inspect/model/add.ts';
export { emptyTrace } from './inspect/model/empty.ts';
export type {
  AttemptOutcome,
  AttemptTold,
  BreakerChange,
  BreakerTold,
  CallTold,
  DecisionTold,
  KeyTold,
  Mark,
  MarkKind,
  NodeTold,
  NoteTold,
  TraceLimits,
  TraceModel,
  TurnTold,
} from './inspect/model.ts';
export { pendingTimers, type PendingKind, type PendingTimer } from './inspect/model/pending.ts';
export { marbleTest, type MarbleTest } from './inspect/share/marble-test.ts';
