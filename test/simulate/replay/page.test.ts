import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnyTool } from '../../../src/contract/tool.ts';
import type { ReplayReport } from '../../../src/simulate/index.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';
import { folder, spillway, type Folder } from '../../cli/support.ts';
import { openBrowser, openPage } from '../../inspect/browser.ts';
import { traceLines, writeTrace } from './files.ts';
import { recordStorm } from './storm.ts';

const AXE = readFileSync(join(import.meta.dirname, '../../../node_modules/axe-core/axe.min.js'), 'utf8');
const HOSTILE = '<img src=x onerror="document.title=\'owned\'">';
const SECRET = 'sk-live-4711canary0815abcdef';

/** Turns of two nodes, in each of which the first one fails once and says a secret. */
const recordTurns = (count: number): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  let asked = 0;
  const policy = { effects: 'read', retry: { maxAttempts: 2 }, breaker: false } as const;
  const fails = (): string => {
    if (asked++ % 2 === 0) throw Object.assign(new Error(`down, token=${SECRET}`), { status: 503 });
    return 'well';
  };
  const tools: AnyTool[] = [
    { name: 'flaky', policy, execute: fails },
    { name: HOSTILE, policy, execute: () => 'fine' },
  ];
  const layer = createSpillway({ tools, runtime: time });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const nodes = [
    { id: 'first', tool: 'flaky' },
    { id: HOSTILE, tool: HOSTILE, needs: ['first'] },
  ];
  for (let i = 0; i < count; i++)
    time.at(1_000_000 + i * 1_000, 0, () => void layer.turn(plan.from(nodes)).subscribe());
  time.run();
  return events;
};

/** Every number that the page has of a policy, by its path in the report, beside that of the report. */
const figuresOf = async (page: Page, { candidates }: ReplayReport): Promise<ReadonlyArray<readonly number[]>> => {
  const shown = await page
    .locator('section')
    .evaluateAll((sections) =>
      sections.map((section) =>
        [...section.querySelectorAll<HTMLDataElement>('data[data-figure]')].map(
          (one) => [one.dataset['figure'] ?? '', one.value, one.textContent] as const,
        ),
      ),
    );
  return shown.flatMap((figures, index) =>
    figures.map(([path, value, text]) => {
      const told = path.split('.').reduce<unknown>((at, name) => Reflect.get(at as object, name), candidates[index]);
      return [Number(told), Number(value), Number(text)];
    }),
  );
};

