import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, ToolExecutionError, type TraceEvent } from 'spillway';
import { addEvent, compareTraces, emptyTrace, serveTraceFile, type TraceModel } from 'spillway/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folder as commandFolder, spillway as command, start, until } from '../cli/support.ts';
import { openBrowser, openPage } from './browser.ts';

/** The trace of two turns, `one` and `two`, in which `a` fails so often before it succeeds. */
const traceOf = async (failures: number, maxAttempts: number): Promise<TraceEvent[]> => {
  let asked = 0;
  const flaky = tool({
    name: 'flaky',
    policy: { effects: 'read', retry: { strategy: 'constant', initialDelayMs: 5, jitterPercent: 0, maxAttempts } },
    execute: (): string => {
      if (asked++ < failures) throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET' });
      return 'fine';
    },
  });
  const layer = createSpillway({ tools: [flaky] });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  const nodes = (ids: readonly string[]) => plan.from(ids.map((id) => ({ id, tool: 'flaky', optional: true })));
  await lastValueFrom(layer.turn(nodes(['a'])));
  await lastValueFrom(layer.turn(nodes(['a', 'b'])));
  await layer.close();
  return events;
};

const lines = (events: readonly TraceEvent[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join('');
const modelOf = (events: readonly TraceEvent[]): TraceModel => events.reduce(addEvent, emptyTrace());

describe('SEE-4 two traces beside each other', { timeout: 120_000 }, () => {
  let browser: Browser;
  const folder = mkdtempSync(join(tmpdir(), 'spillway-two-'));
  const [before, after] = [join(folder, 'before.ndjson'), join(folder, 'after.ndjson')];
  let expected: ReturnType<typeof compareTraces>;
  beforeAll(async () => {
    browser = await openBrowser();
    const traces = [await traceOf(2, 5), await traceOf(1, 1)] as const;
    writeFileSync(before, lines(traces[0]));
    writeFileSync(after, lines(traces[1]));
    expected = compareTraces(modelOf(traces[0]), modelOf(traces[1]));
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('SEE-4 the page shows what differs, decision by decision, for both traces and for one', async () => {
    const server = await serveTraceFile(before, { compareWith: after });
    try {
      const { page, errors } = await openPage(browser, server.page);
      await page.locator('.turn', { hasText: '1. ' }).first().click();
      await page.click('#tab-compare');
      const view = page.locator('[aria-label=Comparison]');
      await view.locator('li').first().waitFor();
      const text = (await view.textContent()) ?? '';
      expect(expected.map(({ flipped }) => flipped > 0)).toEqual([true, false]);
      expect(text).toContain('2 turns of this trace and the other belong together, 1 of them differ (1)');
      expect(text).toContain('completed → partial');
      expect(text).toContain('3 → 1 attempts');
      expect(text).toContain('#1 ECONNRESET: retry (transient) → ECONNRESET: ');
      // Its own trace is there, too: the other turn, which has a node more.
      const choice = page.getByLabel('Compare with');
      const own = await choice.locator('option', { hasText: /^2\. / }).getAttribute('value');
      await choice.selectOption(own);
      await view.locator('li', { hasText: 'b' }).first().waitFor();
      expect(await view.locator('li.only_first, li.only_second').count()).toBe(1);
      expect(errors).toEqual([]);
    } finally {
      await server.close();
    }
  });

  it('SEE-9 the command takes two traces, and so does the report, which holds what differs', async () => {
    using files = commandFolder();
    const out = join(files.path, 'two.html');
    expect(await command('report', before, after, '-o', out)).toMatchObject({ code: 0, stderr: '' });
    const { page, errors } = await openPage(browser, `file://${out}`, { offline: true });
    await page.locator('.turn', { hasText: '1. ' }).first().click();
    await page.click('#tab-compare');
    await page.locator('[aria-label=Comparison] li').first().waitFor();
    expect(await page.locator('[aria-label=Comparison]').textContent()).toContain('3 → 1 attempts');
    expect(errors).toEqual([]);
    const [, data = ''] = /id="trace">(.*?)<\/script>/s.exec(readFileSync(out, 'utf8')) ?? [];
    expect(readFileSync(out, 'utf8').length - data.length).toBeLessThanOrEqual(120_000);

    const running = start(['inspect', before, after]);
    let address = '';
    running.child.stdout.on('data', (text: string) => (address += text));
    await until(() => address.includes('\n'));
    const share = new URL(address.trim());
    share.pathname = '/share/compare-';
    share.searchParams.set('turn', expected[0]?.turnIds[0] ?? '');
    const { chosen, nodes } = (await (await fetch(share)).json()) as { chosen: string; nodes: string[][] };
    expect([chosen, nodes[0]?.[1]]).toEqual([`2:${expected[0]?.turnIds[1]}`, 'changed']);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(0);
    expect(await command('inspect', before, after, 'third')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('two trace files at most, not 3') as string,
    });
    expect(await command('inspect', before, 'none.ndjson')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('none.ndjson: there is no such file') as string,
    });
  });
});
