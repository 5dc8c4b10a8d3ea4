// Was: the page called a call late that the deadline had cut off, since its end came after the deadline; what was kept,
// late and cut was nowhere counted. Now: late is what went on, and the axis says how many there are of each.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { filter, firstValueFrom, lastValueFrom, timer } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';
import { htmlReportSink } from 'spillway/sinks/html-report';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBrowser, openPage, settledRows } from '../inspect/browser.ts';

let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), 'spillway-fates-'));
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each([
  ['abort', ['succeeded, kept', 'timed out, cut'], '1 kept, 0 late, 1 cut'],
  ['detach', ['succeeded, kept', 'timed out, late'], '1 kept, 1 late, 0 cut'],
] as const)(
  'SEE-8 with %s the page says what the deadline kept, what went on and what it cut',
  async (onDeadline, words, counts) => {
    // On a real clock what the deadline ends, ends a little later than it.
    const takes = (name: string, ms: number) =>
      tool({ name, policy: { effects: 'read' }, execute: () => lastValueFrom(timer(ms)) });
    const spillway = createSpillway({ tools: [takes('quick', 0), takes('slow', 1_500)] });
    const sink = htmlReportSink();
    spillway.trace$.subscribe(sink);
    const ends = firstValueFrom(
      spillway.trace$.pipe(
        filter((event) => event.source === 'call' && event.toolName === 'slow' && event.type === 'settled'),
      ),
    );
    const nodes = ['quick', 'slow'].map((id) => ({ id, tool: id, optional: true }));
    const over = lastValueFrom(spillway.turn(plan.from(nodes, { timeoutMs: 500, onDeadline })));
    await Promise.all([over, ends]);
    const report = join(folder, `${onDeadline}.html`);
    await sink.write(report);
    const { page, errors } = await openPage(browser, `file://${report}`);
    await settledRows(page, 2);
    const states = await page.locator('.row[data-node] .state').allTextContents();
    expect(states.map((text, index) => text.startsWith(words[index] ?? '?'))).toEqual([true, true]);
    expect(await page.locator('.axis .state').textContent()).toBe(counts);
    expect(errors).toEqual([]);
    await page.close();
    await spillway.close();
  },
);
