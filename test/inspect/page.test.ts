import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, ToolExecutionError, type Spillway, type TurnEvent } from 'spillway';
import { serveInspector, type InspectorServer } from 'spillway/inspect';
import { htmlReportSink } from 'spillway/sinks/html-report';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundlePage } from '../../.ci/page.ts';
import { DEMO, start, until } from '../cli/support.ts';
import {
  differingPixels,
  drawnAnew,
  lanesOf,
  openBrowser,
  openPage,
  rowsOf,
  settledRows,
  statesSeen,
  watchStates,
  type OpenedPage,
} from './browser.ts';

/** Every view, and what is there once it is drawn. */
const VIEWS = [
  ['waterfall', '.row[data-node]'],
  ['graph', 'img[alt^="The graph"]'],
  ['marbles', 'img[alt^="The marbles"]'],
  ['events', '.event'],
  ['compare', '[aria-label=Comparison] li'],
  ['lints', '[aria-label=Lints] p, [aria-label=Lints] li'],
] as const;
const AXE = readFileSync(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8');
const SECRET = 'sk-live-4711canary0815abcdef';
const HOSTILE = '<img src=x onerror="document.title=\'owned\'">';

const flaky = (name: string, failures: number) => {
  let asked = 0;
  return tool({
    name,
    policy: { effects: 'read', retry: { strategy: 'constant', initialDelayMs: 300, jitterPercent: 0 } },
    execute: (): string => {
      if (asked++ < failures)
        throw new ToolExecutionError('transport_error', `reset, token=${SECRET}`, { code: 'ECONNRESET' });
      return `fine ${SECRET}`;
    },
  });
};

/** A turn with a retry, a tool of a hostile name and message, and a node that was skipped. */
const turnOf = (spillway: Spillway): Promise<TurnEvent> => {
  const nodes = plan.from([
    { id: 'a', tool: 'flaky' },
    { id: HOSTILE, tool: HOSTILE, optional: true },
    { id: 'after', tool: 'flaky', needs: [HOSTILE], optional: true },
  ]);
  return lastValueFrom(spillway.turn(nodes));
};

const layer = (): Spillway =>
  createSpillway({
    tools: [
      flaky('flaky', 1),
      tool({ name: 'hangs', policy: { effects: 'read' }, execute: () => new Promise(() => undefined) }),
      tool({
        name: 'down',
        policy: { effects: 'read', retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } },
        execute: (): never => {
          throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET' });
        },
      }),
      tool({
        name: HOSTILE,
        policy: { effects: 'read' },
        execute: (): string => {
          throw new ToolExecutionError('not_permitted', `${HOSTILE} \u202e password=${SECRET}`);
        },
      }),
    ],
  });

const axeFindsNothing = async (page: Page, what: string): Promise<void> => {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: Array<{ id: string; nodes: Array<{ html: string; failureSummary: string }> }>;
  };
  const found = violations.map(({ id, nodes: [node] }) => [what, id, node?.html, node?.failureSummary]);
  expect(found).toEqual([]);
};

