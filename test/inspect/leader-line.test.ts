import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';
import { serveInspector } from 'spillway/inspect';
import { expect, it } from 'vitest';
import { openBrowser, openPage, settledRows } from './browser.ts';

it('SEE-8 a call that waits for another has a line from its diamond to the row of that one', async () => {
  const browser = await openBrowser();
  const slow = tool({
    name: 'slow',
    policy: { effects: 'read' },
    execute: () => new Promise((resolve) => setTimeout(resolve, 50, 'fine')),
  });
  const spillway = createSpillway({ tools: [slow] });
  const server = await serveInspector(spillway);
  const idempotencyKey = 'one';
  const at = { tool: 'slow', idempotencyKey } as const;
  await lastValueFrom(
    spillway.turn(
      plan.from([
        { id: 'leads', ...at },
        { id: 'between', tool: 'slow' },
        { id: 'waits', ...at },
      ]),
    ),
  );
  const { page, errors } = await openPage(browser, server.page);
  await settledRows(page, 3);
  const middle = async (selector: string): Promise<number> => {
    const { y = Number.NaN, height = 0 } = (await page.locator(selector).boundingBox()) ?? {};
    return y + height / 2;
  };
  // It waits, and then replays.
  const line = await page.locator('.leader').first().boundingBox();
  const [from, to] = [await middle('[data-node=waits] .track'), await middle('[data-node=leads] .track')];
  expect(line?.y).toBeCloseTo(to, 0);
  expect((line?.y ?? 0) + (line?.height ?? 0)).toBeCloseTo(from, 0);
  expect(await page.locator('.diamond.d-waiting').count()).toBe(1);
  expect(errors).toEqual([]);
  await browser.close();
  await spillway.close();
  await server.close();
});
