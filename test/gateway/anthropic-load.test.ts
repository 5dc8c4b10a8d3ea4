import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSpillway, tool } from 'spillway';
import { anthropicGateway, memoryConversationState } from 'spillway/gateway/anthropic';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Part {
  readonly child: ChildProcessWithoutNullStreams;
  next(): Promise<Readonly<Record<string, unknown>>>;
}
interface Measured {
  readonly whole: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

const children: ChildProcessWithoutNullStreams[] = [];
const start = (...args: readonly string[]): Part => {
  const child = spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, 'load-client.ts'), ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stderr.pipe(process.stderr);
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, next: async () => JSON.parse(String((await lines.next()).value)) as Readonly<Record<string, unknown>> };
};

describe('R-13.1 under load', () => {
  let upstream = '';
  let gateway: Part;
  let url = '';
  beforeAll(async () => {
    upstream = String((await start('upstream').next())['url']);
    gateway = start('gateway', upstream);
    url = String((await gateway.next())['url']);
  });
  afterAll(() => children.forEach((child) => child.kill('SIGKILL')));

  const measured = async (at: string, turns: number, atOnce: number, kind: string): Promise<Measured> => (await start('client', at, String(turns), String(atOnce), kind).next()) as unknown as Measured;
  const heapUsed = async (): Promise<number> => {
    gateway.child.stdin.write('\n');
    const { heapUsed: bytes, running } = await gateway.next();
    expect(running).toBe(0);
    return Number(bytes);
  };

  // Generous where another program may have the processors: what is measured is printed.
  it('R-13.1 200 streaming turns at a time lose nothing, with tools and without, and memory stays flat', async () => {
    const rounds: Array<readonly [string, Measured]> = [];
    await measured(url, 400, 200, 'plain');
    const before = await heapUsed();
    const turns = 400;
    for (const kind of ['plain', 'tools']) {
      const direct = kind === 'plain' ? await measured(upstream, turns, 200, kind) : undefined;
      if (direct !== undefined) rounds.push(['direct', direct]);
      rounds.push([kind, await measured(url, turns, 200, kind)]);
    }
    const after = await heapUsed();
    for (const [kind, { whole, medianMs, p99Ms }] of rounds) {
      process.stderr.write(`${kind}: ${whole} whole, median ${medianMs.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms\n`);
      expect(whole).toBe(turns);
    }
    process.stderr.write(`heap ${(before / 1e6).toFixed(1)} MB, then ${(after / 1e6).toFixed(1)} MB\n`);
    expect(after - before).toBeLessThan(20_000_000);
  }, 180_000);
});

it('R-13.1 memory is flat over 10,000 turns', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const events = [{ type: 'message_start', message: { usage: {} } }, { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: {} }, { type: 'message_stop' }].map((fields) => `event: ${fields.type}\ndata: ${JSON.stringify(fields)}\n\n`);
  const call = [{ type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'echo', input: {} } }, { type: 'content_block_stop', index: 0 }].map((fields) => `event: ${fields.type}\ndata: ${JSON.stringify(fields)}\n\n`);
  const text = events.map((event) => event.replace('tool_use', 'end_turn')).join('');
  const withCall = [events[0], ...call, ...events.slice(1)].join('');
  const echo = tool({ name: 'echo', execute: () => 'x'.repeat(1_000) });
  const spillway = createSpillway({ tools: [echo] });
  const gateway = anthropicGateway({
    upstream: 'http://upstream',
    tools: [echo],
    spillway,
    state: memoryConversationState({ maxRecords: 100 }),
    fetch: (_url, { body }) => Promise.resolve(new Response(typeof body === 'string' && body.includes('tool_result') ? text : withCall, { headers: { 'content-type': 'text/event-stream' } })),
  });
  const turn = async (n: number): Promise<void> => {
    const response = await gateway.fetch(new Request('http://gateway/v1/messages', { method: 'POST', body: JSON.stringify({ model: 'm', max_tokens: 1, stream: true, messages: [{ role: 'user', content: `${n} ${'y'.repeat(1_000)}` }] }) }));
    expect(await response.text()).toContain('message_stop');
  };
  const heapAfter = async (turns: number): Promise<number> => {
    for (let n = 0; n < turns; n += 50) await Promise.all(Array.from({ length: 50 }, (_, at) => turn(n + at)));
    gc();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapAfter(2_000);
  const after = await heapAfter(10_000);
  expect(gateway.running).toBe(0);
  expect((after - before) / 10_000).toBeLessThan(300);
  await spillway.close();
}, 180_000);
