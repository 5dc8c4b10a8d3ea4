import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type ToolPolicy, type TraceEvent } from 'spillway';
import { pinoSink } from 'spillway/sinks/pino';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toolMetrics } from 'spillway/sinks/tool-metrics';
import { virtualRuntime } from 'spillway/testing';

const policy: ToolPolicy = {
  retry: { maxAttempts: 2, initialDelayMs: 100, jitterPercent: 0 },
  breaker: { failureThreshold: 3, cooldownMs: 30_000, successThreshold: 2 },
};

const world = () => {
  const runtime = virtualRuntime();
  const script: boolean[] = [];
  const unsteady = tool({
    name: 'unsteady',
    policy,
    execute: () => {
      if (script.shift() !== true) throw Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
      return 'ok';
    },
  });
  const spillway = createSpillway({ tools: [unsteady], runtime });
  const prometheus = prometheusSink({ tools: [unsteady], runtime, inspect: () => spillway.inspect() });
  const perTool = toolMetrics();
  const lines: Array<Readonly<Record<string, unknown>>> = [];
  const write = (fields: object): void => void lines.push({ ...fields });
  const events: TraceEvent[] = [];
  for (const sink of [
    prometheus,
    perTool,
    pinoSink({ info: write, warn: write, error: write }),
    { next: (event: TraceEvent) => events.push(event) },
  ])
    spillway.trace$.subscribe(sink);
  const call = async (outcomes: readonly boolean[] = []): Promise<string> => {
    script.push(...outcomes);
    const result = spillway.execute({ toolName: 'unsteady' });
    await runtime.advance(1_000);
    return (await result).status;
  };
  const value = async (series: string): Promise<number> => {
    const line = (await prometheus.text()).split('\n').find((candidate) => candidate.startsWith(`spillway_${series} `));
    return line === undefined ? NaN : Number(line.slice(line.lastIndexOf(' ')));
  };
  return { runtime, spillway, call, value, lines, events, perTool, prometheus };
};
const transition = (from: string, to: string): string =>
  `tool_circuit_breaker_transitions_total{tool="unsteady",from_state="${from}",to_state="${to}"}`;
const stateOf = (state: string): string => `tool_circuit_breaker_state{tool="unsteady",state="${state}"}`;

describe('TR-13 metrics are emitted for all transitions', () => {
  it('TR-13 success, retry, failure and open: counters, labels, states and transition logs', async () => {
    const { call, value, lines, perTool, runtime } = world();
    expect(await call([true])).toBe('success');
    expect(await call([false, true])).toBe('success');
    expect(await call([false, false])).toBe('retry_exhausted');
    expect(await call([false])).toBe('retriable_error');
    expect(await value(stateOf('open'))).toBe(1);
    expect(await call()).toBe('circuit_open');
    await runtime.advance(30_000);
    expect(await value(stateOf('half_open'))).toBe(1);
    // A probe fails: open again; two good ones close it.
    await call([false]);
    await runtime.advance(30_000);
    await call([true]);
    await call([true]);

    const counted = {
      [transition('closed', 'open')]: 1,
      [transition('open', 'half_open')]: 2,
      [transition('half_open', 'open')]: 1,
      [transition('half_open', 'closed')]: 1,
      [transition('open', 'closed')]: 0,
      'tool_calls_total{tool="unsteady",status="success",scope="global"}': 4,
      'tool_calls_total{tool="unsteady",status="retry_exhausted",scope="global"}': 1,
      'tool_calls_total{tool="unsteady",status="circuit_open",scope="global"}': 1,
      'tool_calls_total{tool="unsteady",status="retriable_error",scope="global"}': 2,
      'tool_retry_attempts_total{tool="unsteady",reason="transport_error"}': 2,
      'tool_errors_total{tool="unsteady",error_type="transport_error"}': 5,
      'tool_call_duration_seconds_count{tool="unsteady",status="success"}': 4,
      [stateOf('closed')]: 1,
      [stateOf('open')]: 0,
    };
    const found = Object.fromEntries(
      await Promise.all(Object.keys(counted).map(async (series) => [series, await value(series)] as const)),
    );
    expect(found).toEqual(counted);
    expect(perTool.get('unsteady')).toMatchObject({
      retry_count: 2,
      circuit_breaker_opens: 2,
      retry_success_rate: 0.5,
    });
    expect(lines.filter(({ event }) => event === 'tool_call_circuit_state').map(({ state }) => state)).toEqual([
      'open',
      'half_open',
      'open',
      'half_open',
      'closed',
    ]);
    expect(new Set(lines.map(({ event }) => event))).toEqual(
      new Set(['tool_call_start', 'tool_call_end', 'tool_call_blocked', 'tool_call_retry', 'tool_call_circuit_state']),
    );
  });

  it('TR-13 transitions by hand are counted like any other', async () => {
    const { spillway, value, call } = world();
    await call([true]);
    const breaker = spillway.breakers.get('unsteady');
    breaker.forceOpen();
    expect(await value(stateOf('forced_open'))).toBe(1);
    breaker.reset();
    breaker.disable();
    expect(await value(stateOf('disabled'))).toBe(1);
    for (const [from, to] of [
      ['closed', 'forced_open'],
      ['forced_open', 'closed'],
      ['closed', 'disabled'],
    ] as const)
      expect(await value(transition(from, to))).toBe(1);
  });

  it('TR-13 ten thousand invented tool names add no series', async () => {
    const { spillway, prometheus, perTool, runtime } = world();
    await spillway.execute({ toolName: 'first invention' });
    const names = async (): Promise<string[]> =>
      (await prometheus.text()).split('\n').map((line) => line.slice(0, line.lastIndexOf(' ')));
    const before = await names();
    const results = Array.from({ length: 10_000 }, (_, n) => spillway.execute({ toolName: `invented "${n}"\n` }));
    await runtime.advance(1);
    await Promise.all(results);
    expect(await names()).toEqual(before);
    expect((await prometheus.text()).split('\n')).toContain(
      'spillway_tool_calls_total{tool="__other__",status="error",scope="global"} 10001',
    );
    expect(Object.keys(perTool.all()).length).toBeLessThanOrEqual(1_001);
  });
});
