import * as api from '@opentelemetry/api';
import { lastValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type ToolContext, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import type { TraceContext } from 'spillway/contract';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { contextManager, named, parentOf } from './otel-kit.ts';
import { quick, TRACE_ID, CALLER, traced, envelope, shaky, idsOf } from './trace-context.ts';
import { oneTool, restServer } from '../providers/rest/kit.ts';
import { httpKit } from '../providers/mcp/http-kit.ts';

describe('R-8.3 the trace context of each attempt', () => {
  beforeAll(() => {
    api.context.setGlobalContextManager(contextManager(api.ROOT_CONTEXT) as api.ContextManager);
  });
  afterAll(() => api.context.disable());

  it('R-8.3 a REST server’s span comes under the attempt that called it, one of three', async () => {
    await using server = await restServer();
    await using one = oneTool(server.url);
    const { spillway, serve, spans: spansOf } = traced({ providers: [one.provider], defaults: quick });
    const baggage: unknown[] = [];
    server.answer((request, response) => {
      const context = serve(`GET ${baggage.length + 1}`, request.headers);
      baggage.push(api.propagation.getBaggage(context)?.getEntry('tenant')?.value);
      response.writeHead(baggage.length < 3 ? 503 : 200, { 'content-type': 'application/json' }).end('{}');
    });
    const host = api.propagation.setBaggage(
      api.ROOT_CONTEXT,
      api.propagation.createBaggage({ tenant: { value: 'a b' } }),
    );
    const result = await api.context.with(host, () => spillway.execute({ toolName: 'api.t', traceparent: CALLER }));
    expect(result).toMatchObject({ status: 'success', attempts: 3 });
    const spans = spansOf();
    const attempts = named(spans, 'attempt api.t');
    const served = spans.filter(({ name }) => name.startsWith('GET '));
    expect(attempts.map(({ attributes }) => attributes['spillway.attempt'])).toEqual([1, 2, 3]);
    expect(served.map((span) => span.parentSpanContext?.spanId)).toEqual(idsOf(attempts));
    expect(attempts.map((span) => parentOf(span, spans))).toEqual(Array(3).fill('execute_tool api.t'));
    // The short form says whose the call is; all of it is one trace.
    expect(named(spans, 'execute_tool api.t')[0]?.parentSpanContext).toMatchObject({
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
    });
    expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE_ID]));
    expect(baggage).toEqual(['a b', 'a b', 'a b']);
  });

  it('R-8.3 vendors’ state goes on from the caller to the server', async () => {
    await using server = await restServer();
    await using one = oneTool(server.url);
    const { spillway, spans } = traced({ providers: [one.provider] });
    await spillway.execute(
      envelope('api.t', { traceparent: CALLER, tracestate: 'vendor=t61rcWkgMzE,other=1', baggage: { user: 'ada' } }),
    );
    const [attempt] = named(spans(), 'attempt api.t');
    expect(server.seen[0]?.headers).toMatchObject({
      traceparent: `00-${TRACE_ID}-${attempt?.spanContext().spanId}-01`,
      tracestate: 'vendor=t61rcWkgMzE,other=1',
      baggage: 'user=ada',
    });
  });

  it('R-8.3 without the option the caller’s own context goes on, from either form of a request', async () => {
    await using server = await restServer();
    await using one = oneTool(server.url);
    const spillway = createSpillway({ providers: [one.provider] });
    await spillway.execute({ toolName: 'api.t', traceparent: CALLER });
    await spillway.execute(envelope('api.t', { traceparent: CALLER, tracestate: 'vendor=1' }));
    await spillway.execute({ toolName: 'api.t' });
    const sent = server.seen.map(({ headers: { traceparent, tracestate, baggage } }) => ({
      traceparent,
      tracestate,
      baggage,
    }));
    expect(sent).toEqual([{ traceparent: CALLER }, { traceparent: CALLER, tracestate: 'vendor=1' }, {}]);
  });

  it('R-8.3 a tool has the context of its own attempt, all in one and by itself', async () => {
    const { tool: one, contexts } = shaky(2);
    const { spillway, spans } = traced({ tools: [one] });
    await spillway.execute({ toolName: 'shaky' });
    const attempts = named(spans(), 'attempt shaky').map((span) => span.spanContext());
    const expected = attempts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(contexts.map(({ traceContext }) => traceContext)).toEqual(expected.map((traceparent) => ({ traceparent })));
    expect(contexts.map(({ traceparent }) => traceparent)).toEqual(expected);
    expect(new Set(expected).size).toBe(3);
  });

  it('R-8.3 in a turn, too', async () => {
    const { tool: one, contexts } = shaky(1);
    const { spillway, spans } = traced({ tools: [one] });
    await new Promise<void>((done) => {
      spillway.turn(plan.from([{ id: 'a', tool: 'shaky' }])).subscribe({ complete: done });
    });
    expect(contexts.map(({ traceContext }) => traceContext?.traceparent.slice(36, 52))).toEqual(
      idsOf(named(spans(), 'attempt shaky')),
    );
  });

  it('R-8.3 a turn’s own context: its span is under the caller’s, and every call and attempt under that', async () => {
    const { tool: one, contexts } = shaky(1);
    const { spillway, spans: spansOf } = traced({ tools: [one] });
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    const traceContext = { traceparent: CALLER, tracestate: 'vendor=1', baggage: { user: 'ada' } };
    const trip = plan.from([
      { id: 'a', tool: 'shaky' },
      { id: 'b', tool: 'shaky', needs: ['a'] },
    ]);
    await lastValueFrom(spillway.turn(trip, { traceContext }));
    const spans = spansOf();
    expect(named(spans, 'invoke_workflow')[0]?.parentSpanContext).toMatchObject({
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
    });
    expect(named(spans, 'execute_tool shaky').map((span) => parentOf(span, spans))).toEqual([
      'invoke_workflow',
      'invoke_workflow',
    ]);
    expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE_ID]));
    expect(contexts.map((context) => context.traceContext)).toEqual(
      idsOf(named(spans, 'attempt shaky')).map((spanId) => ({
        traceparent: `00-${TRACE_ID}-${spanId}-01`,
        tracestate: 'vendor=1',
        baggage: { user: 'ada' },
      })),
    );
    const { baggage: _, ...told } = traceContext;
    const starts = events.filter(({ type }) => type === 'turn_started' || type === 'call_started');
    expect(starts).toHaveLength(3);
    for (const start of starts) expect(start).toMatchObject(told);
  });

  it('R-8.3 without a sink a turn’s calls go on from its own context, and what undoes them as well', async () => {
    const seen: Array<[string, TraceContext | undefined]> = [];
    const note = (name: string, { traceContext }: ToolContext): string => {
      seen.push([name, traceContext]);
      if (name === 'pay') throw new Error('declined');
      return name;
    };
    const book = tool({
      name: 'book',
      policy: { effects: 'mutating', compensate: { tool: 'unbook', input: {} } },
      execute: (_: unknown, context) => note('book', context),
    });
    const once = { effects: 'mutating', retry: { maxAttempts: 1 } } as const;
    const pay = tool({ name: 'pay', policy: once, execute: (_: unknown, context) => note('pay', context) });
    const unbook = tool({ name: 'unbook', policy: once, execute: (_: unknown, context) => note('unbook', context) });
    const spillway = createSpillway({ tools: [book, pay, unbook], store: memoryStore() });
    const trip = plan.from(
      [
        { id: 'b', tool: 'book', input: {} },
        { id: 'p', tool: 'pay', input: {}, needs: ['b'] },
      ],
      { onFailure: 'compensate' },
    );
    const traceContext = { traceparent: CALLER, tracestate: 'vendor=1' };
    await lastValueFrom(spillway.turn(trip, { traceContext }));
    expect(seen).toEqual(['book', 'pay', 'unbook'].map((name) => [name, traceContext]));
    await spillway.close();
  });

  it('R-8.3 a turn’s context that is none is refused', async () => {
    const { tool: one, contexts } = shaky(0);
    const spillway = createSpillway({ tools: [one] });
    const trip = plan.from([{ id: 'a', tool: 'shaky' }]);
    for (const traceContext of [{}, { traceparent: 7 }, { traceparent: '' }, { traceparent: CALLER, baggage: 'a=b' }])
      await expect(
        lastValueFrom(spillway.turn(trip, { traceContext: traceContext as unknown as TraceContext })),
      ).rejects.toThrow(/^traceContext must be an object with traceparent/);
    expect(contexts).toEqual([]);
  });

  it('R-18.1 what asks whether a call took effect goes on from the call', async () => {
    const asked: Array<TraceContext | undefined> = [];
    const book = tool({
      name: 'book',
      policy: { effects: 'mutating', timeoutMs: 5, retry: { maxAttempts: 1 } },
      execute: () => new Promise<string>(() => undefined),
      verify: (_: unknown, { traceContext }) => {
        asked.push(traceContext);
        return { done: true, output: 'booked' } as const;
      },
    });
    const { spillway, spans } = traced({ tools: [book] });
    await spillway.execute({ toolName: 'book', traceparent: CALLER });
    const [call] = named(spans(), 'execute_tool book');
    expect(asked).toEqual([{ traceparent: `00-${TRACE_ID}-${call?.spanContext().spanId}-01` }]);
  });

  it('R-8.3 an attempt without a span of its own goes on from its call’s', async () => {
    const { tool: one, contexts } = shaky(1);
    const { spillway, spans } = traced({ tools: [one] }, { attemptSpans: 'onRetry' });
    await spillway.execute({ toolName: 'shaky' });
    const [call] = named(spans(), 'execute_tool shaky');
    const second = named(spans(), 'attempt shaky').find(({ attributes }) => attributes['spillway.attempt'] === 2);
    expect(contexts.map(({ traceContext }) => traceContext?.traceparent.slice(36, 52))).toEqual([
      call?.spanContext().spanId,
      second?.spanContext().spanId,
    ]);
  });

  it('R-8.3 where the option gives nothing, throws or gives rubbish the call goes on from its caller’s', async () => {
    const answers: ReadonlyArray<() => unknown> = [
      () => undefined,
      () => {
        throw new Error('no');
      },
      () => ({ traceparent: 7 }),
      () => 'nonsense',
      () => ({ traceparent: '' }),
    ];
    for (const give of answers) {
      const { tool: one, contexts } = shaky(0);
      const spillway = createSpillway({ tools: [one], traceContext: give as () => TraceContext });
      expect(await spillway.execute({ toolName: 'shaky', traceparent: CALLER })).toMatchObject({ status: 'success' });
      expect(contexts[0]?.traceContext).toEqual({ traceparent: CALLER });
    }
  });

  it('R-8.3 the option is asked once for each attempt, with the call and the number that the trace has, after the trace told of it', async () => {
    const asked: unknown[] = [];
    const told: unknown[] = [];
    const { tool: one } = shaky(1);
    const spillway = createSpillway({
      tools: [one],
      traceContext: (callId, attempt) => {
        asked.push([callId, attempt, told.length]);
        return undefined;
      },
    });
    spillway.trace$.subscribe(
      (event) => event.source === 'call' && event.type === 'attempt_started' && told.push(event.attempt),
    );
    const { requestId } = await spillway.execute({ toolName: 'shaky' });
    expect(asked).toEqual([
      [requestId, 1, 1],
      [requestId, 2, 2],
    ]);
  });

  it('R-8.3 without any of it a tool has no trace context at all', async () => {
    const { tool: one, contexts } = shaky(0);
    await createSpillway({ tools: [one] }).execute({ toolName: 'shaky' });
    expect(Object.keys(contexts[0] ?? {})).not.toContain('traceContext');
    expect(contexts[0]).not.toHaveProperty('traceparent');
  });

  it('R-8.3 a sink without an SDK has no context to give', async () => {
    const sink = openTelemetrySink({ api });
    const { tool: one, contexts } = shaky(0);
    const spillway = createSpillway({ tools: [one], traceContext: sink.carrier });
    spillway.trace$.subscribe(sink);
    await spillway.execute({ toolName: 'shaky' });
    expect(contexts[0]?.traceContext).toBeUndefined();
    expect(sink.carrier('unknown', 1)).toBeUndefined();
  });
});

