import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { Subject, firstValueFrom } from 'rxjs';
import * as z from 'zod';

/** A server of SDK 2, which speaks the protocol of 2026-07-28 and those before. */
const text = (said: string): { content: { type: 'text'; text: string }[] } => ({
  content: [{ type: 'text', text: said }],
});

/** Over HTTP each request has a server of its own: what one is told, another waits for. */
const heard$ = new Subject<number>();

export function modernServer(): McpServer {
  const server = new McpServer({ name: 'modern', version: '2' }, { capabilities: { tools: { listChanged: true } } });
  const reads = { annotations: { readOnlyHint: true } };
  server.registerTool('echo', { ...reads, inputSchema: z.object({ message: z.string() }) }, ({ message }) =>
    text(`Echo: ${message}`),
  );
  server.registerTool('fail', { inputSchema: z.object({}) }, () => {
    throw new Error('it failed');
  });
  server.registerTool('pid', { ...reads, inputSchema: z.object({}) }, () => text(String(process.pid)));
  server.registerTool('steps', { ...reads, inputSchema: z.object({}) }, async (_, { mcpReq }) => {
    const { _meta: meta } = mcpReq;
    const { progressToken = 0 } = meta ?? {};
    for (const progress of [1, 2]) {
      const heard = firstValueFrom(heard$);
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
      // The SDK’s clients lose a report that they read in one piece with the answer.
      await heard;
    }
    return text('two steps');
  });
  server.registerTool('heard', { ...reads, inputSchema: z.object({ progress: z.number() }) }, ({ progress }) => {
    heard$.next(progress);
    return text('so it is');
  });
  server.registerTool('deploy', { inputSchema: z.object({ to: z.string() }) }, ({ to }, { mcpReq }) => {
    const schema = z.object({ sure: z.boolean() });
    const answer = acceptedContent(mcpReq.inputResponses, 'sure', schema);
    if (answer?.sure === true) return text(`deployed to ${to}`);
    const sure = inputRequired.elicit({ message: `Deploy to ${to}?`, requestedSchema: schema });
    return inputRequired({ inputRequests: { sure }, requestState: 'kept' });
  });
  server.registerTool('grow', { inputSchema: z.object({}) }, () => {
    server.registerTool('grown', { inputSchema: z.object({}) }, () => text('grown'));
    return text('there is one more');
  });
  server.registerPrompt('greet', { description: 'greets' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }],
  }));
  server.registerResource('note', 'note://1', {}, ({ href }) => ({ contents: [{ uri: href, text: 'noted' }] }));
  return server;
}

/** The same over HTTP: each request is served by a server of its own. */
export async function serveModern(
  made: () => McpServer = modernServer,
  at = 0,
): Promise<{ readonly url: string; readonly close: () => void }> {
  const handler = createMcpHandler(() => made());
  const listener = getRequestListener((request) => handler.fetch(request), { overrideGlobalObjects: false });
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (process.argv[2] === 'stdio') serveStdio(() => modernServer());
