import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CompleteRequestSchema,
  ElicitResultSchema,
  ListToolsRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  CreateMessageResultSchema,
  type CallToolResult,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { eventStore } from '../../src/mcp-proxy/http/event-store.ts';

/** A server that has what the scenarios of `@modelcontextprotocol/conformance` ask for. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const SOUND = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

const text = (said: string): CallToolResult => ({ content: [{ type: 'text', text: said }] });
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' } as const;
const embedded = (uri: string, said: string, mimeType = 'text/plain') =>
  ({ type: 'resource', resource: { uri, mimeType, text: said } }) as const;

const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
} as const;
const titled = ['First', 'Second', 'Third'].map((title, place) => ({ const: `value${place + 1}`, title }));
const ENUMS = {
  untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
  titledSingle: { type: 'string', oneOf: titled },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
  untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: ['option1', 'option2'] } },
  titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: titled } },
} as const;
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
};

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Ends the stream of a request, where the transport has one for each. */
type CutStream = (requestId: string | number) => void;

const addPlainTools = (server: McpServer): void => {
  const answers: Readonly<Record<string, CallToolResult>> = {
    test_simple_text: text('This is a simple text response for testing.'),
    test_image_content: { content: [image] },
    test_audio_content: { content: [{ type: 'audio', data: SOUND, mimeType: 'audio/wav' }] },
    test_embedded_resource: {
      content: [embedded('test://embedded-resource', 'This is an embedded resource content.')],
    },
    test_multiple_content_types: {
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        image,
        embedded('test://mixed-content-resource', '{"test":"data","value":123}', 'application/json'),
      ],
    },
    json_schema_2020_12_tool: text('called'),
  };
  for (const [name, answer] of Object.entries(answers)) server.registerTool(name, { description: name }, () => answer);
  server.registerTool('test_error_handling', { description: 'fails' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
};

const addTalkingTools = (server: McpServer, cut: CutStream): void => {
  const talking = { description: 'talks while it runs', inputSchema: {} };
  server.registerTool('test_tool_with_logging', talking, async (_, { sendNotification }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
      await sleep(50);
    }
    return text('Tool with logging executed successfully');
  });
  server.registerTool('test_tool_with_progress', talking, async (_, { sendNotification, _meta: meta }) => {
    const progressToken = meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return text(String(progressToken));
  });
  server.registerTool('test_reconnection', talking, async (_, { requestId }) => {
    cut(requestId);
    await sleep(100);
    return text('Reconnection test completed successfully.');
  });
};

/** As a part of the call: over HTTP on its stream, and not on one that the client may not have opened yet. */
const asked = async <Schema extends z.ZodType>(
  { sendRequest }: Extra,
  method: string,
  params: object,
  schema: Schema,
): Promise<z.infer<Schema>> => sendRequest({ method, params } as Parameters<typeof sendRequest>[0], schema);

const addAskingTools = (server: McpServer): void => {
  const elicit = async (
    extra: Extra,
    properties: object,
    required: readonly string[] = [],
  ): Promise<CallToolResult> => {
    const params = { mode: 'form', message: 'asks', requestedSchema: { type: 'object', properties, required } };
    const { action, content = {} } = await asked(extra, 'elicitation/create', params, ElicitResultSchema);
    return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
  };
  const asks = { description: 'asks its client' };
  const prompted = { ...asks, inputSchema: { prompt: z.string() } };
  server.registerTool('test_sampling', prompted, async ({ prompt }, extra) => {
    const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
    const params = { messages, maxTokens: 100 };
    const { content } = await asked(extra, 'sampling/createMessage', params, CreateMessageResultSchema);
    return text(`LLM response: ${content.type === 'text' ? content.text : content.type}`);
  });
  const told = { ...asks, inputSchema: { message: z.string() } };
  server.registerTool('test_elicitation', told, (_, extra) =>
    elicit(extra, { response: { type: 'string' } }, ['response']),
  );
  const bare = { ...asks, inputSchema: {} };
  server.registerTool('test_elicitation_sep1034_defaults', bare, (_, extra) => elicit(extra, DEFAULTS));
  server.registerTool('test_elicitation_sep1330_enums', bare, (_, extra) => elicit(extra, ENUMS));
};

