import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { addEvent, compareTraces, emptyTrace, serveTrace } from 'spillway/inspect';
import { inspectedSides, replayTrace, type ReplayReport } from 'spillway/simulate';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnyTool } from '../../../src/contract/tool.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';
import { folder, spillway, start, until, type Folder, type Running } from '../../cli/support.ts';
import { openBrowser, openPage } from '../../inspect/browser.ts';
import { writeTrace } from './files.ts';
import { recordStorm } from './storm.ts';

const SECRET = 'sk-live-4711canary0815abcdef';
const AGAIN = ['--set', 'flaky.retry.maxAttempts=1'];

/** Turns, of which the second needs a retry and says a secret, and a call outside of turns that needs two. */
const recorded = (): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  const policy = { effects: 'read', retry: { maxAttempts: 3 }, breaker: false } as const;
  const failures = new Map([
    [2, 1],
    [4, 2],
  ]);
  const execute = (input: unknown): string => {
    const left = failures.get(Number(input)) ?? 0;
    failures.set(Number(input), left - 1);
    if (left > 0) throw Object.assign(new Error(`down, token=${SECRET}`), { status: 503 });
    return 'well';
  };
  const tools: AnyTool[] = [{ name: 'flaky', policy, execute }];
  const layer = createSpillway({ tools, runtime: time });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  for (const input of [1, 2, 3])
    time.at(1_000_000 + input * 1_000, 0, () => {
      layer.turn(plan.from([{ id: `node${input}`, tool: 'flaky', input }])).subscribe();
    });
  for (const input of [4, 5])
    time.at(1_010_000 + input * 1_000, 0, () => {
      layer.call({ toolName: 'flaky', input }).subscribe();
    });
  time.run();
  return events;
};

/** The calls in their order, each by the turn that the page has of it. */
const ids = recorded().flatMap((event) => (event.type === 'call_started' ? [event.turnId ?? event.callId] : []));

/** What still runs when a test has failed is ended all the same. */
const running: Running[] = [];
const serving = (...args: readonly string[]): Running => {
  const command = start(['replay', ...args]);
  running.push(command);
  return command;
};

const addressOf = async ({ progress }: Running): Promise<URL> => {
  await until(() => /^inspect: .*\n/m.test(progress()));
  return new URL(/^inspect: (.*)$/m.exec(progress())?.[1] ?? '');
};

