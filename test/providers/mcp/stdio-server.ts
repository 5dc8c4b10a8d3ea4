import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { appendFileSync, existsSync } from 'node:fs';
import { registerTools } from './tools.ts';

/**
 * A server over stdio, run as a process by tests: it writes down its calls in a file, and does not start while another
 * file is there.
 */
const [, , log = '', dead = ''] = process.argv;
if (existsSync(dead)) throw new Error('it is dead');

let count = 0;
const write = (entry: object): void => appendFileSync(log, `${JSON.stringify(entry)}\n`);
const server = new McpServer({ name: 'stdio', version: '0' });
registerTools(server, (tool, meta) => {
  const id = `${process.pid}-${count++}`;
  write({ id, tool, meta, state: 'running' });
  return (state) => write({ id, state });
});
await server.connect(new StdioServerTransport());
