import { firstValueFrom, timer } from 'rxjs';
import { expect, it } from 'vitest';
import { plan, tool, type Tool, type ToolPolicy } from 'spillway';
import { notFound, reset, stepped } from './kit.ts';
import { linked, named, observed, parentOf, within, type Observed, type Sdk, type SeenSpan } from './otel-kit.ts';

const quick: ToolPolicy = { retry: { maxAttempts: 3, initialDelayMs: 5, jitterPercent: 0 } };
const shaky = (): ReturnType<typeof stepped> =>
  stepped(
    'shaky',
    [
      () => {
        throw reset();
      },
      () => {
        throw reset();
      },
      () => 'ok',
    ],
    quick,
  );
const ms = (afterMs: number): Promise<unknown> => firstValueFrom(timer(afterMs));
const ids = (spans: readonly SeenSpan[]): unknown[] => spans.map((span) => span.spanContext().spanId);

/** What spans and metrics must be, whichever SDK records them. */
export function otelSuite(sdk: () => Sdk): void {
  it('R-7.6 a call that a retry saved: no error, and its attempts are siblings, the tool’s own spans below each', async () => {
    const inner = shaky();
    const outer: Tool<never> = tool({
      name: 'shaky',
      policy: quick,
      execute: (_: unknown, context): unknown =>
        seen.sink.run(context.callKey, async () => {
          await ms(1);
          seen.tracer.startSpan('GET', {}, seen.api.context.active()).end();
          return inner.execute(undefined, context);
        }),
    });
    const seen: Observed = observed(sdk(), [outer]);
    const result = await seen.spillway.execute({ toolName: 'shaky', toolCallId: 'toolu_1' });
    const spans = seen.spans();
    expect(result).toMatchObject({ status: 'success', attempts: 3 });
    const [call] = named(spans, 'execute_tool shaky');
    const attempts = named(spans, 'attempt shaky');
    expect(call).toMatchObject({
      status: { code: 0 },
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'shaky',
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.call.id': 'toolu_1',
        'spillway.attempts': 3,
        'spillway.status': 'success',
      },
    });
    expect(call?.attributes).not.toHaveProperty('error.type');
    expect(attempts.map((span) => parentOf(span, spans))).toEqual(Array(3).fill('execute_tool shaky'));
    expect(
      attempts.map(({ attributes }) => [
        attributes['spillway.attempt'],
        attributes['spillway.resend_count'],
        attributes['error.type'],
        attributes['spillway.retry.reason'],
      ]),
    ).toEqual([
      [1, undefined, 'transport_error', undefined],
      [2, 1, 'transport_error', 'transport_error'],
      [3, 2, undefined, 'transport_error'],
    ]);
    expect(attempts.map(({ status }) => status.code)).toEqual([2, 2, 0]);
    const gets = named(spans, 'GET');
    expect(gets.map((span) => span.parentSpanContext?.spanId)).toEqual(ids(attempts));
    expect(seen.started()).toBe(spans.length);
  });

  it('R-7.6 a call that failed says so, with its kind and a redacted message', async () => {
    const down = tool({
      name: 'down',
      policy: { retry: { maxAttempts: 1 } },
      execute: () => {
        throw new Error('login with password=hunter2 failed');
      },
    });
    const seen = observed(sdk(), [down]);
    await seen.spillway.execute({ toolName: 'down' });
    await seen.spillway.execute({ toolName: 'unknown' });
    const [failed] = named(seen.spans(), 'execute_tool down');
    expect(failed).toMatchObject({
      status: { code: 2, message: 'login with password=[redacted] failed' },
      attributes: { 'error.type': 'execution_error', 'spillway.status': 'retriable_error' },
    });
    expect(named(seen.spans(), 'execute_tool unknown')[0]?.attributes).toMatchObject({
      'error.type': 'unknown_tool',
      'spillway.rejected': 'unknown_tool',
      'spillway.attempts': 0,
    });
  });

  it('R-7.6 who waits for another’s result, and who gets it later, is linked to that call', async () => {
    const slow = tool({
      name: 'slow',
      execute: async () => {
        await ms(20);
        return 1;
      },
    });
    const seen = observed(sdk(), [slow]);
    const request = { toolName: 'slow', idempotencyKey: 'k', session: 's' };
    const [leader, follower] = await Promise.all([seen.spillway.execute(request), seen.spillway.execute(request)]);
    const later = await seen.spillway.execute(request);
    expect([follower?.fromCache, later.fromCache]).toEqual([true, true]);
    const spans = seen.spans();
    const of = (id = ''): SeenSpan | undefined =>
      spans.find(({ name, attributes }) => name === 'execute_tool slow' && attributes['spillway.call.id'] === id);
    expect(linked(of(leader?.requestId), spans)).toEqual([]);
    expect(linked(of(follower?.requestId), spans)).toEqual([['dedupe_leader', leader?.requestId]]);
    expect(linked(of(later.requestId), spans)).toEqual([['dedupe_leader', leader?.requestId]]);
    expect(of(later.requestId)?.attributes).toMatchObject({
      'spillway.dedupe.step': 'replayed',
      'spillway.from_cache': true,
      'spillway.attempts': 0,
    });
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain('keyFingerprint');
    expect(named(spans, 'attempt slow')).toHaveLength(1);
  });

  it('R-7.6 the calls of a turn are under it, linked to those they needed', async () => {
    const seen = observed(sdk(), [shaky(), stepped('rank', [() => 1])], { workflowName: 'trip' });
    const trip = plan()
      .call('a', shaky(), undefined)
      .call('b', stepped('rank', [() => 1]), () => undefined, { needs: ['a'] });
    await new Promise<void>((done) => {
      seen.spillway.turn(trip).subscribe({ complete: done });
    });
    const spans = seen.spans();
    const [turn] = named(spans, 'invoke_workflow trip');
    const [rank] = named(spans, 'execute_tool rank');
    expect(turn).toMatchObject({
      status: { code: 0 },
      attributes: {
        'gen_ai.operation.name': 'invoke_workflow',
        'gen_ai.agent.name': 'trip',
        'spillway.turn.status': 'completed',
        'spillway.turn.nodes': 2,
      },
    });
    expect(['execute_tool rank', 'execute_tool shaky'].map((name) => parentOf(named(spans, name)[0], spans))).toEqual([
      'invoke_workflow trip',
      'invoke_workflow trip',
    ]);
    expect(turn?.attributes).not.toHaveProperty('gen_ai.workflow.name');
    expect(rank?.attributes).toMatchObject({
      'gen_ai.agent.name': 'trip',
      'spillway.node.id': 'b',
      'spillway.call.depends_on': ['a'],
    });
    expect(rank?.links.map(({ context }) => context.spanId)).toEqual(ids(named(spans, 'execute_tool shaky')));
    expect(seen.started()).toBe(spans.length);
  });

  it('R-8.3 goes on from the caller’s traceparent, else from the active span, and gives its own on', async () => {
    let given: string | undefined;
    const seen: Observed = observed(sdk(), [
      tool({
        name: 'hop',
        execute: (_: unknown, { callKey }) => {
          given = seen.sink.traceparent(callKey);
        },
      }),
    ]);
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const call = (requestId: string, traceparent?: string) => ({
      contractVersion: '1.1' as const,
      requestId,
      toolName: 'hop',
      toolNamespace: 'n',
      target: { sessionKey: 's', actorId: 'a' },
      payload: { version: '1.0' as const, params: {} },
      transport: { dedupeMode: 'disabled' as const, retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 } },
      control: {},
      trace: traceparent === undefined ? {} : { traceparent },
    });
    await seen.spillway.execute(call('remote', `00-${traceId}-b7ad6b7169203331-01`));
    const attempt = named(seen.spans(), 'attempt hop')[0]?.spanContext();
    expect(given).toBe(`00-${traceId}-${attempt?.spanId}-01`);
    await within(seen, 'host work', () => seen.spillway.execute(call('local')));
    await seen.spillway.execute(call('broken', '00-00000000000000000000000000000000-b7ad6b7169203331-01'));
    const [remote, local, broken] = named(seen.spans(), 'execute_tool hop');
    expect(remote?.parentSpanContext).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(remote?.spanContext().traceId).toBe(traceId);
    expect(parentOf(local, seen.spans())).toBe('host work');
    expect(broken?.parentSpanContext).toBeUndefined();
    expect(seen.sink.traceparent('remote')).toBeUndefined();
    expect(seen.sink.run('remote', () => 7)).toBe(7);
  });

  it('R-7.6 CLAW’s words on request', async () => {
    const seen = observed(sdk(), [shaky()], { claw: true });
    await seen.spillway.execute({ toolName: 'shaky', idempotencyKey: 'the key itself' });
    const spans = seen.spans();
    expect(spans.map(({ name }) => name).toSorted()).toEqual([
      'attempt shaky',
      'attempt shaky',
      'attempt shaky',
      'retry_delay',
      'retry_delay',
      'tool_execution',
    ]);
    expect(named(spans, 'tool_execution')[0]?.attributes).toMatchObject({
      'tool.name': 'shaky',
      'breaker.state': 'closed',
      'idempotency.key': expect.stringMatching(/^\w{8,}$/) as unknown,
    });
    expect(named(spans, 'attempt shaky').map(({ attributes }) => attributes['retry.attempt'])).toEqual([1, 2, 3]);
    const delays = named(spans, 'retry_delay');
    expect(delays.map((span) => [parentOf(span, spans), span.attributes['spillway.retry.delay_ms']])).toEqual([
      ['tool_execution', 5],
      ['tool_execution', 10],
    ]);
    for (const {
      startTime: [from, fromNs],
      endTime: [to, toNs],
    } of delays)
      expect((to - from) * 1e3 + (toNs - fromNs) / 1e6).toBeGreaterThan(3);
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain('the key itself');
  });

  it('R-7.6 spans of attempts for calls that were retried only, or none', async () => {
    for (const [attemptSpans, counts] of [
      ['onRetry', [3, 0]],
      ['never', [0, 0]],
    ] as const) {
      const seen = observed(sdk(), [shaky(), stepped('fine', [() => 1])], { attemptSpans });
      await seen.spillway.execute({ toolName: 'shaky' });
      await seen.spillway.execute({ toolName: 'fine' });
      expect(['shaky', 'fine'].map((name) => named(seen.spans(), `attempt ${name}`).length)).toEqual(counts);
    }
  });

  it('R-7.6 every span ends: of calls that are abandoned, canceled, or still run when their turn has settled', async () => {
    let answer = (): void => undefined;
    const slow = tool({
      name: 'slow',
      execute: () =>
        new Promise<number>((resolve) => {
          answer = () => resolve(1);
        }),
    });
    const seen = observed(sdk(), [slow, shaky()]);
    seen.spillway.call({ toolName: 'slow' }).subscribe().unsubscribe();
    const stop = new AbortController();
    const canceled = seen.spillway.execute({ toolName: 'slow' }, { signal: stop.signal });
    stop.abort();
    await canceled;
    await new Promise<void>((done) => {
      seen.spillway.turn(plan({ timeoutMs: 1_000 }).call('a', slow, undefined)).subscribe({ complete: done });
    });
    // The turn has settled without it; now it ends.
    answer();
    await expect.poll(() => named(seen.spans(), 'execute_tool slow').length).toBe(3);
    const spans = seen.spans();
    expect(seen.started()).toBe(spans.length);
    expect(named(spans, 'execute_tool slow').map(({ attributes }) => attributes['spillway.status'])).toEqual([
      'abandoned',
      'error',
      'success',
    ]);
    expect(named(spans, 'attempt slow').map(({ attributes }) => attributes['spillway.attempt.canceled'])).toEqual([
      true,
      true,
      undefined,
    ]);
    expect(named(spans, 'invoke_workflow')[0]).toMatchObject({ attributes: { 'spillway.turn.unfinished': ['a'] } });
  });

  it('R-7.6 the metrics of R-7.5 as instruments, of tools that are listed', async () => {
    const seen = observed(
      sdk(),
      [
        shaky(),
        stepped('gone', [
          () => {
            throw notFound();
          },
        ]),
      ],
      { tools: ['shaky'], inspect: async () => ({ store: { records: 4 } }) },
    );
    await seen.spillway.execute({ toolName: 'shaky' });
    await seen.spillway.execute({ toolName: 'gone' });
    for (let n = 0; n < 50; n++) await seen.spillway.execute({ toolName: `invented_${n}` });
    const metrics = await seen.metrics();
    const of = (name: string): unknown[] =>
      metrics
        .find(({ descriptor }) => descriptor.name === name)
        ?.dataPoints.map(({ attributes, value }) => ({
          ...attributes,
          value: typeof value === 'object' ? (value as { count: number }).count : value,
        })) ?? [];
    expect(of('spillway.tool_calls')).toEqual([
      { tool: 'shaky', status: 'success', scope: 'global', value: 1 },
      { tool: '__other__', status: 'error', scope: 'global', value: 51 },
    ]);
    expect(of('spillway.tool_retry_attempts')).toEqual([{ tool: 'shaky', reason: 'transport_error', value: 2 }]);
    expect(of('gen_ai.execute_tool.duration')).toEqual([
      { 'gen_ai.tool.name': 'shaky', 'gen_ai.tool.type': 'function', value: 1 },
      { 'gen_ai.tool.name': '__other__', 'gen_ai.tool.type': 'function', 'error.type': 'execution_error', value: 1 },
      { 'gen_ai.tool.name': '__other__', 'gen_ai.tool.type': 'function', 'error.type': 'unknown_tool', value: 50 },
    ]);
    expect(of('spillway.tool_call_duration')).toHaveLength(2);
    expect(of('spillway.tool_circuit_breaker_state')).toContainEqual({ tool: 'shaky', state: 'closed', value: 1 });
    expect(of('spillway.tool_dedupe_ttl')).toContainEqual({ tool: 'shaky', state: 'failed', value: 300 });
    expect(of('spillway.tool_dedupe_cache_size')).toEqual([{ tool: '__all__', scope: 'all', value: 4 }]);
    expect(of('spillway.store_available')).toEqual([{ value: 1 }]);
    expect(metrics.find(({ descriptor }) => descriptor.name === 'gen_ai.execute_tool.duration')?.descriptor.unit).toBe(
      's',
    );
  });
}
