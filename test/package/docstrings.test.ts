import { beforeAll, describe, expect, it } from 'vitest';
import { publicDeclarations, type Documented } from './undocumented.ts';

/** The folders whose public symbols anybody meets who makes calls; all else is an edge. */
const CORE = /^src\/(?:[^/]+\.ts$|(?:contract|errors|policy|operators|layer|call|turn|operate)\/)/;

/**
 * How many public symbols and members a file may still leave without a docstring: a ratchet, so numbers only go down.
 * A file that is not listed may leave none.
 */
const CORE_LEFT: Readonly<Record<string, number>> = {};
const EDGES_LEFT: Readonly<Record<string, number>> = {};

/** `file:line symbol.member` of what lacks a docstring, in files that leave more of them than they may. */
const missing = (all: readonly Documented[], left: Readonly<Record<string, number>>): string[] => {
  const files = Map.groupBy(
    all.filter(({ docstring }) => docstring === ''),
    ({ file }) => file,
  );
  return [...files]
    .filter(([file, found]) => found.length > (left[file] ?? 0))
    .flatMap(([, found]) => found.map(({ file, line, name }) => `${file}:${line} ${name}`))
    .toSorted();
};

describe('every public symbol, and every member of a public type, has a docstring', () => {
  let all: readonly Documented[] = [];
  beforeAll(() => {
    all = publicDeclarations();
  });
  const why = 'say in a sentence what it is for: shape, unit, default and its source, when it is emitted, errors';

  it('finds exports, re-exports, inherited members, arms of unions, inline options and members of schemas', () => {
    const names = new Set(all.map(({ name }) => name));
    const known = [
      'createSpillway',
      'SpillwayOptions.tools',
      'ToolExecutionError.kind',
      'ToolEvent.toolName',
      'PrometheusSink.next',
      'ToolCallEnvelope.requestId',
      'redisStore',
      'RedisStoreOptions.runtime',
      'DurableObjectStubLike.method',
    ];
    expect(known.filter((name) => !names.has(name))).toEqual([]);
  });

  it('core: the root, contract, errors, policy, operators, layer, call, turn, operate', () => {
    const core = all.filter(({ file }) => CORE.test(file));
    expect(core.length).toBeGreaterThan(500);
    expect(missing(core, CORE_LEFT), why).toEqual([]);
  });

  it('edges: providers, adapters, agent, stores, sinks, gateway, testing, formats', () => {
    const edges = all.filter(({ file }) => !CORE.test(file));
    expect(edges.length).toBeGreaterThan(500);
    expect(missing(edges, EDGES_LEFT), why).toEqual([]);
  });
});