describe('RPL-7 a replay as a page', { timeout: 120_000 }, () => {
  let browser: Browser;
  let files: Folder;
  const at = (name: string): string => join(files.path, name);
  beforeAll(async () => {
    browser = await openBrowser();
    files = folder();
    writeTrace(at('storm.ndjson'), recordStorm({ calls: 200, outage: [1_000, 2_500], policy: { breaker: false } }));
    writeTrace(at('turns.ndjson'), recordTurns(3));
  });
  afterAll(async () => {
    await browser?.close();
    files?.[Symbol.dispose]();
  });

  it('RPL-7 has the verdict, the bounds and each flipped call of --json, both sides beside each other', async () => {
    const out = at('storm.html');
    const args = ['--set', 'pay.retry.maxAttempts=1', '--html', out, '--json'];
    const ran = await spillway('replay', at('storm.ndjson'), ...args);
    expect(ran).toMatchObject({ code: 1, stderr: '' });
    const report = JSON.parse(ran.stdout) as ReplayReport;
    const [found] = report.candidates;
    const { page, errors } = await openPage(browser, `file://${out}`, { offline: true });
    expect(await page.locator('.verdict').allTextContents()).toEqual([found?.verdict.text]);
    const figures = await figuresOf(page, report);
    expect(figures).toHaveLength(3 + 3 * 5 + 6);
    for (const [told, value, text] of figures) expect([value, text]).toEqual([told, told]);
    const calls = await page
      .locator('.flip')
      .evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset['call']));
    expect(calls).toEqual(found?.flips.slice(0, 50).map(({ callId }) => callId));
    expect(await page.getByText(`And ${(found?.flips.length ?? 0) - 50} more`).count()).toBe(1);

    const pictures = await page.locator('.flip').first().locator('svg').all();
    const [left, right] = await Promise.all(pictures.map((picture) => picture.boundingBox()));
    expect(pictures).toHaveLength(2);
    expect(left?.y).toBe(right?.y);
    expect((left?.x ?? 0) + (left?.width ?? 0)).toBeLessThanOrEqual(right?.x ?? 0);
    const rows = await page.locator('.flip').first().locator('tbody tr').allTextContents();
    expect(rows[0]).toMatch(/^attempt 1.*: retry \(transient\).*; again in \d+ ms.*: escalate \(attempts_exhausted\)/);
    expect(rows.at(-1)).toMatch(/^endssuccess, 2 attempts, .* attempt, /);
    expect(errors).toEqual([]);
  });

  it('RPL-7 shows the whole turn of a node on both sides, once, and a call that is not made as such', async () => {
    const out = at('turns.html');
    const ran = await spillway('replay', at('turns.ndjson'), '--set', 'flaky.retry.maxAttempts=1', '--html', out);
    expect(ran).toMatchObject({ code: 1, stderr: '' });
    const { page, errors } = await openPage(browser, `file://${out}`, { offline: true });
    // Of each turn both calls flip: the one that fails, and the one that needs it.
    expect(await page.locator('.flip').count()).toBe(6);
    expect(await page.locator('details').count()).toBe(3);
    expect(await page.locator('details svg').count()).toBe(6);
    expect(await page.getByText('Not made on this side.').count()).toBe(3);
    expect(await page.locator('.flip h3').allTextContents()).toContainEqual(expect.stringMatching(/→ not made$/));
    const [link] = await page.locator('.flip a').all();
    const target = (await link?.getAttribute('href')) ?? '';
    expect(await page.locator(target).locator('summary').textContent()).toMatch(/^The whole turn \S+$/);
    // A name is text, and a secret is nowhere.
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.locator('.flip h3').allTextContents()).toContainEqual(expect.stringContaining(HOSTILE));
    expect(readFileSync(out, 'utf8')).not.toContain(SECRET);
    expect(errors).toEqual([]);
  });

  it.each([1_280, 360])('RPL-7 can be read by all, at %d pixels, and runs and loads nothing', async (width) => {
    const out = at('rank.html');
    const grid = files.write('grid.yaml', 'flaky.retry.maxAttempts: [1, 2]\n');
    const ran = await spillway('replay', at('turns.ndjson'), '--rank', grid, '--html', out);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(out, 'utf8')).not.toMatch(/<script|\b(?:src|href)="(?!#)/);
    const { page } = await openPage(browser, `file://${out}`, {
      offline: true,
      bypassCSP: true,
      viewport: { width, height: 800 },
    });
    expect(await page.locator('.overview tbody tr').allTextContents()).toEqual([
      expect.stringMatching(/^flaky\.retry\.maxAttempts=2safe to ship/),
      expect.stringMatching(/^flaky\.retry\.maxAttempts=1worse for 6 calls/),
    ]);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wider).toBeLessThanOrEqual(0);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() =>
      (globalThis as unknown as { axe: { run: () => Promise<{ violations: unknown[] }> } }).axe.run(),
    );
    expect(violations).toEqual([]);
  });

  it('RPL-6 there is no page of a trace that is refused, nor one in the place of what is read', async () => {
    const out = at('none.html');
    const torn = files.write('torn.ndjson', traceLines(recordTurns(1)).join('').slice(0, -30));
    expect(await spillway('replay', torn, '--html', out)).toMatchObject({ code: 2, stdout: '' });
    expect(existsSync(out)).toBe(false);
    const trace = at('turns.ndjson');
    const before = readFileSync(trace);
    expect(await spillway('replay', trace, '--html', trace)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('which it would overwrite') as string,
    });
    expect(readFileSync(trace)).toEqual(before);
  });
});
