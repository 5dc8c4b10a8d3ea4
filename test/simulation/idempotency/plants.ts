import type { Plant } from '../plant.ts';

const scenario = 'idempotency';

/**
 * What goes wrong with keys, in the store of this package or in what asks it. Every one was a real bug of some library,
 * or of ours.
 */
export const KEY_PLANTS: Readonly<Record<string, Plant>> = {
  'reclaim of a live record': {
    scenario,
    file: 'stores/record-life.ts',
    find: 'return record.version === over && !runs(record, atMs);',
    replace: 'return record.version === over;',
    seeds: 20_000,
    by: ['IDEM-1', 'IDEM-2', 'IDEM-6'],
  },
  'a claim that looks at no record': {
    scenario,
    file: 'stores/record-life.ts',
    find: 'return record.version === over && !runs(record, atMs);',
    replace: 'return true;',
    seeds: 500,
    by: ['IDEM-1', 'IDEM-2', 'IDEM-4', 'IDEM-6'],
  },
  'completion without owner token': {
    scenario,
    file: 'stores/memory.ts',
    find: 'if (entry?.record.version !== of) return undefined;',
    replace:
      "if (entry === undefined || (entry.record.version !== of && entry.record.state !== 'inflight')) return undefined;",
    seeds: 20_000,
    by: ['IDEM-3', 'IDEM-6'],
  },
  'a late completion overwrites a newer one': {
    scenario,
    file: 'stores/memory.ts',
    find: 'if (entry?.record.version !== of) return undefined;',
    replace:
      "if (entry === undefined || (entry.record.version !== of && entry.record.state === 'inflight')) return undefined;",
    seeds: 20_000,
    by: ['IDEM-3', 'IDEM-4', 'IDEM-6'],
  },
  'an attempt outlives its lease': {
    scenario,
    file: 'operators/dedupe/idempotent.ts',
    find: 'map((error) => run.lost(error)),',
    replace: 'map((error) => void run.lost(error)),',
    seeds: 2_000,
    by: ['TO-1', 'IDEM-1'],
  },
  'a renewal is never sent': {
    scenario,
    file: 'operators/dedupe/lease.ts',
    find: 'ask(question, Math.min(storeTimeoutMs, leftMs), runtime, answered)',
    replace: 'ask(() => true, Math.min(storeTimeoutMs, leftMs), runtime, answered)',
    seeds: 500,
    by: ['TO-1', 'IDEM-1', 'IDEM-2'],
  },
  'a lease counted from its answer': {
    scenario,
    file: 'operators/dedupe/key-acquisition.ts',
    find: 'new Lease(record, sentAtMs, terms',
    replace: 'new Lease(record, runtime.now(), terms',
    seeds: 5_000,
    by: ['TO-1', 'IDEM-1', 'IDEM-2'],
  },
  'no margin for clocks that run apart': {
    scenario,
    file: 'operators/dedupe/lease.ts',
    find: 'const MARGIN = 0.05;',
    replace: 'const MARGIN = 0;',
    // About one seed in 4,000 shows it.
    seeds: 30_000,
    by: ['TO-1', 'IDEM-1', 'IDEM-2'],
  },
  'a result crosses tenants': {
    scenario,
    file: 'policy/key/call-key.ts',
    find: 'scope, tenantId, namespace,',
    replace: 'scope, namespace,',
    and: { file: 'policy/key/claim.ts', find: 'one.tenantId === other.tenantId && (', replace: '(' },
    seeds: 500,
    by: ['IDEM-8'],
  },
  'the tenant is no part of the key': {
    scenario,
    file: 'policy/key/call-key.ts',
    find: 'scope, tenantId, namespace,',
    replace: 'scope, namespace,',
    seeds: 500,
    by: ['IDEM-7'],
  },
  'no look at the input': {
    scenario,
    file: 'policy/key/claim.ts',
    find: 'if (!own || record.request.paramsDigest !== request.paramsDigest)',
    replace: 'if (!own)',
    seeds: 500,
    by: ['IDEM-7'],
  },
  'a rejected duplicate frees the key': {
    scenario,
    file: 'operators/dedupe/key-acquisition.ts',
    find: 'KEY_REFUSALS[decision.because](reading);',
    replace: 'KEY_REFUSALS[decision.because](reading); void terms.store.delete(key, reading.record.version);',
    seeds: 500,
    by: ['IDEM-1', 'IDEM-2', 'IDEM-3', 'IDEM-5', 'IDEM-4'],
  },
  'an attempt without a valid lease': {
    scenario,
    file: 'call/attempt/retries.ts',
    find: 'if (context.isOver || !mayAct(context)) return NEVER;',
    replace: 'if (context.isOver) return NEVER;',
    and: { file: 'call/attempt/retries.ts', find: 'if (!mayAct(context) || ', replace: 'if (' },
    seeds: 5_000,
    by: ['IDEM-2'],
  },
  'a released takeover leaves no trace': {
    scenario,
    file: 'operators/dedupe/lease.ts',
    find: 'this.tookOver ? store.renew(key, version, AT_ONCE_MS) : store.delete(key, version)',
    replace: 'store.delete(key, version)',
    seeds: 50_000,
    by: ['IDEM-5'],
  },
  // Each of its double effects follows a takeover, which tells of what ran before it and of nothing after. Without
  // faults no lease lives to be renewed.
  'a takeover that was renewed keeps no record': {
    scenario,
    file: 'operators/dedupe/lease.ts',
    find: '    this.#unanswered = undefined;\n    this.#validUntilMs = ',
    replace:
      'if (this.tookOver) { const { store } = this.#terms; this.#terms = { ...this.#terms, store: { ...store, compareAndSet: (key, version) => store.delete(key, version) as never } }; } this.#unanswered = undefined; this.#validUntilMs = ',
    seeds: 5_000,
    by: ['IDEM-5'],
  },
  'an alternative for an uncertain mutation, under a key': {
    scenario,
    file: 'policy/recovery/decide.ts',
    find: 'const mayUseAlternative = !mayBeDoneElsewhere(failure) && ',
    replace: 'const mayUseAlternative = ',
    seeds: 5_000,
    by: ['IDEM-5'],
  },
  'what a breaker refused is recorded': {
    scenario,
    file: 'call/replay.ts',
    find: "if ((attempts === 0 && result?.verified !== 'done') ||",
    replace: "if ((attempts === 0 && kind !== 'circuit_open') ||",
    seeds: 5_000,
    by: ['IDEM-4'],
  },
  'a canceled call frees its key': {
    scenario,
    file: 'call/replay.ts',
    find: "if (kind === 'canceled') {",
    replace: "if (kind === 'canceled') return undefined; if (kind === 'timeout') {",
    seeds: 5_000,
    by: ['IDEM-5'],
  },
  'a follower gets what is there': {
    scenario,
    file: 'policy/key/claim.ts',
    find: "return mode === 'enforced' ? { act: 'wait' }",
    replace: "return mode === 'enforced' ? { act: 'replay' }",
    seeds: 500,
    by: ['IDEM-4', 'RES-3', 'TRC-2'],
  },
};
