import { createInterface } from 'node:readline';

interface Request {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string; readonly arguments?: { readonly message: string } };
}

/** An MCP server that answers at once. */
const inputSchema = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] };
const TOOLS = [{ name: 'echo', inputSchema, annotations: { readOnlyHint: true } }];

const answerTo = ({ method, params = {} }: Request): unknown => {
  if (method === 'tools/list') return { tools: TOOLS };
  if (method === 'tools/call') return { content: [{ type: 'text', text: params.arguments?.message }] };
  const { protocolVersion } = params;
  return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } };
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request;
  if (request.id === undefined) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: answerTo(request) })}\n`);
});
