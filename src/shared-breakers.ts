/** Breakers that are one in all processes of a store: `spillway/shared-breakers`. Given to `createSpillway`. */
export { sharedBreakers, type MakeSharedBreakers } from './layer/shared-breakers/registry.ts';
