import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createSpillway, liveRuntime, type AnyTool } from 'spillway';
import { createApprovals, type ApprovalWhen } from 'spillway/gates';
import { restProvider } from 'spillway/providers/rest';
import { describe, expect, it } from 'vitest';
import { runApprove } from '../../src/cli/approve.ts';
import { parseMcp } from '../../src/cli/arguments/mcp.ts';
import { configured } from '../../src/cli/mcp/servers.ts';
import { loadPlan } from '../../src/cli/plan/file.ts';
import { ledger } from '../mcp-proxy/kit.ts';
import { calls, opening, rawServer, MAIN } from '../mcp-proxy/wire-kit.ts';
import { folder, start } from './support.ts';

const FAULTS = join(import.meta.dirname, '../mcp-proxy/fault-server.ts');
const LONG_MS = 120_000;
const waited = { timeout: 60_000, interval: 50 };

const approve = async (...args: readonly string[]): Promise<string> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  await runApprove(args, { stdout, stderr, env: {}, signal, runtime: liveRuntime });
  return String(stdout.read() ?? '');
};

const quoted = (...args: readonly string[]): string => args.map((text) => JSON.stringify(text)).join(', ');
const bank = (path: string): string =>
  `servers: { bank: { command: ${quoted(process.execPath)}, args: [${quoted(FAULTS, path)}] } }`;

/** Approves what waits, once it does; gives what was listed. */
const approved = async (store: string): Promise<string> => {
  await expect.poll(() => approve('--store', store, '--json').catch(() => ''), waited).toContain('"id"');
  const listed = await approve('--store', store, '--json');
  const { id } = JSON.parse(listed.split('\n')[0] ?? '') as { readonly id: string };
  await approve(id, '--store', store, '--by', 'grace');
  return listed;
};

describe('needs_approval as data', () => {
  const asks = async (
    needsApproval: ApprovalWhen,
    input: unknown,
    own?: AnyTool['needsApproval'],
  ): Promise<boolean> => {
    let isAsked = false;
    const approvals = createApprovals({ ask: () => (isAsked = true) });
    const tool: AnyTool = {
      name: 'pay',
      policy: { effects: 'mutating', needsApproval },
      execute: () => 'paid',
      ...(own === undefined ? {} : { needsApproval: own }),
    };
    const layer = createSpillway({ tools: [tool], approvals });
    expect((await layer.execute({ toolName: 'pay', input })).status).toBe('success');
    await layer.close();
    return isAsked;
  };

  it.each<[ApprovalWhen, unknown, boolean]>([
    [{ path: 'usd', above: 100 }, { usd: 101 }, true],
    [{ path: 'usd', above: 100 }, { usd: 100 }, false],
    [{ path: 'usd', above: 100 }, { usd: '5' }, true],
    [{ path: 'usd', above: 100 }, {}, true],
    [{ path: 'usd', above: 100 }, 7, true],
    [{ path: 'days', below: 2 }, { days: 1 }, true],
    [{ path: 'days', below: 2 }, { days: 2 }, false],
    [{ path: 'to.env', equals: 'prod' }, { to: { env: 'prod' } }, true],
    [{ path: 'to.env', equals: 'prod' }, { to: { env: 'test' } }, false],
    [{ path: 'to.env', equals: 'prod' }, { to: {} }, true],
    [{ path: 'to', unless: { env: 'test' } }, { to: { env: 'test' } }, false],
    [{ path: 'to', unless: { env: 'test' } }, { to: { env: 'test', x: 1 } }, true],
    [{ path: 'force', unless: null }, { force: null }, false],
    [{ path: 'items[*].usd', above: 100 }, { items: [{ usd: 1 }, { usd: 200 }] }, true],
    [{ path: 'items[*].usd', above: 100 }, { items: [{ usd: 1 }, { usd: 2 }] }, false],
    [{ path: 'items[*].usd', above: 100 }, { items: [{ usd: 1 }, {}] }, true],
  ])('R-22.8 %j of %j: asked is %s', async (when, input, isAsked) => {
    expect(await asks(when, input)).toBe(isAsked);
  });

  it('R-22.8 a tool’s own rule is asked besides', async () => {
    expect(await asks({ path: 'usd', above: 100 }, { usd: 1 }, { path: 'usd', below: 5 })).toBe(true);
    expect(await asks({ path: 'usd', above: 100 }, { usd: 1 }, () => false)).toBe(false);
  });

  it.each([[{}], [{ path: 'usd' }], [{ path: 'a b', above: 1 }], [{ path: 'usd', above: 1, below: 2 }], ['yes'], [[]]])(
    'R-22.8 %j is refused',
    (needsApproval) => {
      const tool = { name: 'pay', policy: { needsApproval: needsApproval as never }, execute: () => 1 };
      expect(() => createSpillway({ tools: [tool] })).toThrow(/needsApproval of a policy must be true, false, or/);
    },
  );
});

