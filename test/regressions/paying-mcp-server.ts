import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** What a tool of the server says of itself, by its name. */
export const HINTS = {
  pay: undefined,
  pay_without_a_word: {},
  pay_again: { idempotentHint: true },
  pay_more: { destructiveHint: false },
  pay_openly: { readOnlyHint: false },
  look: { readOnlyHint: true },
} as const;

/**
 * A server whose every tool takes effect and then fails: `paid` is told of each effect, and ends the process if it
 * likes.
 */
export function payingServer(paid: (toolName: string) => void): McpServer {
  const server = new McpServer({ name: 'bank', version: '0' });
  for (const [name, annotations] of Object.entries(HINTS)) {
    server.registerTool(name, annotations === undefined ? {} : { annotations }, () => {
      paid(name);
      throw new Error('it broke');
    });
  }
  return server;
}

/** Run as a process: `node paying-mcp-server.ts LEDGER fail|die`. */
if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , ledger = '', end = 'fail'] = process.argv;
  const server = payingServer((toolName) => {
    appendFileSync(ledger, `${toolName}\n`);
    // As a crash would, with no answer.
    if (end === 'die') process.kill(process.pid, 'SIGKILL');
  });
  await server.connect(new StdioServerTransport());
}
