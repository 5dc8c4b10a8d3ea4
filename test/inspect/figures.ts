// `node test/inspect/figures.ts`: what the page takes, in Chromium without a screen. Ends with 1 over a limit.
// Times are those of this machine at this moment: those of an almost empty trace are measured beside them.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { bundlePage } from '../../.ci/page.ts';
import { serveTraceFile } from '../../src/gateway/inspector-server.ts';
import { newPage, openBrowser } from './browser.ts';
import { manyCalls } from './many-calls.ts';

const MEGABYTES = 50;
const ROUNDS = 3;
const folder = mkdtempSync(join(tmpdir(), 'spillway-figures-'));
const trace = (name: string, calls: number): string => {
  const file = join(folder, `${name}.ndjson`);
  manyCalls(file, calls);
  return file;
};
let isOver = false;
const tell = (what: string, figure: number, limit: number, unit: string): void => {
  isOver ||= figure > limit;
  process.stdout.write(`${figure > limit ? 'OVER ' : ''}${what}: ${figure.toFixed(1)} ${unit}, at most ${limit}\n`);
};

/** From the beginning of the navigation until the first frame in which a row of the trace is drawn. */
const firstRowMs = async (browser: Browser, file: string): Promise<number> => {
  const server = await serveTraceFile(file);
  const page = await newPage(browser);
  try {
    await page.addInitScript(() => {
      const look = (): void => {
        if (document.querySelector('.row[data-node]') === null) requestAnimationFrame(look);
        else requestAnimationFrame(() => Object.assign(globalThis, { firstRow: performance.now() }));
      };
      requestAnimationFrame(look);
    });
    await page.goto(server.page, { waitUntil: 'commit' });
    const found = await page.waitForFunction(
      () => Reflect.get(globalThis, 'firstRow') as number | undefined,
      undefined,
      { timeout: 60_000 },
    );
    return Number(await found.jsonValue());
  } finally {
    await page.close();
    await server.close();
  }
};

const least = async (work: () => Promise<number>): Promise<number> => {
  const all: number[] = [];
  for (let round = 0; round < ROUNDS; round++) all.push(await work());
  return Math.min(...all);
};

/** The time between frames while the list is scrolled from end to end. */
const frames = (page: Page): Promise<number[]> =>
  page.evaluate(async () => {
    const list = document.querySelector('[aria-label="Nodes of the turn"]');
    const gaps: number[] = [];
    let before = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < 300; frame++) {
      if (list !== null) list.scrollTop = (list.scrollHeight * frame) / 300;
      const now = await new Promise(requestAnimationFrame);
      gaps.push(now - before);
      before = now;
    }
    return gaps;
  });

const p95 = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.95)] ?? Infinity;

const browser = await openBrowser();
try {
  process.stdout.write(`load ${loadavg()[0]?.toFixed(1)}\n`);
  const { script } = await bundlePage();
  tell('script, gzipped', gzipSync(script).length, 15_000, 'bytes');
  const small = await least(() => firstRowMs(browser, trace('small', 1)));
  const file = trace('large', 65_000);
  const bytes = statSync(file).size / 1e6;
  if (bytes < MEGABYTES) throw new Error(`the large trace has ${bytes} MB alone`);
  const large = await least(() => firstRowMs(browser, file));
  process.stdout.write(`first row of an almost empty trace: ${small.toFixed(0)} ms\n`);
  tell(`first row of a trace of ${bytes.toFixed(0)} MB`, large, 1_500, 'ms');

  const calls = trace('calls', 10_000);
  const server = await serveTraceFile(calls);
  const page = await newPage(browser);
  await page.goto(server.page);
  const heard = (count: number): Promise<void> =>
    page.locator(`[data-heard="${count * 5}"]`).waitFor({ timeout: 60_000 });
  await heard(10_000);
  tell('rows in the page of 10,000 calls', await page.locator('.row').count(), 400, 'rows');
  const cdp = await page.context().newCDPSession(page);
  const cpuMs = async (): Promise<number> => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1_000;
  };
  const blank = await newPage(browser);
  const idle = p95(await frames(blank));
  await blank.close();
  const gaps = await frames(page);
  // Beside that, since what measures it slows it down.
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const startMs = await cpuMs();
  const { length } = await frames(page);
  const cpu = ((await cpuMs()) - startMs) / length;
  // Where others want the processor, a page on which nothing is drawn waits for its frames, too.
  tell('processor time of a frame while it scrolls', cpu, 20, 'ms');
  tell(
    `p95 of a frame while it scrolls (a blank page: ${idle.toFixed(1)} ms)`,
    p95(gaps),
    Math.max(20, idle * 1.25),
    'ms',
  );
  const heap = async (): Promise<number> => {
    await cdp.send('HeapProfiler.collectGarbage');
    return (await cdp.send('Runtime.getHeapUsage')).usedSize / 1e6;
  };
  const before = await heap();
  manyCalls(calls, 20_000, 10_000);
  await heard(30_000);
  tell(`heap over 100,000 events more, from ${before.toFixed(1)} MB`, await heap(), before * 1.1, 'MB');
  await server.close();
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = isOver ? 1 : 0;
