import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { serveTraceFile, type InspectorServer } from 'spillway/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newPage, openBrowser, openPage } from './browser.ts';
import { manyCalls } from './many-calls.ts';

const FRAMES = 120;
const ROUNDS = 3;
/** What a plain list works in each frame that is measured beside: where others want the processor, it waits, too. */
const BESIDE_MS = 8;
const BESIDE_FACTOR = 1.5;
/** On a busy machine a frame of either is late by chance: so many pairs are looked at before it is the page's fault. */
const PAIRS = 10;
/** What Chromium's trace calls all that the main thread does for a frame. */
const FRAME = 'ProxyMain::BeginMainFrame';
/** How many rounds of nothing a millisecond has where the budget of 20 ms a frame was set. */
const ROUNDS_PER_MS = 140_000;
/** The budget of 1.5 s is so many plain readings of the file, where it was set: a machine as slow has as many. */
const READINGS = 3;

const p95 = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.95)] ?? Infinity;

/** Processor time of the page's main thread so far: what others do meanwhile is not in it. */
const busyMs = async (cdp: CDPSession): Promise<number> => {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN) * 1_000;
};
const watched = async (page: Page): Promise<CDPSession> => {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  return cdp;
};

/** Moves the list on, and waits until the frame after the one that draws it. */
const scrolled = (page: Page, share: number): Promise<unknown> =>
  page.evaluate(async (to) => {
    const list = document.querySelector('[aria-label="Nodes of the turn"]');
    if (list !== null) list.scrollTop = list.scrollHeight * to;
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  }, share);

/** How many rounds of nothing take the main thread a millisecond, of its own time. */
const roundsPerMs = async (page: Page): Promise<number> => {
  const cdp = await watched(page);
  const before = await busyMs(cdp);
  const rounds = 20_000_000;
  await page.evaluate((count) => {
    let sum = 0;
    for (let round = 0; round < count; round++) sum = (sum * 31 + round) | 0;
    return sum;
  }, rounds);
  return rounds / ((await busyMs(cdp)) - before);
};

/** The time between frames while the list is scrolled from end to end, or so many rounds of nothing are done. */
const frames = (page: Page, rounds = 0): Promise<number[]> =>
  page.evaluate(
    async ([count, work]) => {
      const list = document.querySelector('[aria-label="Nodes of the turn"]');
      const gaps: number[] = [];
      let before = await new Promise(requestAnimationFrame);
      for (let frame = 0; frame < count; frame++) {
        if (list !== null) list.scrollTop = (list.scrollHeight * frame) / count;
        let sum = 0;
        for (let round = 0; round < work; round++) sum = (sum * 31 + round) | 0;
        Object.assign(globalThis, { sum });
        const now = await new Promise(requestAnimationFrame);
        gaps.push(now - before);
        before = now;
      }
      return gaps;
    },
    [FRAMES, rounds] as const,
  );

/** A list as long, of nothing but words: what scrolling and drawing take here without the inspector. */
const plainList = async (browser: Browser): Promise<Page> => {
  const page = await newPage(browser);
  await page.evaluate(() => {
    const list = document.body.appendChild(document.createElement('div'));
    list.setAttribute('aria-label', 'Nodes of the turn');
    list.style.cssText = 'height: 90vh; overflow: auto';
    for (let row = 0; row < 2_000; row++) list.appendChild(document.createElement('p')).textContent = `call ${row}`;
  });
  return page;
};

/** A plain reading of the file: how slow this machine is now, by the same kind of work. */
const parsedMs = (file: string): number => {
  const startedAtMs = performance.now();
  for (const line of readFileSync(file, 'utf8').split('\n')) if (line !== '') JSON.parse(line);
  return performance.now() - startedAtMs;
};

/** What each frame takes the page's main thread, of its own time, while the list is scrolled from end to end. */
const usedOfFrames = async (page: Page): Promise<number[]> => {
  const tracedBy = page.context().browser();
  await tracedBy?.startTracing(page, { categories: ['cc'] });
  await frames(page);
  const { traceEvents } = JSON.parse(String(await tracedBy?.stopTracing())) as {
    readonly traceEvents: readonly { readonly name: string; readonly tdur?: number }[];
  };
  return traceEvents.filter(({ name }) => name === FRAME).map(({ tdur = 0 }) => tdur / 1_000);
};

/** From the beginning of the navigation until the frame after the first row: by the wall, and what it took. */
const firstRow = async (
  browser: Browser,
  file: string,
): Promise<{ readonly wallMs: number; readonly usedMs: number }> => {
  const server = await serveTraceFile(file);
  const page = await newPage(browser);
  try {
    // So that the page's own process is there, and is asked.
    await page.goto(server.page.replace('/?', '/icon.svg?'));
    const cdp = await watched(page);
    await page.addInitScript(() => {
      const look = (): void => {
        if (document.querySelector('.row[data-node]') === null) requestAnimationFrame(look);
        else requestAnimationFrame(() => Object.assign(globalThis, { firstRow: performance.now() }));
      };
      requestAnimationFrame(look);
    });
    const [before, own] = [await busyMs(cdp), process.cpuUsage()];
    await page.goto(server.page, { waitUntil: 'commit' });
    const found = await page.waitForFunction(() => Reflect.get(globalThis, 'firstRow') as number | undefined);
    const { user, system } = process.cpuUsage(own);
    return { wallMs: Number(await found.jsonValue()), usedMs: (await busyMs(cdp)) - before + (user + system) / 1_000 };
  } finally {
    await page.close();
    await server.close();
  }
};

