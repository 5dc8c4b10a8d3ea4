import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { plan, tool, type ToolPolicy } from 'spillway';
import { reset, stepped } from './kit.ts';
import { named, observed, type Observed, type Sdk, type SeenMetric } from './otel-kit.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
const scope = { name: 'spillway', version, schemaUrl: 'https://opentelemetry.io/schemas/1.45.0' };

const once: ToolPolicy = { effects: 'read', retry: { maxAttempts: 1 } };
const failing: ToolPolicy = { ...once, breaker: { failureThreshold: 2, failureRate: Infinity } };
const down = (): ReturnType<typeof stepped> =>
  stepped(
    'down',
    [
      () => {
        throw reset();
      },
    ],
    failing,
  );

const of = (metrics: readonly SeenMetric[], name: string): unknown[] | undefined =>
  metrics
    .find(({ descriptor }) => descriptor.name === name)
    ?.dataPoints.map(({ attributes, value }) => {
      const shown =
        typeof value === 'object'
          ? { count: (value as { count: number }).count, sum: (value as { sum: number }).sum }
          : { value };
      return { ...attributes, ...shown };
    });

const turn = (seen: Observed, made: Parameters<Observed['spillway']['turn']>[0]): Promise<void> =>
  new Promise((done) => {
    seen.spillway.turn(made).subscribe({ complete: done });
  });

