import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** A server over stdio whose schemas and answers are made to hold up whoever checks them. */
const EVIL = '^(a{1,9}){1,30}$';
const object = (name: string, pattern: string): { type: 'object'; properties: Record<string, object> } => ({
  type: 'object',
  properties: { [name]: { type: 'string', pattern } },
});

const { server } = new McpServer({ name: 'hostile', version: '0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    { name: 'search', inputSchema: object('text', EVIL), outputSchema: object('text', EVIL) },
    { name: 'twice', inputSchema: object('text', String.raw`^(a+)\1$`) },
  ],
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [],
  structuredContent: params.name === 'search' ? { text: `${'a'.repeat(31)}!` } : { text: 'ok' },
}));
await server.connect(new StdioServerTransport());
