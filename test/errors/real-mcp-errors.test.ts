import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toToolError } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { MCP_CLIENTS } from './callers.ts';
import {
  answering,
  bodyOf,
  closedUrl,
  hanging,
  resetting,
  scriptedServer,
  type ScriptedServer,
} from './scripted-server.ts';

let server: ScriptedServer;
beforeAll(async () => {
  server = await scriptedServer();
});
afterAll(() => server.close());

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** A server of the Model Context Protocol that knows the handshake, and a tool that fails as it is told. */
const mcp =
  (answer: RequestListener | object): RequestListener =>
  (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const said = JSON.parse(bodyOf(request)) as Message;
    const reply = (body: object): unknown =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: said.id, ...body }));
    if (said.method === 'initialize')
      reply({
        result: {
          protocolVersion: said.params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 's', version: '0' },
        },
      });
    else if (said.id === undefined) response.writeHead(202).end();
    else if (said.method === 'tools/list')
      reply({ result: { tools: [{ name: 'x', inputSchema: { type: 'object' } }] } });
    else if (said.method !== 'tools/call') reply({ error: { code: -32601, message: 'Method not found' } });
    else if (typeof answer === 'function') (answer as RequestListener)(request, response);
    else reply('code' in answer ? { error: answer } : { result: answer });
  };

const failedText = (text: string): object => ({ isError: true, content: [{ type: 'text', text }] });

describe.each(MCP_CLIENTS)('$name', (caller) => {
  const told = async (url: string, options = {}): Promise<unknown[]> => {
    // A failed call is an answer: its result says so.
    const thrown: unknown = await caller.ask(url, options).catch((error: unknown) => error);
    const error = toToolError(thrown, 'mcp');
    return [error.kind, classify(error).classification];
  };

  it.each<[string, RequestListener | object, readonly string[]]>([
    ['status 400', answering(400, {}), ['execution_error', 'permanent']],
    ['status 401', answering(401, {}), ['execution_error', 'permanent']],
    ['status 403', answering(403, {}), ['execution_error', 'permanent']],
    ['status 404', answering(404, {}), ['execution_error', 'permanent']],
    ['status 408', answering(408, {}), ['timeout', 'transient']],
    ['status 429', answering(429, {}), ['execution_error', 'transient']],
    ['status 500', answering(500, {}), ['execution_error', 'transient']],
    ['status 502', answering(502, {}), ['execution_error', 'transient']],
    ['status 503', answering(503, {}), ['execution_error', 'transient']],
    ['status 504', answering(504, {}), ['timeout', 'transient']],
    ['connection reset', resetting, ['transport_error', 'transient']],
    ['invalid params', { code: -32602, message: 'Invalid params' }, ['invalid_parameters', 'permanent']],
    ['invalid request', { code: -32600, message: 'Invalid Request' }, ['invalid_parameters', 'permanent']],
    ['unknown tool', { code: -32602, message: 'Unknown tool: x' }, ['unknown_tool', 'permanent']],
    ['method not found', { code: -32601, message: 'Method not found' }, ['unknown_tool', 'permanent']],
    ['internal error', { code: -32603, message: 'Internal error' }, ['execution_error', 'transient']],
    ['a code of its own', { code: -32050, message: 'Rate limit exceeded' }, ['execution_error', 'transient']],
    ['a code of its own, for good', { code: -32050, message: 'Payment required' }, ['execution_error', 'permanent']],
    ['a result that is none', { content: 7 }, ['execution_error', 'permanent']],
    [
      'failed: bad input',
      failedText('MCP error -32602: Input validation error: Invalid arguments for tool x'),
      ['invalid_parameters', 'permanent'],
    ],
    ['failed: its own words', failedText('City not found'), ['execution_error', 'permanent']],
    ['failed: its own time-out', failedText('Request timed out'), ['timeout', 'transient']],
  ])('R-12.1 %s', async (_name, answer, expected) => {
    server.script(mcp(answer));
    expect(await told(server.url)).toEqual(expected);
  });

  it('its own time-out', async () => {
    server.script(mcp(hanging));
    expect(await told(server.url, { timeoutMs: 100 })).toEqual(['timeout', 'transient']);
  });

  it('aborted by the caller: both clients call it a time-out, so ask your own signal', async () => {
    const controller = new AbortController();
    // In mid-call: the handshake is over, however long it took.
    server.script(mcp(() => controller.abort()));
    const work = told(server.url, { signal: controller.signal });
    expect(await work).toEqual(['timeout', 'transient']);
  });

  it('no server: nothing ran', async () => {
    const thrown: unknown = await caller.ask(await closedUrl()).catch((error: unknown) => error);
    expect(toToolError(thrown, 'mcp')).toMatchObject({
      kind: 'transport_error',
      executed: false,
      code: 'ECONNREFUSED',
    });
  });
});
