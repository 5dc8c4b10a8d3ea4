import type { Browser, Page } from 'playwright-core';
import { Subject } from 'rxjs';
import type { TraceEvent } from 'spillway';
import { serveInspector } from 'spillway/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBrowser, openPage } from './browser.ts';
import { cuttable, type Cuttable } from './cuttable.ts';

const TOKEN = 'a-token-of-our-own-4711';
/** What the server keeps at most. */
const KEPT_MAX = 200_000;

/** Calls outside of turns, two events each. */
const calls = (trace$: Subject<TraceEvent>, from: number, count: number): void => {
  for (let index = from; index < from + count; index++) {
    const own = { source: 'call', callId: `c${index}`, toolName: 'search', atMs: index } as const;
    trace$.next({ ...own, seq: index * 2, type: 'call_started' });
    trace$.next({ ...own, seq: index * 2 + 1, type: 'abandoned' });
  }
};

const heardBy = async (page: Page): Promise<number> =>
  Number(await page.locator('[data-heard]').getAttribute('data-heard'));

describe('SEE-7 a page whose connection is cut', { timeout: 240_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  const behind = async (work: (parts: { page: Page; way: Cuttable; trace$: Subject<TraceEvent> }) => Promise<void>) => {
    const trace$ = new Subject<TraceEvent>();
    const server = await serveInspector({ trace$ }, { token: TOKEN });
    const way = await cuttable(() => Number(new URL(server.url).port));
    try {
      const { page } = await openPage(browser, `http://127.0.0.1:${way.port}/?token=${TOKEN}`);
      await page.locator('.c-live').waitFor();
      await work({ page, way, trace$ });
    } finally {
      way.close();
      await server.close();
    }
  };

  it('SEE-7 in the midst of a message, again and again: it hears every event, and none twice', () =>
    behind(async ({ page, way, trace$ }) => {
      let told = 0;
      for (const bytes of [1, 777, 100_001, 300_003]) {
        const cut = way.cutAfter(bytes);
        calls(trace$, told, 2_000);
        told += 2_000;
        await cut;
      }
      await page.locator(`[data-heard="${told * 2}"]`).waitFor();
      await page.locator('.c-live').waitFor();
      calls(trace$, told, 1);
      await page.locator(`[data-heard="${told * 2 + 2}"]`).waitFor();
      expect(await page.locator('.turn').textContent()).toContain(`${told + 1} calls`);
    }));

  it('SEE-7 for longer than the server keeps events: it says how many it has missed, and goes on', () =>
    behind(async ({ page, way, trace$ }) => {
      calls(trace$, 0, 10);
      await page.locator('[data-heard="20"]').waitFor();
      way.cut();
      await page.locator('.c-lost').waitFor();
      const more = KEPT_MAX / 2 + 5_000;
      calls(trace$, 10, more);
      way.mend();
      await page.locator('.c-live').waitFor();
      await page.locator('header .quiet', { hasText: 'events not kept' }).waitFor();
      const missed = Number.parseInt((await page.locator('header .quiet').allTextContents()).join(' '), 10);
      await expect.poll(() => heardBy(page)).toBe(20 + more * 2 - missed);
      expect(missed).toBeGreaterThanOrEqual(10_000);
      calls(trace$, 10 + more, 1);
      await expect.poll(() => heardBy(page)).toBe(22 + more * 2 - missed);
    }));
});
