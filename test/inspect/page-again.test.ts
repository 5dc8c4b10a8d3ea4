import type { Browser, Page } from 'playwright-core';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, type Spillway } from 'spillway';
import { serveInspector } from 'spillway/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBrowser, openPage, rowsOf } from './browser.ts';
import { cuttable } from './cuttable.ts';

const layer = (): Spillway =>
  createSpillway({ tools: [tool({ name: 'search', policy: { effects: 'read' }, execute: () => 'found' })] });
const turnsOf = async (spillway: Spillway, ids: readonly string[]): Promise<void> => {
  for (const id of ids) await lastValueFrom(spillway.turn(plan.from([{ id, tool: 'search' }])));
};
/** Turns, newest first, as the list has them. */
const shownTurns = (page: Page): Promise<string[]> => page.locator('.turn b').allTextContents();
const untilTurns = (page: Page, count: number): Promise<void> =>
  page.waitForFunction((wanted) => document.querySelectorAll('.turn').length === wanted, count).then(() => undefined);

describe('a page that comes back', { timeout: 120_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it('SEE-7 goes on where it was after its connection was cut, and forgets what another process told', async () => {
    const token = 'a-token-of-our-own-4711';
    const first = layer();
    let server = await serveInspector(first, { token });
    const way = await cuttable(() => Number(new URL(server.url).port));
    try {
      const { page } = await openPage(browser, `http://127.0.0.1:${way.port}/?token=${token}`);
      await page.locator('.c-live').waitFor();
      await turnsOf(first, ['a', 'b']);
      await untilTurns(page, 2);
      way.cut();
      await page.locator('.c-lost').waitFor();
      await turnsOf(first, ['c']);
      way.mend();
      await untilTurns(page, 3);
      await page.locator('.c-live').waitFor();
      expect(await shownTurns(page)).toEqual(['3. ', '2. ', '1. ']);
      // Nothing came twice: as many events as there were, the layer's own first one for each subscriber.
      const heard = Number(await page.locator('[data-heard]').getAttribute('data-heard'));
      const again = await openPage(browser, server.page);
      await untilTurns(again.page, 3);
      await again.page.locator(`[data-heard="${heard}"]`).waitFor();

      way.cut();
      await page.locator('.c-lost').waitFor();
      await server.close();
      const second = layer();
      server = await serveInspector(second, { token });
      await turnsOf(second, ['only']);
      way.mend();
      await untilTurns(page, 1);
      expect((await rowsOf(page)).map(({ node }) => node)).toEqual(['only']);
      await second.close();
    } finally {
      way.close();
      await server.close();
      await first.close();
    }
  });

  it('SEE-8 turns and calls are filtered by tenant, and by tool, node and id', async () => {
    const spillway = layer();
    const server = await serveInspector(spillway);
    try {
      const { page } = await openPage(browser, server.page);
      await page.locator('.c-live').waitFor();
      await turnsOf(spillway, ['plain']);
      expect(await page.getByLabel('Tenant').count()).toBe(0);
      for (const tenant of ['acme', 'globex'])
        await lastValueFrom(spillway.turn(plan.from([{ id: `of-${tenant}`, tool: 'search' }]), { tenant }));
      await spillway.execute({ toolName: 'search', tenant: 'acme' });
      await spillway.execute({ toolName: 'search', tenant: 'globex' });
      await untilTurns(page, 4);
      await page.getByLabel('Tenant').selectOption('acme');
      await untilTurns(page, 2);
      expect(await page.locator('.turns').textContent()).toContain('1 calls');
      await page.getByLabel('Tenant').selectOption('');
      await page.getByLabel('tool, node, turn id').fill('of-globex search');
      await untilTurns(page, 1);
      await page.getByLabel('Filter').selectOption('failed');
      await untilTurns(page, 0);
    } finally {
      await server.close();
      await spillway.close();
    }
  });
});