describe('what files say', () => {
  const plan = (tool: string, node: string, rest = ''): string =>
    [
      `servers: { s: { command: x } }\n${rest}tools:`,
      `  - { id: t, server: s, tool: x${tool} }`,
      `turn: { nodes: [{ id: a, tool: t${node} }] }\n`,
    ].join('\n');

  it.each([
    [plan(', needs_approval: maybe', ''), /:3:\d+: tools\[0\]\.needs_approval: must be true, false, or a path/],
    [plan(', needs_approval: { path: usd }', ''), /:3:\d+: .*needs_approval: must have a path and one of above, below/],
    [plan('', ', needs_approval: { path: usd, over: 5 }'), /:4:\d+: .*over: there is no such key here; there is path/],
    [plan(', cost: -1', ''), /tools\[0\]\.cost/],
    [plan('', '', 'budget: [{ per: turn }]\n'), /:2:\d+: budget\[0\]: must limit calls, usd or tokens/],
    [plan('', '', 'budget: [{ usd: 1, per: day }]\n'), /budget\[0\]\.per/],
    [plan('', '', 'budget: [{ usd: much, per: turn }]\n'), /budget\[0\]\.usd/],
  ])('R-22.8 %j is refused with its place', async (text, says) => {
    using files = folder();
    await expect(loadPlan(files.write('plan.yaml', text))).rejects.toThrow(says);
    const server = text.replace(/^turn:.*\n/m, '').replace(/tools:\n.*\n/, '');
    if (!server.includes('budget')) return;
    const parsed = parseMcp(['--config', files.write('mcp.yaml', server)]);
    await expect(configured(parsed ?? expect.fail())).rejects.toThrow(says);
  });

  it('R-22.8 a REST manifest, too', async () => {
    const provider = restProvider({
      name: 'bank',
      base_url: 'http://localhost:1',
      tools: [{ id: 'pay', method: 'POST', url: '/pay', needs_approval: { path: 'usd', above: 100 } }],
    });
    const layer = createSpillway({ providers: [provider], approvals: createApprovals({ ask: () => false }) });
    const refused = await layer.execute({ toolName: 'bank.pay', input: { usd: 500 } });
    expect(refused.error?.code).toBe('not_permitted');
    await layer.close();
  });
});

describe('spillway mcp and spillway run', { timeout: LONG_MS }, () => {
  it('R-22.8 a large payment through the proxy waits for spillway approve, and the budget ends the rest', async () => {
    using files = folder();
    using kept = ledger();
    const store = `sqlite:${join(files.path, 'calls.db')}`;
    const config = files.write(
      'mcp.yaml',
      [
        bank(kept.path),
        'tools: { pay: { needs_approval: { path: amount, above: 100 }, cost: 1 } }',
        'budget: [{ usd: 2, per: tenant }]',
      ].join('\n'),
    );
    let heard = '';
    const server = rawServer([process.execPath, MAIN, 'mcp', '--config', config, '--store', store], {
      heard: (text) => (heard += text),
    });
    for (const [method, params] of opening()) {
      if (method.startsWith('notifications/')) server.say({ method, ...(params === undefined ? {} : { params }) });
      else await server.ask(method, params);
    }
    await server.ask(...calls('pay', { amount: 7 }));
    const large = server.ask(...calls('pay', { amount: 5_000 }));
    expect(await approved(store)).toContain('"input":{"amount":5000}');
    expect(JSON.stringify(await large)).not.toContain('isError');
    expect(heard).toMatch(/pay waits for approval \S+: answer it with spillway approve/);
    const spent = JSON.stringify(await server.ask(...calls('pay', { amount: 8 })));
    expect(spent).toContain('budget is used up');
    expect(await server.end()).toBe(0);
  });

  it('R-22.8 a plan’s node waits for spillway approve', async () => {
    using files = folder();
    using kept = ledger();
    const store = `sqlite:${join(files.path, 'calls.db')}`;
    const plan = files.write(
      'plan.yaml',
      [
        bank(kept.path),
        'turn: { nodes: [{ id: rent, tool: bank.pay, input: { amount: 900 }, needs_approval: true }] }',
      ].join('\n'),
    );
    const nobody = await start(['run', plan], { SPILLWAY_STORE: '' }).ended;
    expect(nobody).toMatchObject({ code: 2, stdout: '' });
    expect(nobody.stderr).toContain('need approval, and nobody could give it; name a store with --store');
    const run = start(['run', plan, '--store', store]);
    expect(await approved(store)).toContain('"nodeId":"rent"');
    expect(await run.ended).toMatchObject({ code: 0 });
  });
});
