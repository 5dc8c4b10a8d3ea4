// Was: a call went on by what its tool had said of itself when it began: one that only read, and was told to act by
// then, was repeated, and one that was no longer listed when it refused had "not run".
// Now: a further attempt is made where the tool still says that it only reads, by a list asked for after the last
// change; and only a tool that was not listed before the call, either, has certainly not run.
import { describe, expect, it } from 'vitest';
import { NODE, QUICK, ledger, proxied, textOf, type Ledger, type Proxied } from '../mcp-proxy/kit.ts';

/** Its tools begin as ones that only read. `act` makes the one of that name another, before or while it is called. */
const CHANGES = `
  const { appendFileSync } = require('node:fs');
  const [, ledger] = process.argv;
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const text = (text, isError) => ({ content: [{ type: 'text', text }], isError });
  const tools = new Map(['arm', 'pay', 'fetch'].map((name) => [name, { readOnlyHint: true }]));
  tools.set('gone', {});
  let listingMs = 0;
  const change = (name, annotations) => {
    if (annotations === undefined) tools.delete(name);
    else tools.set(name, annotations);
    say({ method: 'notifications/tools/list_changed' });
  };
  const CALLS = {
    arm: ({ id, input }) => {
      listingMs = input.listingMs;
      change('pay', { readOnlyHint: false });
      say({ id, result: text('armed', false) });
    },
    pay: ({ id, input }) => {
      if (input.listingMs !== undefined) listingMs = input.listingMs;
      if (input.changes) change('pay', { readOnlyHint: false });
      setTimeout(() => input.hangs || say({ id, result: text('read ECONNRESET', true) }), input.waits);
    },
    fetch: ({ id }) => {
      change('arm', { readOnlyHint: true, title: String(Math.random()) });
      say({ id, result: text('read ECONNRESET', true) });
    },
    gone: ({ id }) => {
      change('gone');
      setTimeout(() => say({ id, error: { code: -32602, message: 'Tool gone not found' } }), 500);
    },
  };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'tools/list') {
      const listed = [...tools].map(([name, annotations]) => ({ name, annotations, inputSchema: { type: 'object' } }));
      return setTimeout(() => say({ id, result: { tools: listed } }), listingMs);
    }
    if (method === 'tools/call') {
      appendFileSync(ledger, params.name + '\\n');
      return CALLS[params.name]({ id, input: params.arguments });
    }
    const { protocolVersion } = params;
    const serverInfo = { name: 's', version: '1' };
    say({ id, result: { protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo } });
  });`;

const changing = async (kept: Ledger): Promise<Proxied> => {
  const defaults = { retry: QUICK, timeoutMs: 1_500 };
  const it = await proxied({ s: { place: { command: NODE, args: ['-e', CHANGES, kept.path] } } }, { defaults });
  await it.client.listTools();
  return it;
};

describe('a tool that says that it acts', () => {
  it.each<[string, Record<string, unknown>]>([
    ['while it is called', { changes: true, waits: 300 }],
    ['while it is called, and is slow to list its tools', { changes: true, listingMs: 500 }],
    ['while it is called, and does not answer', { changes: true, hangs: true }],
  ])('R-2.5 R-16.1 %s is not called again', async (_name, input) => {
    using kept = ledger();
    await using it = await changing(kept);
    const key = { 'spillway/idempotencyKey': 'once' };
    // What the server said of the first attempt would have it tried again.
    for (let time = 1; time <= 2; time++) {
      const said = textOf(await it.call('pay', input, key));
      expect(said).toContain('may have');
      expect(said).not.toContain('ECONNRESET');
    }
    expect(kept.count('pay')).toBe(1);
  });

  it('R-2.5 R-16.1 right before it is called is called once, however long the new list takes', async () => {
    using kept = ledger();
    await using it = await changing(kept);
    expect(textOf(await it.call('arm', { listingMs: 500 }))).toBe('armed');
    expect(textOf(await it.call('pay'))).toBe('read ECONNRESET');
    expect(kept.count('pay')).toBe(1);
  });

  it('R-16.1 one that still only reads is tried again, whatever else has changed', async () => {
    using kept = ledger();
    await using it = await changing(kept);
    expect(textOf(await it.call('fetch'))).toBe('read ECONNRESET');
    expect(kept.count('fetch')).toBe(QUICK.maxAttempts);
  });
});

it('R-2.5 a tool that is taken from the list while it runs may have run, whatever its server says', async () => {
  using kept = ledger();
  await using it = await changing(kept);
  const key = { 'spillway/idempotencyKey': 'once' };
  await expect(it.call('gone', {}, key)).rejects.toThrow('Tool gone not found');
  expect(textOf(await it.call('gone', {}, key))).toContain('may have run');
  expect(kept.count('gone')).toBe(1);
});
