import { McpServer, type CallToolResult } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { notesIn, strike } from './fates.ts';
import { serveModern } from './modern-server.ts';

/**
 * A server of SDK 2, in both eras, that does what its caller asks it to suffer. Run as a process, over stdio or HTTP:
 * `node modern-fault-server.ts LEDGER [PORT]`.
 */
const [, , ledger = '', port] = process.argv;
const { note, noted } = notesIn(ledger);

const text = (said: string): CallToolResult => ({ content: [{ type: 'text', text: said }] });

/** What befalls a call after it did what it does. */
const suffered = (fate: unknown, said: string): CallToolResult | Promise<CallToolResult> => {
  strike(fate);
  if (fate === 'throw') throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  return fate === undefined ? text(said) : new Promise(() => undefined);
};

const faultServer = (): McpServer => {
  const server = new McpServer({ name: 'faults', version: '2' }, { capabilities: { logging: {} } });
  const reads = { annotations: { readOnlyHint: true } };
  const fate = z.string().optional();
  server.registerTool('pay', { inputSchema: z.object({ amount: z.number(), then: fate }) }, ({ amount, then }) => {
    note(`pay ${amount}`);
    return suffered(then, `paid ${amount}`);
  });
  const look = { ...reads, inputSchema: z.object({ first: fate, times: z.number() }) };
  server.registerTool('look', look, ({ first, times }) => {
    const before = noted('look');
    note('look');
    return suffered(before < times ? first : undefined, `looked ${before + 1} times`);
  });
  const flood = { ...reads, inputSchema: z.object({ count: z.number() }) };
  server.registerTool('flood', flood, async ({ count }, { mcpReq }) => {
    const filler = 'y'.repeat(1_000);
    for (let n = 0; n < count; n++)
      await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data: `${n} ${filler}` } });
    return text('flooded');
  });
  server.registerTool('pid', { ...reads, inputSchema: z.object({}) }, () => text(String(process.pid)));
  return server;
};

if (port === undefined) serveStdio(faultServer);
else await serveModern(faultServer, Number(port));
note(`pid ${process.pid}`);
note('started ');