/** Names of the GenAI conventions v0.1.0, whichever SDK records them. */
export function otelNamesSuite(sdk: () => Sdk): void {
  it('R-7.6 spans, metrics and log records say whose they are, in which version, by which schema', async () => {
    const seen = observed(sdk(), [down()], { tools: ['down'] });
    await seen.spillway.execute({ toolName: 'down' });
    await seen.spillway.execute({ toolName: 'down' });
    const [span] = named(seen.spans(), 'execute_tool down');
    expect(span?.instrumentationScope).toMatchObject(scope);
    expect(seen.logs()[0]?.instrumentationScope).toMatchObject(scope);
    expect(seen.meterScope()).toEqual(['spillway', version, { schemaUrl: scope.schemaUrl }]);
  });

  it('R-7.6 every counter and histogram has its unit', async () => {
    const seen = observed(sdk(), [down()], { tools: ['down'], inspect: () => ({ retriesLeft: 7, droppedEvents: 3 }) });
    await seen.spillway.execute({ toolName: 'down', idempotencyKey: 'k' });
    await seen.spillway.execute({ toolName: 'down' });
    await turn(seen, plan().call('a', down(), undefined));
    const metrics = await seen.metrics();
    const units = Object.fromEntries(metrics.map(({ descriptor }) => [descriptor.name, descriptor.unit]));
    expect(units).toMatchObject({
      'spillway.tool_calls': '{call}',
      'spillway.tool_call_duration': 's',
      'spillway.tool_errors': '{error}',
      'spillway.tool_dedupe_steps': '{step}',
      'spillway.tool_circuit_breaker_transitions': '{transition}',
      'spillway.turns': '{turn}',
      'spillway.turn_duration': 's',
      'spillway.turn_harvested': '1',
      'spillway.turn_nodes': '{node}',
      'spillway.tool_calls_in_flight': '{call}',
      'spillway.retry_budget_left': '{retry}',
      'spillway.trace_events_dropped': '{event}',
      'gen_ai.execute_tool.duration': 's',
      'gen_ai.invoke_agent.duration': 's',
      'gen_ai.invoke_agent.tool_calls': '{tool_call}',
    });
    expect(of(metrics, 'spillway.retry_budget_left')).toEqual([{ value: 7 }]);
    expect(of(metrics, 'spillway.trace_events_dropped')).toEqual([{ value: 3 }]);
    expect(of(metrics, 'spillway.tool_calls_in_flight')).toEqual([{ tool: 'down', value: 0 }]);
  });

  it('R-7.6 a turn is an agent’s invocation in the metrics, and named like one', async () => {
    const seen = observed(sdk(), [stepped('up', [() => 1]), down()], { tools: ['up', 'down'], workflowName: 'trip' });
    const half = plan()
      .call('a', stepped('up', [() => 1]), undefined)
      .call('b', down(), undefined, { optional: true });
    await turn(seen, half);
    await turn(seen, plan().call('b', down(), undefined));
    const metrics = await seen.metrics();
    const invoked = { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.agent.name': 'trip' };
    expect(of(metrics, 'gen_ai.invoke_agent.duration')).toMatchObject([
      { ...invoked, count: 1 },
      { ...invoked, 'error.type': 'escalated', count: 1 },
    ]);
    expect(of(metrics, 'gen_ai.invoke_agent.tool_calls')).toEqual([{ 'gen_ai.agent.name': 'trip', count: 2, sum: 3 }]);
    expect(of(metrics, 'spillway.turn_harvested')).toEqual([{ count: 2, sum: 0.5 }]);
    expect(of(metrics, 'spillway.turns')).toEqual([
      { status: 'partial', value: 1 },
      { status: 'escalated', value: 1 },
    ]);
    const tools = of(metrics, 'gen_ai.execute_tool.duration');
    expect(tools).toContainEqual(
      expect.objectContaining({ 'gen_ai.tool.name': 'up', 'gen_ai.agent.name': 'trip', count: 1 }),
    );
  });

  it('R-7.6 the duration of a call is of the tool that was asked for, whichever answered', async () => {
    const spare = stepped('spare', [() => 1], once);
    const asked = stepped('asked', [() => Promise.reject(reset())], { ...once, alternatives: ['spare'] });
    const seen = observed(sdk(), [asked, spare], {
      tools: ['asked', 'spare'],
      toolType: (name) => (name === 'asked' ? 'datastore' : 'function'),
    });
    expect(await seen.spillway.execute({ toolName: 'asked' })).toMatchObject({ status: 'success' });
    const own = { 'gen_ai.tool.name': 'asked', 'gen_ai.tool.type': 'datastore' };
    expect(named(seen.spans(), 'execute_tool asked')[0]?.attributes).toMatchObject(own);
    const durations = of(await seen.metrics(), 'gen_ai.execute_tool.duration');
    expect(durations).toEqual([{ ...own, count: 1, sum: expect.any(Number) as number }]);
  });

  it('R-7.6 a span tells what its tool is, and over which session of which transport', async () => {
    const own = tool({ name: 'own', description: 'Adds one.', policy: once, execute: () => 1 });
    const far = tool({ name: 'far.read', policy: once, execute: () => 1 });
    const listed = [{ name: 'far.read', description: 'Reads afar.' }];
    const mcp = { transport: 'tcp' as const, id: 's-1', protocolVersion: '2025-11-25' };
    const seen = observed(sdk(), [own, far], {
      tools: [own],
      providers: [{ tools: listed, mcp }],
      toolType: (name) => (name === 'far.read' ? 'datastore' : 'function'),
    });
    await seen.spillway.execute({ toolName: 'own' });
    await seen.spillway.execute({ toolName: 'far.read' });
    const [first] = named(seen.spans(), 'execute_tool own');
    const [second] = named(seen.spans(), 'execute_tool far.read');
    expect(first?.attributes).toMatchObject({ 'gen_ai.tool.type': 'function', 'gen_ai.tool.description': 'Adds one.' });
    expect(Object.keys(first?.attributes ?? {}).filter((name) => /^(?:mcp|network)\./.test(name))).toEqual([]);
    expect(second?.attributes).toMatchObject({
      'gen_ai.tool.type': 'datastore',
      'gen_ai.tool.description': 'Reads afar.',
      'mcp.method.name': 'tools/call',
      'mcp.session.id': 's-1',
      'mcp.protocol.version': '2025-11-25',
      'network.transport': 'tcp',
    });
  });

  it('R-7.6 a breaker that opens is a log record, and an event of the calls that it guards just then', async () => {
    const seen = observed(sdk(), [down(), stepped('up', [() => 1])]);
    await seen.spillway.execute({ toolName: 'down' });
    await seen.spillway.execute({ toolName: 'down' });
    await seen.spillway.execute({ toolName: 'down' });
    await seen.spillway.execute({ toolName: 'up' });
    const change = {
      'spillway.breaker.name': 'down',
      'spillway.breaker.from_state': 'closed',
      'spillway.breaker.to_state': 'open',
    };
    expect(seen.logs()).toMatchObject([
      {
        eventName: 'spillway.circuit_breaker.changed',
        severityNumber: 13,
        body: 'Circuit breaker opened for down',
        attributes: change,
      },
    ]);
    const events = seen
      .spans()
      .flatMap(({ name, events: told }) => told.map((event) => [name, event.name, event.attributes]));
    expect(events).toEqual([['execute_tool down', 'spillway.circuit_breaker.changed', change]]);
    const opened = named(seen.spans(), 'execute_tool down').map(({ events: told }) => told.length);
    expect(opened).toEqual([0, 1, 0]);
  });

  it('R-7.6 a breaker of another tenant is no event of a call', async () => {
    const slow = tool({
      name: 'slow',
      policy: { ...failing, breaker: { failureThreshold: 1 } },
      execute: (input: unknown) =>
        input === 'fail' ? Promise.reject(reset()) : new Promise((done) => setTimeout(done, 50)),
    });
    const seen = observed(sdk(), [slow]);
    const long = seen.spillway.execute({ toolName: 'slow', tenant: 'a' });
    await seen.spillway.execute({ toolName: 'slow', input: 'fail', tenant: 'b' });
    await long;
    expect(
      named(seen.spans(), 'execute_tool slow').map(({ events: told }) =>
        told.map(({ attributes }) => attributes?.['spillway.breaker.scope']),
      ),
    ).toEqual([[], ['b']]);
    expect(seen.logs()).toHaveLength(1);
  });

  it('R-7.6 a breaker that tools share is an event of the calls of each', async () => {
    const shared: ToolPolicy = { ...failing, breaker: { failureThreshold: 1 } };
    let finish = (): void => undefined;
    const slow = tool({
      name: 'slow',
      dependency: 'api',
      policy: shared,
      execute: () => new Promise<void>((done) => (finish = done)),
    });
    const broken = tool({ name: 'broken', dependency: 'api', policy: shared, execute: () => Promise.reject(reset()) });
    const seen = observed(sdk(), [slow, broken], {}, { breakerKey: ({ dependency, name }) => dependency ?? name });
    const long = seen.spillway.execute({ toolName: 'slow' });
    await seen.spillway.execute({ toolName: 'broken' });
    finish();
    await long;
    expect(seen.spans().map(({ name, events }) => [name, events.length])).toEqual([
      ['execute_tool slow', 1],
      ['attempt slow', 0],
      ['execute_tool broken', 1],
      ['attempt broken', 0],
    ]);
  });

  it('R-7.6 no span is left open when a layer is closed, whatever its calls do just then', async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const hanging = tool({ name: 'hanging', policy: once, execute: never });
    const resting = tool({
      name: 'resting',
      policy: { effects: 'read', retry: { maxAttempts: 3, initialDelayMs: 1_000, maxTotalTimeMs: 60_000 } },
      execute: () => Promise.reject(reset()),
    });
    const seen = observed(sdk(), [hanging, resting]);
    const late = turn(seen, plan({ timeoutMs: 20 }).call('detached', hanging, undefined));
    const calls = ['hanging', 'resting'].map((toolName) => seen.spillway.execute({ toolName }));
    void turn(seen, plan().call('a', hanging, undefined));
    await late;
    await seen.spillway.close();
    await Promise.all(calls);
    expect(seen.spans()).toHaveLength(seen.started());
    expect(named(seen.spans(), 'invoke_workflow')).toHaveLength(2);
  });

  it('R-7.6 under a parent that is not sampled nothing is recorded, and servers are told so', async () => {
    const told: Array<string | undefined> = [];
    const asks = tool({
      name: 'asks',
      policy: once,
      execute: (_: unknown, { traceContext }) => void told.push(traceContext?.traceparent),
    });
    const seen = observed(sdk(), [asks], {}, { traceContext: (callId, attempt) => seen.sink.carrier(callId, attempt) });
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    for (const flags of ['00', '01'])
      await seen.spillway.execute({ toolName: 'asks', traceparent: `00-${traceId}-b7ad6b7169203331-${flags}` });
    expect(told.map((traceparent) => traceparent?.replace(/-[0-9a-f]{16}-/, '-span-'))).toEqual([
      `00-${traceId}-span-00`,
      `00-${traceId}-span-01`,
    ]);
    expect(seen.spans().map(({ name }) => name)).toEqual(['execute_tool asks', 'attempt asks']);
  });
}
