/**
 * Where the tests of a part of the source are: those that should notice first, and those beside them. Paths as Vitest
 * filters them.
 */
export interface Area {
  readonly near: readonly string[];
  readonly far: readonly string[];
  /** Whether the simulation goes through it. */
  readonly simulated: boolean;
}

/** By the folder of the source. */
const AREAS: Readonly<Record<string, Area>> = {
  policy: {
    near: ['test/policy', 'test/laws', 'test/operators'],
    far: ['test/spec', 'test/call', 'test/turn', 'test/regressions', 'test/agent'],
    simulated: true,
  },
  errors: {
    near: ['test/errors', 'test/policy'],
    far: ['test/providers', 'test/operators', 'test/spec', 'test/regressions', 'test/agent'],
    simulated: false,
  },
  operators: {
    near: ['test/operators', 'test/laws'],
    far: ['test/call', 'test/layer', 'test/turn', 'test/spec', 'test/regressions'],
    simulated: true,
  },
  layer: {
    near: ['test/layer', 'test/laws'],
    far: ['test/call', 'test/turn', 'test/spec', 'test/regressions'],
    simulated: true,
  },
  call: {
    near: ['test/call', 'test/laws'],
    far: ['test/turn', 'test/layer', 'test/spec', 'test/regressions', 'test/agent'],
    simulated: true,
  },
  turn: {
    near: ['test/turn', 'test/laws'],
    far: ['test/call', 'test/spec', 'test/regressions', 'test/agent'],
    simulated: true,
  },
  stores: { near: ['test/stores'], far: ['test/call/idempotency', 'test/spec', 'test/regressions'], simulated: true },
  agent: { near: ['test/agent'], far: ['test/regressions', 'test/adapters'], simulated: false },
  saga: { near: ['test/saga', 'test/regressions/undo'], far: ['test/turn', 'test/regressions'], simulated: false },
  gate: {
    near: [
      'test/regressions/inputs-changed',
      'test/gate/approvals',
      'test/gate/budget.test',
      'test/gate/one-effect',
      'test/gate/questions',
    ],
    far: ['test/gate', 'test/regressions', 'test/adapters'],
    simulated: false,
  },
  adapters: {
    near: ['test/adapters/guarded-calls', 'test/adapters/mcp', 'test/regressions/payments-of-guarded-tools'],
    far: ['test/adapters', 'test/regressions'],
    simulated: false,
  },
  providers: { near: ['test/regressions/mcp-tools'], far: ['test/providers', 'test/mcp-proxy'], simulated: false },
  gateway: { near: ['test/gateway'], far: ['test/regressions', 'test/cli'], simulated: false },
};

/**
 * Tests of load, of processes that are killed and of whole frameworks: minutes each, and no mutant is theirs alone to
 * notice.
 */
export const LEFT_OUT: readonly string[] = [
  'test/call/idempotency-killed.test.ts',
  'test/call/idempotency-redis-faults.test.ts',
  'test/turn/scale.test.ts',
  'test/gateway/anthropic/load.test.ts',
  'test/simulation/**',
  'test/soak/**',
];

/** Properties over thousands of cases, and whole worlds: asked when the quick ones have noticed nothing. */
export const SLOW: readonly string[] = [
  'test/laws/breaker.test.ts',
  'test/laws/call.test.ts',
  'test/laws/operators.test.ts',
  'test/laws/turn.test.ts',
  'test/laws/retry-budget.test.ts',
  'test/policy/key-property.test.ts',
  'test/errors/hostile.test.ts',
];

/** Of files whose tests have a place of their own: where, instead of the area's. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  'operators/dedupe/stand-ins.ts': ['test/regressions/stand-ins'],
  'policy/mcp-hints.ts': ['test/regressions/mcp-tools', 'test/policy'],
  'call/attempt/after-crash.ts': [
    'test/regressions/stores-lost',
    'test/regressions/stand-ins',
    'test/regressions/doubt',
    'test/call/verify',
  ],
  'operators/dedupe/key-acquisition.ts': [
    'test/operators/dedupe',
    'test/regressions/stores-lost',
    'test/call/idempotency',
    'test/call/verify',
  ],
  'operators/dedupe/idempotent.ts': ['test/operators/dedupe', 'test/call/idempotency'],
  'layer/shared-breakers/breaker.ts': ['test/regressions/shared-breakers'],
  'policy/retry/budget.ts': ['test/laws/retry-budget'],
  'policy/breaker/outcome.ts': ['test/call/breaker-outcome', 'test/operators'],
  'policy/model-text.ts': ['test/agent/results', 'test/agent/transcript'],
  'policy/recovery/escalation.ts': ['test/call/error-handler'],
  'policy/profile.ts': ['test/policy', 'test/call/profile', 'test/call/idempotency-ttl'],
  'stores/memory/deadlines.ts': ['test/stores/memory'],
  'stores/memory/records.ts': ['test/stores/memory', 'test/stores/conformance'],
  'stores/memory.ts': ['test/stores/memory', 'test/stores/conformance'],
  'stores/record-life.ts': ['test/stores/memory', 'test/stores/conformance'],
  'stores/redis/scripts.ts': [
    'test/stores/redis/conformance',
    'test/stores/redis/failures',
    'test/stores/redis/resent',
  ],
  'stores/redis/replicas.ts': ['test/stores/redis/failures', 'test/stores/redis/report'],
  'stores/redis/names.ts': ['test/stores/redis/conformance', 'test/stores/redis/cluster'],
  'stores/sqlite/records.ts': ['test/stores/conformance', 'test/stores/sqlite'],
};
const withOwn = new Map<string, Area>();

/** @param file a path under `src/` */
export function areaOf(file: string): Area {
  const area = AREAS[file.split('/', 1)[0] ?? ''];
  if (area === undefined) throw new RangeError(`no tests are known for src/${file}; add its folder to AREAS`);
  const own = OWN[file];
  if (own === undefined) return area;
  const known = withOwn.get(file) ?? { ...area, near: own, far: [...area.near, ...area.far] };
  withOwn.set(file, known);
  return known;
}
