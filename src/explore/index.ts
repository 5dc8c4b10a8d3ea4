export { exploreFaults, type Exploration } from './explore.ts';
export type { Finding } from './finding.ts';
export type { FindingKind } from './judge.ts';
export { FAULTS, type Act, type Fault, type Schedule, type Strike } from './schedule.ts';
export type { ExploreOptions, ExploredLayer, ExploredTools } from './setup.ts';
export type { World } from './world.ts';
