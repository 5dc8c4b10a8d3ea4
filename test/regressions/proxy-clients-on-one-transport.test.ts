// Was: what a server said of its own accord went to whoever had asked last, of all clients behind one transport.
// Now: where several are behind it, it goes to none, and late progress of an attempt that is over is nobody's.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { NODE } from '../mcp-proxy/kit.ts';

/** It logs what it was asked, and asks its client, before it answers. */
const TALKER = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  let waiting;
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {}, error } = JSON.parse(line);
    const content = [{ type: 'text', text: error?.message ?? 'asked' }];
    if (id === 'q') return say({ id: waiting, result: { content } });
    if (id === undefined) return;
    if (method === 'tools/call') {
      say({ method: 'notifications/message', params: { level: 'info', data: params.arguments.secret } });
      waiting = id;
      return say({ id: 'q', method: 'elicitation/create', params: { message: params.arguments.secret } });
    }
    const serverInfo = { name: 't', version: '1' };
    const started = { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo };
    const tools = [{ name: 'talk', inputSchema: { type: 'object' } }];
    say({ id, result: method === 'initialize' ? started : { tools } });
  });`;

it.for([false, true])('R-16.3 what a server says by itself, on a transport that is shared: %s', async (isShared) => {
  const proxy = createMcpProxy({ servers: { talker: { place: { command: NODE, args: ['-e', TALKER] } } } });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const served = proxy.serve$(far, true, isShared).subscribe();
  const heard: string[] = [];
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  Object.assign(near, { onmessage: (message: JSONRPCMessage) => void heard.push(JSON.stringify(message)) });
  await client.connect(near);
  const result = await client.callTool({ name: 'talk', arguments: { secret: 'a-secret-of-alice' } });
  const said = heard.join('\n');
  expect(said.includes('notifications/message')).toBe(!isShared);
  expect(said.includes('elicitation/create')).toBe(!isShared);
  if (isShared) {
    expect(said).not.toContain('a-secret-of-alice');
    expect(JSON.stringify(result)).toContain('There is no one client to ask');
  }
  await client.close();
  served.unsubscribe();
  await proxy.close();
});
