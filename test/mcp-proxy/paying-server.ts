import { appendFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

/**
 * A bank of SDK 2, in both eras: `pay` writes into the ledger, and then ends as told. Run as a process: `node
 * paying-server.ts LEDGER kill|exit|hang|throw`.
 */
const [, , ledger = '', end = ''] = process.argv;

const ENDS: Readonly<Record<string, () => unknown>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(1), // oxlint-disable-line unicorn/no-process-exit
  hang: () => new Promise(() => undefined),
  throw: () => {
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  },
};

serveStdio(() => {
  const server = new McpServer({ name: 'bank', version: '1' });
  server.registerTool('pay', { inputSchema: z.object({}) }, async () => {
    appendFileSync(ledger, 'paid\n');
    await ENDS[end]?.();
    return { content: [{ type: 'text', text: 'paid' }] };
  });
  return server;
});
