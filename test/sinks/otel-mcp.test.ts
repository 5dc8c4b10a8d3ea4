import * as api from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, it } from 'vitest';
import { createSpillway } from 'spillway';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { everything } from '../providers/support.ts';
import { recorder } from './otel-kit.ts';

it('R-7.6 the span of a call to a real MCP server tells the tool’s description, the method and the transport', async () => {
  const { processor, finished } = recorder();
  const tracing = new TracerProvider({ spanProcessors: [processor] });
  const trace = {
    getTracer: (name: string, version?: string, options?: { schemaUrl?: string }) =>
      tracing.getTracer(name, version, options),
    setSpan: api.trace.setSpan,
    setSpanContext: api.trace.setSpanContext,
  };
  const provider = await everything();
  const spillway = createSpillway({ providers: [provider] });
  try {
    spillway.trace$.subscribe(openTelemetrySink({ api: { ...api, trace }, providers: [provider] }));
    const result = await spillway.execute({ toolName: 'everything.echo', input: { message: 'hi' } });
    expect(result).toMatchObject({ status: 'success', output: { content: 'Echo: hi' } });
    const { attributes } = finished().find(({ name }) => name === 'execute_tool everything.echo') ?? {};
    expect(attributes).toMatchObject({
      'gen_ai.tool.name': 'everything.echo',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': expect.stringContaining('Echoes') as string,
      'mcp.method.name': 'tools/call',
      'network.transport': 'pipe',
    });
    expect(attributes).not.toHaveProperty('mcp.session.id');
  } finally {
    await spillway.close();
  }
});
