import { testsThatImport } from './imports.ts';

/** Test files that take over fifteen seconds each: engines, kills, browsers, compilers, and thousands of scenarios. */
const SLOW = [
  'test/call/idempotency-{killed,leases,life,races,redis-faults}.test.ts',
  'test/cli/{ends-early,fleet,fleet-restate,lock,readme}.test.ts',
  'test/explore/{explore,fuzz,pasted,planted,traps}.test.ts',
  'test/fleet/undoing-deaths.test.ts',
  'test/gate/{processes,redis-lost}.test.ts',
  'test/gateway/anthropic/load.test.ts',
  'test/inspect/{countdown,marble-test,page,page-gaps,page-size}.test.ts',
  'test/laws/{call,operators,turn}.test.ts',
  'test/mcp-proxy/{approvals,conformance,cost,faults,payments}.test.ts',
  'test/package/{newcomer,package}.test.ts',
  'test/providers/mcp/client-conformance.test.ts',
  'test/saga/{compensate-faults,processes,resume-both}.test.ts',
  'test/simulate/{command,gallery,replay/{coverage,each-field,inspected,seeds,waits,what-if},storm/published}.test.ts',
  'test/simulation/simulation.test.ts',
  'test/soak/bank/bank.test.ts',
  'test/turn/scale.test.ts',
] as const;

/** Fleets of processes on real engines, held to limits of time: one file after another, with the machine to itself. */
export const ENGINE_TESTS: readonly string[] = [
  'test/fleet/{bullmq,restate}/conformance.test.ts',
  'test/fleet/restate/cluster.test.ts',
];

/**
 * What `npm run test:long` runs and `npm test` leaves out, as patterns from the root: the slow ones, and those that
 * first install what the main install leaves out, which is a gigabyte of other people's frameworks. CI runs both.
 */
export const longTests = (root: string): string[] => [...SLOW, ...testsThatImport(root, ['test/side-install.ts'])];