describe('R-8.3 over MCP', () => {
  const kit = httpKit();
  it('R-8.3 a real server sees the context of each of three attempts in `_meta`, as SEP-414 names it', async () => {
    const metas: Array<Readonly<Record<string, unknown>>> = [];
    await kit.serve({
      tools: (server) => {
        server.registerTool('flaky', { annotations: { readOnlyHint: true } }, ({ _meta }) => {
          metas.push(_meta ?? {});
          if (metas.length < 3) throw new Error('the backend is not there right now');
          return { content: [{ type: 'text', text: 'ok' }] };
        });
      },
    });
    const provider = await kit.provide();
    const { spillway, spans, serve } = traced({ providers: [provider], defaults: quick });
    const request = envelope('box.flaky', { traceparent: CALLER, tracestate: 'vendor=1', baggage: { user: 'a b' } });
    expect(await spillway.execute(request)).toMatchObject({ status: 'success', attempts: 3 });
    for (const meta of metas) serve('tools/call flaky', meta);
    const attempts = named(spans(), 'attempt box.flaky');
    expect(named(spans(), 'tools/call flaky').map((span) => span.parentSpanContext?.spanId)).toEqual(idsOf(attempts));
    expect(metas.map(({ traceparent, tracestate, baggage }) => ({ traceparent, tracestate, baggage }))).toEqual(
      idsOf(attempts).map((spanId) => ({
        traceparent: `00-${TRACE_ID}-${spanId}-01`,
        tracestate: 'vendor=1',
        baggage: 'user=a%20b',
      })),
    );
  });
});
