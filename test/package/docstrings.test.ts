import { beforeAll, describe, expect, it } from 'vitest';
import { publicDeclarations, type Documented } from './undocumented.ts';

/** The folders whose public symbols anybody meets who makes calls; all else is an edge. */
const CORE = /^src\/(?:[^/]+\.ts$|(?:contract|errors|policy|operators|layer|call|turn|operate)\/)/;

/**
 * How many public symbols and members a file may still leave without a docstring: a ratchet, so numbers only go down.
 * A file that is not listed may leave none.
 */
const CORE_LEFT: Readonly<Record<string, number>> = {};
const EDGES_LEFT: Readonly<Record<string, number>> = {
  'src/adapters/harvest.ts': 3,
  'src/adapters/langchain.ts': 3,
  'src/adapters/langchain/resume.ts': 4,
  'src/adapters/tool-failure.ts': 2,
  'src/agent/ai-sdk.ts': 19,
  'src/agent/anthropic.ts': 6,
  'src/agent/event.ts': 43,
  'src/agent/loop/agent.ts': 4,
  'src/agent/loop/kept-outputs.ts': 1,
  'src/agent/loop/limits.ts': 2,
  'src/agent/loop/tool-step.ts': 2,
  'src/agent/loop/transcript.ts': 5,
  'src/agent/message.ts': 18,
  'src/agent/model.ts': 25,
  'src/agent/scripted.ts': 10,
  'src/gateway/admin-server.ts': 3,
  'src/gateway/admin.ts': 16,
  'src/gateway/admin/refusal.ts': 7,
  'src/gateway/anthropic-server.ts': 2,
  'src/gateway/anthropic/options.ts': 5,
  'src/gateway/anthropic/report.ts': 2,
  'src/gateway/conversation-do.ts': 6,
  'src/gateway/conversation-redis.ts': 5,
  'src/gateway/conversation-remote.ts': 7,
  'src/gateway/conversation/client.ts': 4,
  'src/gateway/conversation/memory.ts': 2,
  'src/gateway/wire/error.ts': 2,
  'src/gateway/wire/rate.ts': 1,
  'src/providers/mcp-http.ts': 2,
  'src/providers/mcp-stdio.ts': 5,
  'src/providers/mcp.ts': 3,
  'src/providers/mcp/client.ts': 15,
  'src/providers/mcp/tool-list.ts': 2,
  'src/providers/rest.ts': 1,
  'src/providers/rest/manifest.ts': 1,
  'src/providers/router.ts': 2,
  'src/sinks/buffered.ts': 2,
  'src/sinks/ndjson.ts': 5,
  'src/sinks/ndjson/read.ts': 2,
  'src/sinks/opentelemetry.ts': 2,
  'src/sinks/opentelemetry/api.ts': 64,
  'src/sinks/opentelemetry/tools.ts': 4,
  'src/sinks/pino.ts': 17,
  'src/sinks/prometheus.ts': 3,
  'src/sinks/prometheus/tool-meters.ts': 12,
  'src/sinks/sink.ts': 1,
  'src/sinks/tool-metrics.ts': 9,
  'src/sinks/turn-trace.ts': 7,
  'src/stores/memory.ts': 2,
  'src/stores/redis.ts': 2,
  'src/stores/redis/client.ts': 16,
  'src/stores/sqlite.ts': 1,
  'src/testing/provider-conformance.ts': 2,
  'src/testing/provider-conformance/check.ts': 16,
  'src/testing/scripted-tool.ts': 4,
  'src/testing/store-conformance.ts': 2,
  'src/testing/virtual-runtime.ts': 1,
  'src/testing/virtual-scheduler.ts': 4,
};

/** `file:line symbol.member` of what lacks a docstring, in files that leave more of them than they may. */
const missing = (all: readonly Documented[], left: Readonly<Record<string, number>>): string[] => {
  const files = Map.groupBy(all.filter(({ docstring }) => docstring === ''), ({ file }) => file);
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
      'createSpillway', 'SpillwayOptions.tools', 'ToolExecutionError.kind', 'ToolEvent.toolName', 'PrometheusSink.next',
      'ToolCallEnvelope.requestId', 'redisStore', 'RedisStoreOptions.runtime', 'DurableObjectStubLike.method',
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
