import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

/** A bank over MCP, run as a process by tests. Its books are a file, so that they outlive it; it checks no key. */
const [, , books = ''] = process.argv;

interface Line {
  readonly reference: string;
  readonly amount: number;
  readonly what: 'asked' | 'booked';
}

const lines = (): Line[] =>
  existsSync(books)
    ? readFileSync(books, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line)
    : [];
const write = (line: Line): void => appendFileSync(books, `${JSON.stringify(line)}\n`);

const server = new McpServer({ name: 'bank', version: '0' });
server.registerTool(
  'transfer',
  { inputSchema: { reference: z.string(), amount: z.number() } },
  async ({ reference, amount }, { signal }) => {
    const isFirst = !lines().some((line) => line.reference === reference);
    write({ reference, amount, what: 'asked' });
    const [trouble] = isFirst ? reference.split('-') : [];
    const book = (): void => write({ reference, amount, what: 'booked' });
    if (trouble === 'dies') process.kill(process.pid, 'SIGKILL');
    if (trouble === 'late') {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await sleep(100);
    }
    book();
    if (trouble === 'lost') process.kill(process.pid, 'SIGKILL');
    if (trouble === 'mute' || trouble === 'late') await new Promise(() => undefined);
    return { content: [{ type: 'text', text: `booked ${reference}` }] };
  },
);
server.registerTool(
  'list_transfers',
  { inputSchema: { reference: z.string() }, annotations: { readOnlyHint: true } },
  ({ reference }) => {
    const transfers = lines().filter((line) => line.what === 'booked' && line.reference === reference);
    return { content: [{ type: 'text', text: JSON.stringify({ transfers }) }] };
  },
);
await server.connect(new StdioServerTransport());
