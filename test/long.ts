import { testsThatImport } from './imports.ts';

/** What takes ten seconds and more, of a processor or a clock: engines, kills, compilers, thousands of scenarios. */
const SLOW = [
  'test/agent/anthropic-transcripts.test.ts',
  'test/call/idempotency-{killed,leases,life,races,redis-faults}.test.ts',
  'test/cli/{ends-early,fleet,fleet-restate,lock,login,readme,secrets}.test.ts',
  'test/explore/{explore,fuzz,pasted,planted,traps}.test.ts',
  'test/fleet/{payments-under-faults,undoing-deaths}.test.ts',
  'test/gate/{processes,redis-lost}.test.ts',
  'test/gateway/anthropic/load.test.ts',
  'test/inspect/marble-test.test.ts',
  'test/laws/*.test.ts',
  'test/mcp-proxy/{approvals,conformance,cost,faults,payments,store}.test.ts',
  'test/package/{api,llms,newcomer,package}.test.ts',
  'test/policy/key-property.test.ts',
  'test/providers/mcp/client-conformance.test.ts',
  'test/regressions/{shared-breakers-redis,terminal-escapes}.test.ts',
  'test/saga/{compensate-faults,deaths/some-boundaries,processes,resume-both}.test.ts',
  'test/simulate/replay/{coverage,each-field,seeds,waits,what-if}.test.ts',
  'test/simulate/{command,gallery,inputs,storm/*}.test.ts',
  'test/simulation/simulation.test.ts',
  'test/sinks/{fleet-rules,prometheus-size}.test.ts',
  'test/soak/{bank/bank,soak}.test.ts',
  'test/stores/redis/report.test.ts',
  'test/turn/scale.test.ts',
] as const;

/** Fleets of processes on real engines, held to limits of time: one file after another, with the machine to itself. */
export const ENGINE_TESTS: readonly string[] = [
  'test/fleet/{bullmq,restate}/conformance.test.ts',
  'test/fleet/restate/cluster.test.ts',
];

/** What starts a browser or a server of metrics, or first installs a gigabyte of other people's frameworks. */
const HEAVY = ['test/inspect/browser.ts', 'test/side-install.ts', 'test/sinks/prometheus-server.ts'] as const;

/**
 * What `npm run test:long` runs and `npm test` leaves out, as patterns from the root, so that what every change must
 * pass takes under four minutes on two cores. CI runs both.
 */
export const longTests = (root: string): string[] => [...SLOW, ...testsThatImport(root, HEAVY)];
