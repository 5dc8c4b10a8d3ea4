import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** A server over stdio that tells what it was given: in its failures, its progress and its log. */
const { API_KEY = '', MODE = '' } = process.env;
const said = `cannot reach it with ${API_KEY}, token=Zq9xK7vB2mN4pL6tR8wY in ${MODE}`;
const { server } = new McpServer({ name: 'leaking', version: '0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: ['fails', 'gives'].map((name) => ({
    name,
    description: said,
    inputSchema: { type: 'object' as const, properties: { key: { type: 'string', default: API_KEY } } },
    annotations: { readOnlyHint: true },
  })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, _meta } }, { sendNotification }) => {
  process.stderr.write(`log: ${said}\n`);
  const progressToken = _meta?.progressToken;
  if (progressToken !== undefined)
    await sendNotification({
      method: 'notifications/progress',
      params: { progressToken, progress: 1, message: `working: ${said}` },
    });
  const content = [{ type: 'text' as const, text: name === 'fails' ? said : `the value ${API_KEY}` }];
  return { ...(name === 'fails' ? { isError: true } : {}), content };
});
await server.connect(new StdioServerTransport());
