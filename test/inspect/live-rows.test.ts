import { lastValueFrom } from 'rxjs';
import { plan, tool, ToolExecutionError } from 'spillway';
import { expect, it } from 'vitest';
import { openBrowser, rowsOf, statesSeen, watchStates } from './browser.ts';
import { clocked, FRAME_MS } from './clocked.ts';

it('SEE-8 rows say while a turn runs what has come of them by then, in plan order from the beginning', async () => {
  const browser = await openBrowser();
  let asked = 0;
  const flaky = tool({
    name: 'flaky',
    policy: { effects: 'read', retry: { strategy: 'constant', initialDelayMs: 5 * FRAME_MS, jitterPercent: 0 } },
    execute: (): string => {
      if (asked++ === 0) throw new ToolExecutionError('transport_error', 'reset by peer', { code: 'ECONNRESET' });
      return 'fine';
    },
  });
  try {
    await clocked(browser, { tools: [flaky] }, async ({ spillway, open, frames, heard, step }) => {
      const page = await open();
      const nodes = plan.from([
        { id: 'first', tool: 'flaky' },
        { id: 'then', tool: 'flaky', needs: ['first'] },
      ]);
      await watchStates(page);
      const over = lastValueFrom(spillway.turn(nodes));
      await heard(page);
      await frames(page, 1);
      expect(await rowsOf(page)).toEqual([
        { node: 'first', state: 'running', attempts: 1, reason: 'reset by peer' },
        { node: 'then', state: 'waiting', attempts: 0, reason: '' },
      ]);
      for (let count = 0; count < 6; count++) await step(page);
      await over;
      await heard(page);
      await frames(page, 1);
      expect(await rowsOf(page)).toEqual([
        { node: 'first', state: 'succeeded', attempts: 2, reason: '' },
        { node: 'then', state: 'succeeded', attempts: 1, reason: '' },
      ]);
      expect(await statesSeen(page)).toEqual({
        orders: ['first then'],
        states: { first: 'running succeeded', then: 'waiting succeeded' },
      });
    });
  } finally {
    await browser.close();
  }
});
