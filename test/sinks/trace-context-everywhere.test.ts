import * as api from '@opentelemetry/api';
import { defer, lastValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hedge, tool, type ToolContext } from 'spillway';
import { runAgent, scriptedModel } from '../../src/agent/index.ts';
import { reset } from './kit.ts';
import { contextManager, named, parentOf } from './otel-kit.ts';
import { CALLER, idsOf, quick, TRACE_ID, traced, type Traced } from './trace-context.ts';

/** A tool whose work is a request to a server of ours, which makes a span of what it is given. */
const asking = (name: string, to: () => Traced, fails: number, alternatives: readonly string[] = []) => {
  let asked = 0;
  return tool({
    name,
    policy: { ...quick, effects: 'read', alternatives, breaker: false },
    execute: (_: unknown, { traceContext = { traceparent: '' } }: ToolContext) => {
      to().serve(`GET ${name}`, traceContext);
      return asked++ < fails ? Promise.reject(reset()) : 'ok';
    },
  });
};

describe('R-8.3 the trace context, wherever an attempt comes from', () => {
  beforeAll(() => {
    api.context.setGlobalContextManager(contextManager(api.ROOT_CONTEXT) as api.ContextManager);
  });
  afterAll(() => api.context.disable());

  it('R-8.3 an alternative’s server span is under the alternative’s own attempt, in the same call', async () => {
    const layer: Traced = traced({
      tools: [asking('main', () => layer, 3, ['other']), asking('other', () => layer, 1)],
    });
    const result = await layer.spillway.execute({ toolName: 'main', traceparent: CALLER });
    expect(result).toMatchObject({ status: 'success', toolName: 'other' });
    const spans = layer.spans();
    const attempts = [...named(spans, 'attempt main'), ...named(spans, 'attempt other')];
    expect(attempts.map(({ attributes }) => attributes['spillway.attempt'])).toEqual([1, 2, 3, 4, 5]);
    const served = [...named(spans, 'GET main'), ...named(spans, 'GET other')];
    expect(served.map((span) => span.parentSpanContext?.spanId)).toEqual(idsOf(attempts));
    expect(attempts.map((span) => parentOf(span, spans))).toEqual(Array(5).fill('execute_tool main'));
    expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE_ID]));
  });

  it('R-8.3 each attempt of a call that an agent’s loop makes has its server span', async () => {
    const search = asking('search', () => layer, 2);
    const layer: Traced = traced({ tools: [search] });
    const model = scriptedModel([{ calls: [{ id: 'c1', name: 'search', input: {} }] }, { text: 'done' }]);
    await lastValueFrom(
      runAgent({ model, spillway: layer.spillway, tools: [search], messages: [{ role: 'user', content: 'go' }] }),
    );
    const spans = layer.spans();
    const attempts = named(spans, 'attempt search');
    expect(attempts).toHaveLength(3);
    expect(named(spans, 'GET search').map((span) => span.parentSpanContext?.spanId)).toEqual(idsOf(attempts));
    expect(named(spans, 'execute_tool search').map((span) => parentOf(span, spans))).toEqual(['invoke_workflow']);
    expect(named(spans, 'execute_tool search')[0]?.attributes).toMatchObject({ 'gen_ai.tool.call.id': 'c1' });
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1);
  });

  it('R-8.3 both requests of a hedge inside a tool are under the one attempt that makes them', async () => {
    let asked = 0;
    const hedged = tool({
      name: 'hedged',
      policy: { ...quick, effects: 'read' },
      execute: (_: unknown, { traceContext = { traceparent: '' } }: ToolContext) =>
        defer(() => {
          const isFirst = ++asked === 1;
          layer.serve(`GET ${asked}`, traceContext);
          return isFirst ? new Promise<string>(() => undefined) : Promise.resolve('the second');
        }).pipe(hedge({ delayMs: 5 })),
    });
    const layer: Traced = traced({ tools: [hedged] });
    expect(await layer.spillway.execute({ toolName: 'hedged' })).toMatchObject({
      output: { content: 'the second' },
      attempts: 1,
    });
    const spans = layer.spans();
    const [attempt] = idsOf(named(spans, 'attempt hedged'));
    const served = spans.filter(({ name }) => name.startsWith('GET '));
    expect(served.map((span) => span.parentSpanContext?.spanId)).toEqual([attempt, attempt]);
  });
});