const addResources = (server: McpServer): void => {
  const plain = (uri: string, said: string) => ({ contents: [{ uri, mimeType: 'text/plain', text: said }] });
  server.registerResource('static-text', 'test://static-text', {}, ({ href }) =>
    plain(href, 'This is the content of the static text resource.'),
  );
  server.registerResource('static-binary', 'test://static-binary', {}, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'image/png', blob: PIXEL }],
  }));
  server.registerResource('watched', 'test://watched-resource', {}, ({ href }) => plain(href, 'Watched'));
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource('template', template, {}, ({ href }, { id }) => ({
    contents: [
      { uri: href, mimeType: 'application/json', text: JSON.stringify({ id, data: `Data for ID: ${String(id)}` }) },
    ],
  }));
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
};

const addPrompts = (server: McpServer): void => {
  const user = <Content>(content: Content) => ({ role: 'user' as const, content });
  const said = (words: string) => user({ type: 'text' as const, text: words });
  server.registerPrompt('test_simple_prompt', { description: 'simple' }, () => ({
    messages: [said('This is a simple prompt for testing.')],
  }));
  const argsSchema = { arg1: z.string(), arg2: z.string() };
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'with arguments', argsSchema },
    ({ arg1, arg2 }) => ({
      messages: [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    }),
  );
  const ofUri = { description: 'of a URI', argsSchema: { resourceUri: z.string() } };
  server.registerPrompt('test_prompt_with_embedded_resource', ofUri, ({ resourceUri }) => ({
    messages: [user(embedded(resourceUri, 'Embedded resource content for testing.')), said('Please process it.')],
  }));
  server.registerPrompt('test_prompt_with_image', { description: 'with an image' }, () => ({
    messages: [user(image), said('Please analyze it.')],
  }));
};

export function conformanceServer(cut: CutStream = () => undefined): McpServer {
  const server = new McpServer(
    { name: 'conformance', version: '1.0.0' },
    { capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} } },
  );
  addPlainTools(server);
  addTalkingTools(server, cut);
  addAskingTools(server);
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.server.setRequestHandler(CompleteRequestSchema, () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  // The SDK makes its schemas from zod; one scenario wants to see what a schema of 2020-12 has beside that.
  const { _requestHandlers: handlers } = server.server as unknown as {
    readonly _requestHandlers: ReadonlyMap<
      string,
      (request: unknown, extra: unknown) => Promise<{ tools: { name: string }[] }>
    >;
  };
  const list = handlers.get('tools/list');
  server.server.setRequestHandler(ListToolsRequestSchema, async (request, extra) => {
    const { tools = [] } = (await list?.(request, extra)) ?? {};
    const shown = tools.map((tool) =>
      tool.name === 'json_schema_2020_12_tool' ? { ...tool, inputSchema: SCHEMA_2020_12 } : tool,
    );
    return { tools: shown };
  });
  return server;
}

// What a middleware would do, without one.
/* oxlint-disable typescript/no-deprecated */
/** The server over HTTP, a session for each client. */
export async function serveConformance(): Promise<{ readonly url: string; readonly close: () => void }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const begin = async (): Promise<StreamableHTTPServerTransport> => {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: eventStore(),
      retryInterval: 500,
      enableDnsRebindingProtection: true,
      allowedHosts: [`127.0.0.1:${port}`, `localhost:${port}`],
      allowedOrigins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await conformanceServer((requestId) => transport.closeSSEStream(requestId)).connect(transport);
    return transport;
  };
  const server = createServer((request, response) => {
    void (async () => {
      const { 'mcp-session-id': id } = request.headers;
      const transport = sessions.get(String(id)) ?? (await begin());
      await transport.handleRequest(request, response);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (process.argv[2] === 'stdio') await conformanceServer().connect(new StdioServerTransport());
if (process.argv[2] === 'http') process.stdout.write(`${(await serveConformance()).url}\n`);
