export { replayTrace, type ReplayOptions, type ReplayReport } from './replay/replay.ts';
export type { TraceInFile } from './replay/trace/whole.ts';
export { ReplayRefusal, type RefusalCode } from './replay/refusal.ts';
export type { Flip, ReplayedCall, ReplayedOutcome } from './replay/outcomes.ts';
export type { Bound } from './replay/certainty/bounds.ts';
export type { UnknownShare, WhatIfVerdict, WhatIf } from './replay/what-if.ts';
export type { Unknowns } from './replay/certainty/doubts.ts';
export { inspectedSides } from './replay/page/inspected.ts';
export { replayJson, replayText } from './replay/report.ts';
export { readPolicyFile, SimulationInputError } from './policy-file.ts';
export {
  policyFileSchema,
  type RetryBudgetEntry,
  type PolicyFile,
  type ToolPolicyEntry,
} from '../contract/formats/policy-file.ts';
export { scenarioFileSchema } from '../contract/formats/scenario-file.ts';
export type {
  AskedEntry,
  BurstEntry,
  ClientsEntry,
  ClosedEntry,
  ErrorsEntry,
  ErrorSpanEntry,
  ExpectEntry,
  FactorSpanEntry,
  LatencyEntry,
  NormalEntry,
  PoissonEntry,
  QueueServerEntry,
  RowServerEntry,
  ScenarioFile,
  ScenarioNodeEntry,
  ScenarioPlanEntry,
  ScenarioToolEntry,
  SpanEntry,
  WeatherEntry,
} from '../contract/formats/scenario-entry.ts';
export {
  simulate,
  type Expectation,
  type Figures,
  type PolicyOutcome,
  type SimulateOptions,
  type StormReport,
} from './storm/simulate.ts';
export { readScenarioFile } from './storm/scenario/check.ts';
export type { StormMeasures } from './storm/measures.ts';
export type { EngineName } from './storm/run.ts';
export type { Band, Series } from './storm/series.ts';
export type { Interval } from './storm/statistics.ts';
export { stormText } from './storm/report.ts';
export { chartsSvg } from './charts.ts';