describe('SEE-8 a page of very much', { timeout: 300_000 }, () => {
  let browser: Browser;
  const folder = mkdtempSync(join(tmpdir(), 'spillway-size-'));
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const traceOf = (name: string, calls: number): string => {
    const file = join(folder, `${name}.ndjson`);
    manyCalls(file, calls);
    return file;
  };
  const heard = (page: Page, calls: number): Promise<void> =>
    page.locator(`[data-heard="${calls * 5}"]`).waitFor({ timeout: 120_000 });
  const of10000 = async (work: (page: Page, file: string) => Promise<void>): Promise<void> => {
    const file = traceOf('many', 10_000);
    let server: InspectorServer | undefined;
    try {
      server = await serveTraceFile(file);
      const { page, errors } = await openPage(browser, server.page);
      await heard(page, 10_000);
      await work(page, file);
      expect(errors).toEqual([]);
      await page.close();
    } finally {
      await server?.close();
      rmSync(file);
    }
  };

  it('SEE-8 of 10,000 calls at most 400 rows are in the page, whatever part of them is seen', () =>
    of10000(async (page) => {
      const shown = new Set<string>();
      for (const share of [0, 0.3, 0.7, 1]) {
        await scrolled(page, share);
        expect(await page.locator('.row, .turn, .event').count()).toBeLessThanOrEqual(400);
        for (const node of await page
          .locator('.row[data-node]')
          .evaluateAll((rows) => rows.map((row) => (row as HTMLElement).dataset['node'] ?? '')))
          shown.add(node);
      }
      expect([shown.has('c0'), shown.has('c9999'), shown.size > 80]).toEqual([true, true, true]);
      await page.click('#tab-events');
      await page.locator('.event').first().waitFor();
      expect(await page.locator('.row, .turn, .event').count()).toBeLessThanOrEqual(400);
    }));

  it('SEE-8 the p95 of a frame of 10,000 calls is at most 20 ms', () =>
    of10000(async (page) => {
      const beside = await plainList(browser);
      const perMs = await roundsPerMs(beside);
      const used: number[] = [];
      for (let round = 0; round < ROUNDS; round++) used.push(p95(await usedOfFrames(page)));
      expect(Math.min(...used)).toBeLessThanOrEqual(20 * Math.max(1, ROUNDS_PER_MS / perMs));
      // By the wall, beside a plain list that is scrolled just before.
      const pairs: { readonly own: number; readonly allowed: number }[] = [];
      while (pairs.length < PAIRS && !pairs.some(({ own, allowed }) => own <= allowed)) {
        await beside.bringToFront();
        const other = p95(await frames(beside, BESIDE_MS * perMs));
        await page.bringToFront();
        pairs.push({ own: p95(await frames(page)), allowed: Math.max(20, other * BESIDE_FACTOR) });
      }
      await beside.close();
      expect(
        pairs.some(({ own, allowed }) => own <= allowed),
        JSON.stringify(pairs),
      ).toBe(true);
    }));

  it('SEE-8 the heap stays as it is over 100,000 events', () =>
    of10000(async (page, file) => {
      const cdp = await page.context().newCDPSession(page);
      const heap = async (): Promise<number> => {
        await cdp.send('HeapProfiler.collectGarbage');
        return (await cdp.send('Runtime.getHeapUsage')).usedSize;
      };
      const before = await heap();
      manyCalls(file, 20_000, 10_000);
      await heard(page, 30_000);
      expect(await heap()).toBeLessThanOrEqual(before * 1.1);
    }));

  it('SEE-8 the first row of a trace of 50 MB is drawn within 1.5 s', async () => {
    const large = traceOf('large', 65_000);
    expect(statSync(large).size).toBeGreaterThan(50 * 10 ** 6);
    const all = { wallMs: Infinity, usedMs: Infinity };
    let [readingMs, limitMs] = [Infinity, 1_500];
    for (let round = 0; round < PAIRS && (round < ROUNDS || all.wallMs > limitMs); round++) {
      readingMs = Math.min(readingMs, parsedMs(large));
      limitMs = Math.max(1_500, readingMs * READINGS);
      const { wallMs, usedMs } = await firstRow(browser, large);
      all.wallMs = Math.min(all.wallMs, wallMs);
      all.usedMs = Math.min(all.usedMs, usedMs);
    }
    // What server and page take for it together, one after the other; and by the wall.
    expect(all.usedMs).toBeLessThanOrEqual(limitMs);
    expect(all.wallMs).toBeLessThanOrEqual(limitMs);
  });
});
