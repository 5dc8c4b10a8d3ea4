import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { proxyRounds } from '../../benchmarks/mcp-proxy.ts';

const WARM_UP = 4_000;
const ROUNDS = 8;
const CALLS = 1_500;
/** What a call within the SDK itself takes, without pipes, on the machine of the budgets. */
const IN_MEMORY_US = 8.7;

/** The SDK's own client in front of its own server, in this process: the processor time of a call. */
const inMemory = async (): Promise<() => Promise<number>> => {
  const server = new McpServer({ name: 'echo', version: '1' });
  server.registerTool('echo', { inputSchema: { message: z.string() } }, ({ message }) => ({
    content: [{ type: 'text', text: message }],
  }));
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await Promise.all([client.connect(ours), server.connect(theirs)]);
  return async () => {
    const before = process.threadCpuUsage();
    for (let n = 0; n < CALLS; n++) await client.callTool({ name: 'echo', arguments: { message: 'hello' } });
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / CALLS;
  };
};

it(
  'R-16.1 a call through the proxy takes 1 ms and 200 us of processor time more at most',
  { timeout: 300_000 },
  async () => {
    const call = await inMemory();
    const ownUs: number[] = [];
    const { directUs, proxiedUs, cpuUs } = await proxyRounds(WARM_UP, ROUNDS, async () => ownUs.push(await call()));
    // The best round is the one that the rest of the machine has spoilt least.
    expect(Math.min(...proxiedUs) - Math.min(...directUs)).toBeLessThan(1_000);
    // A busy machine is slower with both: how many calls within the SDK one through the proxy is worth does not change.
    const worth = cpuUs.map((us, round) => us / (ownUs[round] ?? Number.NaN));
    if (process.platform === 'linux') expect(Math.min(...worth) * IN_MEMORY_US).toBeLessThan(200);
  },
);
