import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type BreakerStateName } from 'spillway';
import { prometheusSink, type PrometheusSink } from 'spillway/sinks/prometheus';
import { virtualRuntime } from 'spillway/testing';
import { layerOf, notFound, reset, stepped } from './kit.ts';
import { promtool } from './promtool.ts';

const series = async (sink: PrometheusSink): Promise<Map<string, number>> =>
  new Map(
    (await sink.text())
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
const changed = (before: Map<string, number>, after: Map<string, number>): Record<string, number> =>
  Object.fromEntries(
    [...after]
      .filter(([name, value]) => !/_bucket|_sum/.test(name) && before.get(name) !== value)
      .map(([name, value]) => [name.replace('spillway_', ''), value]),
  );

describe('R-7.5 Prometheus text', () => {
  it('R-7.5 what the layer says of a tool goes before what was handed in, by its defaults and code', async () => {
    const refunded = tool({ name: 'refunded', execute: () => 1, compensate: () => undefined });
    const booked = tool({ name: 'booked', execute: () => 1 });
    const seen = tool({ name: 'seen', policy: { effects: 'read', breaker: {} }, execute: () => 1 });
    const tools = [refunded, booked, seen];
    const spillway = createSpillway({
      tools,
      defaults: { effects: 'mutating', breaker: false, dedupe: { leaseMs: 5_000 } },
    });
    const alone = prometheusSink({ tools: ['refunded', 'booked', 'seen', 'planned'] });
    spillway.trace$.subscribe(alone);
    const planned = tool({ name: 'planned', policy: { effects: 'mutating' }, execute: () => 1 });
    await lastValueFrom(spillway.turn(plan().call('a', planned, undefined)));
    const told = await series(alone);
    const of = (start: string): string[] =>
      [...told].flatMap(([name, value]) => (name.startsWith(start) && value === 1 ? [name] : []));
    expect(of('spillway_tool_info')).toEqual([
      'spillway_tool_info{tool="refunded",effects="mutating"}',
      'spillway_tool_info{tool="booked",effects="mutating"}',
      'spillway_tool_info{tool="seen",effects="read"}',
      'spillway_tool_info{tool="planned",effects="mutating"}',
    ]);
    expect(of('spillway_tool_circuit_breaker_state{tool="booked"')).toEqual([
      'spillway_tool_circuit_breaker_state{tool="booked",state="disabled"}',
    ]);
    expect(of('spillway_tool_circuit_breaker_state{tool="seen"')).toEqual([
      'spillway_tool_circuit_breaker_state{tool="seen",state="closed"}',
    ]);
    expect(told.get('spillway_tool_dedupe_ttl_seconds{tool="booked",state="inflight"}')).toBe(5);
  });

  it('R-7.5 every series of a registered tool is there from the start, and no other comes', async () => {
    const search = stepped('search', [
      () => {
        throw reset();
      },
      () => 'ok',
      () => {
        throw notFound();
      },
    ]);
    const layer = layerOf([search]);
    const sink = prometheusSink({ tools: [search], durationMs: true, runtime: layer.runtime });
    layer.spillway.trace$.subscribe(sink);
    const before = await series(sink);
    await layer.run({ toolName: 'search', session: 's' });
    await layer.run('search');
    await layer.run({ toolName: 'search', idempotencyKey: 'k' });
    await layer.run({ toolName: 'search', idempotencyKey: 'k' });
    const after = await series(sink);
    expect([...after.keys()]).toEqual([...before.keys()]);
    expect(changed(before, after)).toEqual({
      'tool_calls_total{tool="search",status="success",scope="session"}': 1,
      'tool_calls_total{tool="search",status="error",scope="global"}': 3,
      'tool_call_duration_seconds_count{tool="search",status="success"}': 1,
      'tool_call_duration_seconds_count{tool="search",status="error"}': 3,
      'tool_call_duration_ms_count{tool="search",status="success"}': 1,
      'tool_call_duration_ms_count{tool="search",status="error"}': 3,
      'tool_retry_attempts_total{tool="search",reason="transport_error"}': 1,
      'tool_errors_total{tool="search",error_type="transport_error"}': 1,
      'tool_errors_total{tool="search",error_type="execution_error"}': 2,
      'tool_idempotency_hits_total{tool="search",state="failed"}': 1,
      'tool_dedupe_steps_total{tool="search",step="claimed"}': 1,
      'tool_dedupe_steps_total{tool="search",step="recorded"}': 1,
      'tool_dedupe_steps_total{tool="search",step="replayed"}': 1,
    });
    expect(after.get('spillway_tool_call_duration_seconds_sum{tool="search",status="success"}')).toBeCloseTo(0.1);
    expect(after.get('spillway_tool_call_duration_ms_sum{tool="search",status="success"}')).toBeCloseTo(100);
    expect(after.get('spillway_tool_call_duration_seconds_bucket{tool="search",status="success",le="0.05"}')).toBe(0);
    expect(after.get('spillway_tool_call_duration_seconds_bucket{tool="search",status="success",le="0.25"}')).toBe(1);
    expect(after.has('spillway_tool_call_duration_ms_bucket{tool="search",status="success",le="2500.0"}')).toBe(true);
  });

  it('R-7.5 is clean for promtool but for the milliseconds that CLAW asks for', async () => {
    const odd = tool({ name: 'odd "name"\\\n{}', policy: { effects: 'mutating' }, execute: () => 1 });
    const make = (durationMs: boolean): PrometheusSink =>
      prometheusSink({
        tools: [odd, 'other'],
        durationMs,
        inspect: () => ({ store: { records: 3, byTool: { other: 2, unknown: 1 } } }),
      });
    expect(promtool(['check', 'metrics'], await make(false).text())).toEqual({ status: 0, said: '' });
    expect(promtool(['check', 'metrics'], await make(true).text()).said).toBe(
      'spillway_tool_call_duration_ms metric names should not contain abbreviated units',
    );
  });

  it('R-7.5 gauges: store, times to live, what a tool is', async () => {
    const book = tool({
      name: 'book',
      policy: { effects: 'mutating', dedupe: { doneTtlMs: 60_000 } },
      execute: () => 1,
    });
    const text = await prometheusSink({
      tools: [book, 'search'],
      prefix: 'openclaw',
      inspect: async () => ({ store: { records: 3, byTool: { book: 2, unknown: 1 } } }),
    }).text();
    for (const line of [
      'openclaw_tool_dedupe_cache_size{tool="__all__",scope="all"} 3',
      'openclaw_tool_dedupe_cache_size{tool="book",scope="session"} 2',
      'openclaw_tool_dedupe_ttl_seconds{tool="book",state="done"} 60',
      'openclaw_tool_dedupe_ttl_seconds{tool="book",state="failed"} 300',
      'openclaw_tool_dedupe_ttl_seconds{tool="search",state="inflight"} 120',
      'openclaw_tool_info{tool="book",effects="mutating"} 1',
      'openclaw_tool_info{tool="search",effects="read"} 1',
      'openclaw_store_available 1',
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).not.toContain('unknown"');
  });

  it('R-7.5 a store that does not answer, or throws, leaves its size out', async () => {
    const runtime = virtualRuntime();
    const hanging = prometheusSink({ tools: ['a'], runtime, inspect: () => new Promise(() => undefined) }).text();
    await runtime.advance(1_000);
    expect(await hanging).not.toContain('cache_size');
    expect(
      await prometheusSink({
        tools: ['a'],
        inspect: () => {
          throw new Error('lost');
        },
      }).text(),
    ).not.toContain('cache_size');
  });

  it('R-7.5 the breaker’s state is that of the worst tenant, and forgotten with its breaker', async () => {
    const sink = prometheusSink({ tools: ['search', { name: 'bare', policy: { breaker: false } }] });
    const at = { source: 'layer', seq: 1, atMs: 0, toolName: 'search' } as const;
    const state = async (toolName = 'search'): Promise<string | undefined> =>
      [...(await series(sink))]
        .find(
          ([name, value]) => name.startsWith(`spillway_tool_circuit_breaker_state{tool="${toolName}"`) && value === 1,
        )?.[0]
        .match(/state="(\w+)"/)?.[1];
    expect([await state(), await state('bare')]).toEqual(['closed', 'disabled']);
    sink.next({ ...at, type: 'breaker_changed', from: 'closed', to: 'open', scope: 'a', message: '' });
    sink.next({ ...at, type: 'breaker_changed', from: 'open', to: 'half_open', scope: 'b', message: '' });
    expect(await state()).toBe('open');
    sink.next({ ...at, type: 'breaker_evicted', scope: 'a' });
    expect(await state()).toBe('half_open');
    sink.next({ ...at, type: 'breaker_changed', from: 'half_open', to: 'closed', scope: 'b', message: '' });
    expect(await state()).toBe('closed');
    // Its tenants come and go, and leave nothing behind that would fill it.
    for (let n = 0; n < 10_100; n++)
      for (const to of ['open', 'closed'] as const)
        sink.next({ ...at, type: 'breaker_changed', from: 'closed', to, scope: 'a', message: '' });
    sink.next({ ...at, type: 'breaker_changed', from: 'closed', to: 'forced_open', scope: 'a', message: '' });
    expect(await state()).toBe('forced_open');
    sink.next({ source: 'layer', type: 'store_changed', seq: 1, atMs: 0, state: 'lost', message: '' });
    expect((await series(sink)).get('spillway_store_available')).toBe(0);
  });

  it('R-7.5 the breakers of tools that are not listed are told apart: one closes, another stays open', async () => {
    const sink = prometheusSink({ tools: ['search'] });
    const change = (toolName: string, from: BreakerStateName, to: BreakerStateName): void =>
      sink.next({
        source: 'layer',
        seq: 1,
        atMs: 0,
        type: 'breaker_changed',
        toolName,
        from,
        to,
        scope: '',
        message: '',
      });
    const open = 'spillway_tool_circuit_breaker_state{tool="__other__",state="open"}';
    change('one', 'closed', 'open');
    change('two', 'closed', 'open');
    change('two', 'open', 'closed');
    expect((await series(sink)).get(open)).toBe(1);
    sink.next({ source: 'layer', seq: 1, atMs: 0, type: 'breaker_evicted', toolName: 'two', scope: '' });
    expect((await series(sink)).get(open)).toBe(1);
    sink.next({ source: 'layer', seq: 1, atMs: 0, type: 'breaker_evicted', toolName: 'one', scope: '' });
    expect((await series(sink)).get(open)).toBe(0);
  });

  it('R-7.5 a scrape that inspects the layer sees that a cooldown has passed', async () => {
    const down = stepped(
      'down',
      [
        () => {
          throw reset();
        },
      ],
      { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } },
    );
    const layer = layerOf([down]);
    const sink = prometheusSink({ tools: [down], inspect: () => layer.spillway.inspect() });
    layer.spillway.trace$.subscribe(sink);
    await layer.run('down', 0);
    expect((await series(sink)).get('spillway_tool_circuit_breaker_state{tool="down",state="open"}')).toBe(1);
    await layer.runtime.advance(30_000);
    expect((await series(sink)).get('spillway_tool_circuit_breaker_state{tool="down",state="half_open"}')).toBe(1);
  });

  it('R-7.5 an alternative’s answer counts for the tool that was asked for', async () => {
    const spare = stepped('spare', [() => 'ok']);
    const down = stepped(
      'down',
      [
        () => {
          throw notFound();
        },
      ],
      { alternatives: ['spare'] },
    );
    const layer = layerOf([down, spare]);
    const sink = prometheusSink({ tools: [down, spare], runtime: layer.runtime });
    layer.spillway.trace$.subscribe(sink);
    await layer.run('down');
    const now = await series(sink);
    expect(now.get('spillway_tool_calls_total{tool="down",status="success",scope="global"}')).toBe(1);
    expect(now.get('spillway_tool_calls_total{tool="spare",status="success",scope="global"}')).toBe(0);
  });

  it('R-7.5 an abandoned call is counted as such', async () => {
    const layer = layerOf([stepped('slow', [() => new Promise(() => undefined)])]);
    const sink = prometheusSink({ tools: ['slow'], runtime: layer.runtime });
    layer.spillway.trace$.subscribe(sink);
    layer.spillway.call({ toolName: 'slow' }).subscribe().unsubscribe();
    expect((await series(sink)).get('spillway_tool_calls_total{tool="slow",status="abandoned",scope="global"}')).toBe(
      1,
    );
  });

  it.each([
    [{ tools: 'search' }, 'tools must be a list'],
    [{ tools: [{}] }, 'tools must be tools with a name, or names'],
    [{ tools: [], prefix: '1x' }, 'prefix must be 1 to 64 letters'],
    [{ tools: [], inspectTimeoutMs: 0 }, 'inspectTimeoutMs must be a duration above 0'],
    [{ tools: [], buckets: [] }, 'prometheusSink has no option "buckets"'],
  ])('R-2.9 refuses %j', (options, message) => {
    expect(() => prometheusSink(options as never)).toThrow(message);
  });
});
