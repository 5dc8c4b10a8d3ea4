import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSpillway, type AnyTool } from 'spillway';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';
import { ROOT } from './support.ts';

const VERIFY = {
  tool: 'bank.list_transfers',
  input: { reference: '${input.reference}' },
  done: { path: 'transfers[*].reference', equals: '${input.reference}' },
  output: 'transfers[*].amount',
  settleMs: 400,
  timeoutMs: 5_000,
} as const;

describe('a bank over MCP', () => {
  it('R-18.3 each transfer is booked once, and told as it is, whatever its server does', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-mcp-bank-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const books = join(folder, 'books');
    const provider = await mcpStdioProvider({
      name: 'bank',
      command: process.execPath,
      args: [join(ROOT, 'test/soak/bank/mcp-server.ts'), books],
    });
    const tools = provider.tools.map((tool): AnyTool => {
      if (tool.name !== 'bank.transfer') return tool;
      const retry = { maxAttempts: 3, initialDelayMs: 10, maxTotalTimeMs: 30_000 };
      return { ...tool, policy: { ...tool.policy, timeoutMs: 700, breaker: false, retry, verify: VERIFY } };
    });
    const layer = createSpillway({ tools });
    onTestFinished(async () => {
      await layer.close();
      await provider.close();
    });
    const pay = (reference: string) =>
      layer.execute({ toolName: 'bank.transfer', input: { reference, amount: 7 }, idempotencyKey: reference });

    // One after the other: a server that dies takes down all that it is at.
    expect(await pay('plain-1')).toMatchObject({ status: 'success', attempts: 1 });
    expect(await pay('lost-1')).toMatchObject({
      status: 'success',
      verified: 'done',
      attempts: 1,
      output: { content: 7 },
    });
    expect(await pay('dies-1')).toMatchObject({ status: 'success', attempts: 2 });
    expect(await pay('mute-1')).toMatchObject({ status: 'success', verified: 'done', attempts: 1 });
    // The server books it after the client has given up.
    expect(await pay('late-1')).toMatchObject({ status: 'success', verified: 'done', attempts: 1 });

    const booked = readFileSync(books, 'utf8')
      .split('\n')
      .filter((line) => line.includes('booked'))
      .map((line) => (JSON.parse(line) as { readonly reference: string }).reference);
    expect(booked).toEqual(['plain-1', 'lost-1', 'dies-1', 'mute-1', 'late-1']);
  });
});
