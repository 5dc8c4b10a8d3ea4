export { runtimeOn } from './runtime-on.ts';
export { scriptedTool, type ScriptedStep, type ScriptedTool } from './scripted-tool.ts';
export { virtualRuntime, type VirtualRuntime, type VirtualRuntimeOptions } from './virtual-runtime.ts';
export { VirtualScheduler, type VirtualSchedulerOptions, type VirtualTask } from './virtual-scheduler.ts';
