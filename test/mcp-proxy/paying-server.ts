import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { notesIn, strike } from './fates.ts';

/**
 * A bank of SDK 2, in both eras: `pay` writes into the ledger, and then ends as told. Run as a process: `node
 * paying-server.ts LEDGER kill|exit|freeze|hang|throw`.
 */
const [, , ledger = '', end = ''] = process.argv;

serveStdio(() => {
  const server = new McpServer({ name: 'bank', version: '1' });
  server.registerTool('pay', { inputSchema: z.object({}) }, () => {
    notesIn(ledger).note('paid');
    strike(end);
    if (end === 'throw') throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    return new Promise(() => undefined);
  });
  return server;
});
