export { runtimeOn } from './runtime-on.ts';
