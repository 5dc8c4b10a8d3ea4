/**
 * What a person asks of a layer and is told, for whoever writes an admin page or a job: `spillway/operate`. The
 * questions themselves are methods of `Spillway`; what was learnt from calls is loaded and saved here, and a store is
 * said to be one of several processes.
 */
export type { BreakerEntry, BreakerOrder, Breakers } from './layer/breakers.ts';
export type { BreakerReport, Flush, LayerReport, ToolReport } from './operate/inspection.ts';
export type { BreakerTarget, OrderReport } from './operate/orders.ts';
export { loadExperience, saveExperience } from './layer/stored-experience.ts';
export type { ResumeOptions, ResumedTurn } from './saga/resume.ts';
export { acrossProcesses } from './stores/across-processes.ts';