describe('RPL-7 a replay in the inspector', { timeout: 240_000 }, () => {
  let browser: Browser;
  let files: Folder;
  const at = (name: string): string => join(files.path, name);
  beforeAll(async () => {
    browser = await openBrowser();
    files = folder();
    writeTrace(at('trace.ndjson'), recorded());
    writeTrace(at('storm.ndjson'), recordStorm({ calls: 100, outage: [500, 1_500], policy: { breaker: false } }));
    files.write('once.yaml', 'name: once\ntools: { flaky: { retry_policy: { max_attempts: 1 } } }\n');
    files.write('grid.yaml', 'flaky.retry.maxAttempts: [1, 2]\n');
  });
  afterAll(async () => {
    for (const { child } of running) child.kill('SIGKILL');
    await browser?.close();
    files?.[Symbol.dispose]();
  });

  it('RPL-7 puts each turn and call of both sides beside each other, what flips last, the worst at the end', () => {
    const events = recordStorm({ calls: 100, outage: [500, 1_500], policy: { breaker: false } });
    const [found] = replayTrace(events, { set: ['pay.retry.maxAttempts=1'] }).candidates;
    if (found === undefined) throw new Error('no policy was asked about');
    const [before, after] = inspectedSides(found).map((side) => side.reduce(addEvent, emptyTrace()));
    if (before === undefined || after === undefined) throw new Error('a side is missing');
    const pairs = compareTraces(before, after);
    expect(pairs).toHaveLength(100);
    const flipped = pairs.filter(
      ({ nodes, status: [a, b] }) => a !== b || nodes.some(({ change }) => change !== 'same'),
    );
    expect(flipped.map(({ turnIds: [id] }) => id)).toEqual(found.flips.map(({ callId }) => callId).toReversed());
    expect(pairs.slice(-flipped.length)).toEqual(flipped);
    for (const { callId, before: was, after: is } of found.flips) {
      const pair = flipped.find(({ turnIds: [id] }) => id === callId);
      expect(pair?.attempts).toEqual([was.attempts, is.attempts]);
      expect(pair?.status.map((status) => status === 'completed')).toEqual(
        [was, is].map(({ status }) => status === 'success'),
      );
    }
    expect([...before.loose, ...after.loose]).toEqual([]);
  });

  it('RPL-7 the command serves it until interrupted, to who has the token, and ends with its verdict', async () => {
    const command = serving(at('trace.ndjson'), '--policy', at('once.yaml'), '--inspect', '--json');
    const address = await addressOf(command);
    const share = new URL(address);
    share.pathname = '/share/compare-';
    share.searchParams.set('turn', ids[1] ?? '');
    const view = (await (await fetch(share)).json()) as { chosen: string; about: string[]; nodes: string[][] };
    expect(view.chosen).toBe(`2:${ids[1]}`);
    expect(view.about[0]).toContain('5 turns of this trace and the other belong together, 2 of them differ (4, 5)');
    expect(view.nodes).toEqual([['node2', 'changed', expect.stringContaining('succeeded → failed; 2 → 1 attempts')]]);
    expect(JSON.stringify(view)).not.toContain(SECRET);
    address.searchParams.set('token', 'wrong-wrong-wrong-wrong');
    expect((await fetch(address)).status).toBe(403);
    command.child.kill('SIGINT');
    const { code, stdout, stderr } = await command.ended;
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as ReplayReport).candidates[0]?.verdict).toMatchObject({ code: 'worse', calls: 2 });
    expect(stderr).toMatch(/^inspect: \S+\n$/);
  });

  it('RPL-7 a person sees the worst first, and what each side decided of it', async () => {
    const command = serving(at('trace.ndjson'), ...AGAIN, '--inspect');
    const { page, errors } = await openPage(browser, (await addressOf(command)).href);
    await page.locator('.turn').nth(4).waitFor();
    await page.click('#tab-compare');
    const view = page.locator('[aria-label=Comparison]');
    await view.locator('li').first().waitFor();
    // Both lose their success; of the turn less time was lost with it. What is decided as it was comes after them.
    expect(await view.locator('li').allTextContents()).toEqual([
      expect.stringMatching(/^node2 succeeded → failed; 2 → 1 attempts; .*#1 503: retry \(transient\) → 503: escalate/),
    ]);
    expect(await view.textContent()).toContain('completed → escalated');
    await page.locator('.turn').nth(1).click();
    await view.locator('li', { hasText: 'flaky succeeded → failed; 3 → 1 attempts' }).waitFor();
    await page.locator('.turn').nth(2).click();
    await view.locator('li.same').waitFor();
    expect(await page.content()).not.toContain(SECRET);
    expect(errors).toEqual([]);
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(1);
  });

  it('RPL-7 of a grid it shows the best policy, and of several without one it says why not', async () => {
    const command = serving(at('trace.ndjson'), '--rank', at('grid.yaml'), '--inspect', '0');
    const share = await addressOf(command);
    share.pathname = '/share/compare-';
    share.searchParams.set('turn', ids.at(-1) ?? '');
    const { about } = (await (await fetch(share)).json()) as { about: string[] };
    // With two attempts only the call that needs three fails.
    expect(about[0]).toContain('1 of them differ (5)');
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(1);
    const once = ['--policy', at('once.yaml')];
    for (const [args, why] of [
      [[...once, ...once], '--inspect shows one policy beside the recorded one, not 2'],
      [[], 'give --policy, --set or --rank, too'],
      [[...once, '--inspect=70000'], '--inspect must be a port from 0 to 65535'],
    ] as const) {
      const ran = await spillway('replay', at('trace.ndjson'), '--inspect', ...args);
      expect(ran).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(why) as string });
    }
  });

  it('RPL-6 nothing is served of a trace that is refused', async () => {
    const torn = files.write('torn.ndjson', readFileSync(at('trace.ndjson'), 'utf8').slice(0, -30));
    const ran = await spillway('replay', torn, ...AGAIN, '--inspect');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).not.toContain('http');
  });

  it('SEE-7 serveTrace shows one trace alone, without its secrets, and refuses unknown options', async () => {
    const server = await serveTrace(recorded());
    try {
      const events = await fetch(`${server.url}/events?token=${server.token}`);
      const text = await events.text();
      expect(text).toContain('event: end');
      expect(text.match(/"type":"turn_started"/g)).toHaveLength(3);
      expect(text).not.toContain(SECRET);
    } finally {
      await server.close();
    }
    await expect(serveTrace([], { compareTo: [] } as object)).rejects.toThrow('compareTo');
  });
});
