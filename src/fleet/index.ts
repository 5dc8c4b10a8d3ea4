export { fromResults } from './from-results.ts';
export { DurablePlanError } from './plan-record.ts';
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
} from '../contract/fleet/port.ts';
export type { JournalledDecision, JournalledNode, TurnJournal, TurnMove } from '../contract/fleet/journal.ts';