describe('the page', () => {
  let browser: Browser;
  const folder = mkdtempSync(join(tmpdir(), 'spillway-page-'));
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const opened = (url: string, options?: Parameters<Browser['newPage']>[0]): Promise<OpenedPage> =>
    openPage(browser, url, options);
  const inspected = async (work: (spillway: Spillway, server: InspectorServer) => Promise<void>): Promise<void> => {
    const spillway = layer();
    const server = await serveInspector(spillway);
    try {
      await work(spillway, server);
    } finally {
      await spillway.close();
      await server.close();
    }
  };

  it('SEE-8 is at most 15 kB of script, gzipped, which are 15,000 bytes', async () => {
    const { script } = await bundlePage();
    expect(gzipSync(script).length).toBeLessThanOrEqual(15_000);
  });

  it('SEE-8 of the demo, live: rows, states and reasons are those of --json, and the report’s', async () => {
    const html = join(folder, 'turn.html');
    const running = start(['run', DEMO, '--inspect', '--json', '--html', html]);
    try {
      await until(() => /inspect: \S+/.test(running.progress()));
      const { page, errors } = await opened(/inspect: (\S+)/.exec(running.progress())?.[1] ?? '');
      await watchStates(page);
      await until(() => running.progress().includes('the turn is over'));
      await settledRows(page, 9);
      const shown = await rowsOf(page);
      const seen = await statesSeen(page);
      const live = await lanesOf(page);
      running.child.kill('SIGINT');
      const { stdout, code } = await running.ended;
      const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Extract<
        TurnEvent,
        { source: 'turn'; type: 'settled' }
      >;
      expect(shown.map(({ node, state, reason }) => ({ node, state, reason }))).toEqual(
        last.result.nodes.map(({ id, state, reason, result }) => ({
          node: id,
          state,
          reason: reason ?? result?.error?.message ?? '',
        })),
      );
      // A node that the deadline cut off has no result to compare with.
      for (const { id, result } of last.result.nodes)
        if (result !== undefined) expect(shown.find(({ node }) => node === id)?.attempts).toBe(result.attempts);
      // What became of the demo hangs on how busy the machine is; that it is told truly does not.
      expect([code, errors]).toEqual([['completed', 'partial'].includes(last.result.status) ? 0 : 1, []]);
      // While it ran, too: each row was there in plan order, and in no state that it cannot have had by then.
      expect(seen.orders).toEqual([last.result.nodes.map(({ id }) => id).join(' ')]);
      for (const { id, state } of last.result.nodes)
        expect(seen.states[id], id).toMatch(new RegExp(`^(waiting )?(running )?${state}$`));

      const report = await opened(`file://${html}`, { offline: true });
      await settledRows(report.page, 9);
      expect(await lanesOf(report.page)).toEqual(live);
      // Drawn anew: what was drawn piece by piece has edges that a browser may have smoothed otherwise.
      const pictures = async (): Promise<number> =>
        differingPixels(browser, await drawnAnew(page), await drawnAnew(report.page));
      await expect.poll(pictures).toBe(0);
      expect(live.length).toBeGreaterThan(25);
      expect(report.errors).toEqual([]);
    } finally {
      running.child.kill('SIGKILL');
    }
  });

  it('SEE-10 a hostile name or message is text, and no secret is in page, report or stream', () =>
    inspected(async (spillway, server) => {
      const sink = htmlReportSink();
      spillway.trace$.subscribe(sink);
      const { page, errors } = await opened(server.page);
      await turnOf(spillway);
      await settledRows(page, 3);
      const rows = await rowsOf(page);
      expect(rows.map(({ node, state }) => [node, state])).toEqual([
        ['a', 'succeeded'],
        [HOSTILE, 'failed'],
        ['after', 'skipped'],
      ]);
      await page.locator('.row[data-node]').nth(1).click();
      const report = join(folder, 'hostile.html');
      await sink.write(report);
      const shown = await opened(`file://${report}`, { offline: true });
      await settledRows(shown.page, 3);
      const stream = await fetch(`${server.url}/events`, { headers: { authorization: `Bearer ${server.token}` } });
      let text = '';
      const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
      while (!text.includes('"type":"settled","result"')) text += new TextDecoder().decode((await reader.read()).value);
      await reader.cancel();
      const turnId = /"turnId":"([^"]+)"/.exec(text)?.[1] ?? '';
      for (const name of ['agent', 'marble-test', 'marbles', 'graph', 'lints', 'compare-', 'perfetto', 'otlp']) {
        const { page: address } = server;
        const given = await fetch(`${address.replace('/?', `/share/${name}?`)}&turn=${turnId}`);
        expect([name, given.status, (await given.text()).includes(SECRET)]).toEqual([name, 200, false]);
      }
      for (const [name, whole] of [
        ['page', await page.content()],
        ['report', readFileSync(report, 'utf8')],
        ['stream', text],
      ]) {
        expect(whole, name).not.toContain(SECRET);
        expect(whole, name).toContain('not_permitted');
      }
      for (const one of [page, shown.page]) {
        expect(await one.locator('#app img').count()).toBe(0);
        expect(await one.title()).not.toBe('owned');
      }
      expect([errors, shown.errors]).toEqual([[], []]);
    }));

  it('SEE-7 a page that is reloaded shows the same', () =>
    inspected(async (spillway, { page: url }) => {
      const { page } = await opened(url);
      await turnOf(spillway);
      await settledRows(page, 3);
      const before = await rowsOf(page);
      await page.reload();
      await settledRows(page, 3);
      expect(await rowsOf(page)).toEqual(before);
    }));

  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 360],
    ['dark', 360],
  ] as const)('SEE-11 axe finds nothing, in the %s and %i pixels wide', (colorScheme, width) =>
    inspected(async (spillway, { page: url }) => {
      const { page, errors } = await opened(url, { colorScheme, viewport: { width, height: 720 } });
      await turnOf(spillway);
      await turnOf(spillway);
      await settledRows(page, 3);
      await page.locator('.row[data-node]').first().click();
      for (const [view, shown] of VIEWS) {
        await page.click(`#tab-${view}`);
        await page.locator(shown).first().waitFor();
        await axeFindsNothing(page, view);
      }
      // While something runs and is waited for, and a breaker has a lane.
      spillway.turn(plan.from(['hangs', 'down'].map((id) => ({ id, tool: id, optional: true })))).subscribe();
      await page.click('#tab-waterfall');
      for (const kind of ['timeout', 'cooldown']) await page.locator(`.ghost[data-kind=${kind}]`).waitFor();
      await axeFindsNothing(page, 'live');
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(errors).toEqual([]);
    }),
  );

  it('SEE-11 is used by keys alone: views, rows, what was decided', () =>
    inspected(async (spillway, { page: url }) => {
      const { page } = await opened(url);
      await turnOf(spillway);
      await settledRows(page, 3);
      const focused = (): Promise<string> =>
        page.evaluate('document.activeElement.id || document.activeElement.dataset.node || ""');
      const tabTo = async (name: string): Promise<void> => {
        for (let presses = 0; (await focused()) !== name && presses < 40; presses++) await page.keyboard.press('Tab');
        expect(await focused()).toBe(name);
      };
      await tabTo('tab-waterfall');
      await page.keyboard.press('ArrowRight');
      expect(await focused()).toBe('tab-graph');
      await page.locator('img[alt^="The graph"]').waitFor();
      await page.keyboard.press('ArrowLeft');
      // A view is there with the next frame: until then Tab would go on from what is left of the other one.
      await page.locator('.row[data-node=a]').waitFor();
      await tabTo('a');
      await page.keyboard.press('Enter');
      await page.locator('.details h2', { hasText: 'a' }).waitFor();
      expect(await page.locator('.details').textContent()).toContain('retry in 300 ms');
      await page.keyboard.press('ArrowDown');
      await page.locator('.details h2', { hasText: HOSTILE }).waitFor();
    }));
});
