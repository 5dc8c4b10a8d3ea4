import type { Browser } from 'playwright-core';
import { ReplaySubject } from 'rxjs';
import type { TraceEvent } from 'spillway';
import { serveInspector } from 'spillway/inspect';
import { virtualRuntime } from 'spillway/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBrowser, openPage } from './browser.ts';

const OF = { source: 'turn', turnId: 't' } as const;
const CALL = { source: 'call', turnId: 't', nodeId: 'pay', callId: 'c', toolName: 'pay' } as const;
const MINUTE_MS = 60_000;

describe('SEE-1 a turn of a fleet on the page', { timeout: 120_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it('SEE-1 says who runs it, until when, what its calls used, and which breaker was ordered', async () => {
    const trace$ = new ReplaySubject<TraceEvent>();
    const runtime = virtualRuntime();
    const server = await serveInspector({ trace$ }, { runtime });
    const atMs = runtime.now();
    const events: readonly TraceEvent[] = [
      {
        ...OF,
        type: 'turn_started',
        seq: 1,
        atMs,
        timeoutMs: 60 * MINUTE_MS,
        nodes: [{ id: 'pay', toolName: 'pay', needs: [] }],
        worker: 'worker-1',
      },
      { ...OF, type: 'turn_moved', seq: 2, atMs, from: 'worker-1', to: 'worker-2', afterMs: 9, ranMs: 40 * MINUTE_MS },
      { ...CALL, type: 'call_started', seq: 3, atMs },
      { ...CALL, type: 'attempt_started', seq: 4, atMs, attempt: 1 },
      { ...CALL, type: 'attempt_succeeded', seq: 5, atMs, attempt: 1, durationMs: 0, usage: { usd: 0.5 } },
      {
        source: 'layer',
        type: 'breaker_changed',
        seq: 6,
        atMs,
        toolName: 'pay',
        scope: '',
        from: 'closed',
        to: 'open',
        message: '',
        ordered: true,
      },
    ];
    try {
      for (const event of events) trace$.next(event);
      const { page } = await openPage(browser, server.page);
      await page.locator('.details', { hasText: 'runs on worker-2' }).waitFor();
      expect(await page.locator('.segment.k-open').getAttribute('title')).toBe('open, ordered');
      // Of the hour the fleet had it for forty minutes.
      const left = await page.locator('.axis .countdown').textContent();
      expect(left).toMatch(/^(19|20) min/);
      await page.locator('.row[data-node=pay]').click();
      await page.locator('.details', { hasText: 'used 0.5 usd' }).waitFor();
    } finally {
      await server.close();
    }
  });
});
