// Was: an MCP tool without annotations was `read`, so a server that wrote and died paid three times.
// Now: MCP's own defaults hold for each hint.
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSpillway, type ToolPolicy } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { mcpConnection, mcpProvider } from 'spillway/providers/mcp';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';
import { folder, spillway, type Folder } from '../cli/support.ts';
import { HINTS, payingServer } from './paying-mcp-server.ts';

const SERVER = fileURLToPath(new URL('paying-mcp-server.ts', import.meta.url));
const quick: ToolPolicy = { retry: { maxAttempts: 3, initialDelayMs: 1, jitterPercent: 0, maxTotalTimeMs: 30_000 } };
const names = Object.keys(HINTS);
/**
 * How often each tool takes effect: once where it may write, and as often as it is tried where it says that it only
 * reads.
 */
const EXPECTED = Object.fromEntries(names.map((name) => [name, name === 'look' ? 3 : 1]));

const count = (paid: readonly string[]): Record<string, number> =>
  Object.fromEntries(names.map((name) => [name, paid.filter((other) => other === name).length]));
const ledgerOf = (files: Folder): { readonly path: string; readonly paid: () => string[] } => {
  const path = join(files.path, 'ledger');
  return { path, paid: () => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []) };
};

const GENERATIONS = [
  ['1.x', () => new Client({ name: 'test', version: '0' })],
  ['2.x', () => new Client2({ name: 'test', version: '0' })],
] as const;

const connect = async (make: (typeof GENERATIONS)[number][1], paid: string[]): Promise<Client> => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  // The clients of both generations take the same calls here, but for the types of their transports.
  const client = make() as unknown as Client;
  await Promise.all([client.connect(ours), payingServer((name) => void paid.push(name)).connect(theirs)]);
  return client;
};

describe('R-2.5 an MCP tool is what it says of itself, and MCP’s defaults where it says nothing', () => {
  it.each(GENERATIONS)('R-2.5 through the provider, with the SDK %s', async (_generation, make) => {
    const paid: string[] = [];
    const provider = await mcpProvider({ name: 'bank', connect: async () => mcpConnection(await connect(make, paid)) });
    const layer = createSpillway({ providers: [provider], defaults: { ...quick, breaker: false } });
    onTestFinished(() => layer.close());
    for (const name of names) await layer.execute({ toolName: `bank.${name}`, input: {} });
    expect(count(paid)).toEqual(EXPECTED);
    expect(layer.warnings.filter((warning) => warning.includes('effects'))).toEqual([]);
  });

  it.each(GENERATIONS)(
    'R-2.5 through a guarded client, with the SDK %s, once its tools were listed',
    async (_generation, make) => {
      const paid: string[] = [];
      const client = guardClient(await connect(make, paid), { defaults: { ...quick, breaker: false } });
      onTestFinished(() => client.close());
      await client.callTool({ name: 'look' });
      expect(paid).toEqual(['look']);
      paid.length = 0;
      await client.listTools();
      for (const name of names) await client.callTool({ name });
      expect(count(paid)).toEqual(EXPECTED);
    },
  );

  it('R-2.5 the host’s own word goes before the server’s', async () => {
    const paid: string[] = [];
    const policies = { pay: { effects: 'read' }, look: { effects: 'mutating' } } as const;
    const client = guardClient(await connect(GENERATIONS[0][1], paid), {
      defaults: { ...quick, breaker: false },
      policies,
    });
    onTestFinished(() => client.close());
    await client.listTools();
    for (const name of ['pay', 'look']) await client.callTool({ name });
    expect(count(paid)).toMatchObject({ pay: 3, look: 1 });
  });

  it('R-2.5 a layer’s defaults do not make a reader of a server’s tool that says nothing', async () => {
    const paid: string[] = [];
    const provider = await mcpProvider({
      name: 'bank',
      connect: async () => mcpConnection(await connect(GENERATIONS[0][1], paid)),
    });
    const layer = createSpillway({ providers: [provider], defaults: { ...quick, effects: 'read' } });
    onTestFinished(() => layer.close());
    expect(await layer.execute({ toolName: 'bank.pay', input: {} })).toMatchObject({
      attempts: 1,
      error: { uncertain: true },
    });
    expect(paid).toEqual(['pay']);
  });

  it('R-2.5 a server over stdio that writes and dies pays once', async () => {
    using files = folder();
    const ledger = ledgerOf(files);
    const provider = await mcpStdioProvider({
      name: 'bank',
      command: process.execPath,
      args: [SERVER, ledger.path, 'die'],
    });
    const layer = createSpillway({ providers: [provider], defaults: quick });
    onTestFinished(() => layer.close());
    expect(await layer.execute({ toolName: 'bank.pay', input: {} })).toMatchObject({
      attempts: 1,
      error: { code: 'transport_error', uncertain: true },
    });
    expect(ledger.paid()).toEqual(['pay']);
  });

  it('R-2.5 a plan file agrees, and its `effects` go before the server’s', async () => {
    using files = folder();
    const ledger = ledgerOf(files);
    const retry =
      'retry_policy: { max_attempts: 3, initial_delay_ms: 1, max_total_time_ms: 30000 }, circuit_breaker: false';
    const entries = names.map((name) => `  - { id: ${name}, server: bank, tool: ${name}, ${retry} }\n`).join('');
    const nodes = [...names, 'told'].map((name) => `    - { id: ${name}, tool: ${name}, optional: true }\n`).join('');
    const server = JSON.stringify([SERVER, ledger.path, 'fail']);
    const plan = files.write(
      'plan.yaml',
      `servers:\n  bank: { command: ${JSON.stringify(process.execPath)}, args: ${server} }\ntools:\n${entries}  - { id: told, server: bank, tool: pay, effects: read, ${retry} }\nturn:\n  nodes:\n${nodes}`,
    );
    const { stderr } = await spillway('run', plan, '--json');
    // Beside its own once, `pay` under its other name three times.
    expect(count(ledger.paid()), stderr).toEqual({ ...EXPECTED, pay: 1 + 3 });
  });
});
