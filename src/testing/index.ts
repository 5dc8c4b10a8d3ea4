export { withFaults, type FaultOptions } from './faults.ts';
export { fleetConformance, type FleetCase, type FleetConformanceOptions } from './fleet-conformance.ts';
export {
  fleetConformanceTools,
  type FleetHarness,
  type FleetMark,
  type FleetMarkKind,
  type FleetWorkerProcess,
  type FleetWorld,
} from './fleet-conformance/world.ts';
export { providerConformance, type ProviderCase, type ProviderConformanceOptions } from './provider-conformance.ts';
export type {
  BackendCall,
  ConformanceCall,
  ConformanceCalls,
  ConformanceLayer,
  MakeLayer,
  ProviderBackend,
  ProviderCapability,
  ProviderHarness,
} from './provider-conformance/check.ts';
export { runtimeOn } from './runtime-on.ts';
export { scriptedTool, type ScriptedStep, type ScriptedTool } from './scripted-tool.ts';
export { storeConformance, type StoreCase, type StoreConformanceOptions } from './store-conformance.ts';
export type { StoreHarness } from './store-conformance/check.ts';
export { virtualRuntime, type VirtualRuntime, type VirtualRuntimeOptions } from './virtual-runtime.ts';
export { VirtualScheduler, type VirtualSchedulerOptions, type VirtualTask } from './virtual-scheduler.ts';
