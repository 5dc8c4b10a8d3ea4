import type { Browser, Page } from 'playwright-core';
import { Subject, lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, ToolExecutionError, type TraceEvent } from 'spillway';
import { createApprovals, type ApprovalAnswer } from 'spillway/gates';
import { serveInspector } from 'spillway/inspect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBrowser, openPage, settledRows } from './browser.ts';
import { FRAME_MS, clocked } from './clocked.ts';

const BACKOFF_MS = 320;
const COOLDOWN_MS = 800;

const flaky = (failures: number) => {
  let asked = 0;
  return tool({
    name: 'flaky',
    policy: {
      effects: 'read',
      retry: {
        strategy: 'constant',
        initialDelayMs: BACKOFF_MS,
        jitterPercent: 0,
        maxAttempts: 9,
        maxTotalTimeMs: 60_000,
      },
      breaker: false,
    },
    execute: (): string => {
      if (asked++ < failures) throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET' });
      return 'fine';
    },
  });
};
const nodes = plan.from([{ id: 'a', tool: 'flaky' }]);

/** What the ghost of a kind counts down to, in milliseconds; `undefined` where there is none. */
const leftOf = async (page: Page, kind: string): Promise<number | undefined> => {
  const text: string | null = await page.evaluate(
    (of) => document.querySelector(`.ghost[data-kind=${of}] .countdown`)?.textContent ?? null,
    kind,
  );
  return text === null ? undefined : Number.parseFloat(text) * (text.endsWith(' ms') ? 1 : 1_000);
};

const attemptsIn = async (page: Page): Promise<number> =>
  Number(await page.locator('.row[data-node]').first().getAttribute('data-attempts'));

/** Between decisions and the attempts that follow. */
const waits = (trace: readonly TraceEvent[]): Array<{ readonly dueMs: number; readonly startMs: number }> =>
  trace.flatMap((event, index) => {
    if (event.type !== 'decision' || event.strategy !== 'retry') return [];
    const next = trace.slice(index).find(({ type }) => type === 'attempt_started');
    return next === undefined ? [] : [{ dueMs: event.atMs + (event.delayMs ?? NaN), startMs: next.atMs }];
  });

describe('SEE-2 a countdown', { timeout: 120_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it('SEE-2 of a backoff is exact in each frame, 0 where the next attempt begins, and gone with it', () =>
    clocked(browser, { tools: [flaky(1)] }, async ({ spillway, open, frames, heard, step }) => {
      const page = await open();
      const over = lastValueFrom(spillway.turn(nodes));
      await heard(page);
      const shown: Array<number | undefined> = [];
      for (let passedMs = 0; passedMs < BACKOFF_MS - FRAME_MS; passedMs += FRAME_MS) {
        await step(page);
        shown.push(await leftOf(page, 'backoff'));
      }
      // A frame is drawn within the 16 ms that a step takes, and each one after the same time.
      const phases = shown.map((leftMs, index) => (leftMs ?? NaN) - (BACKOFF_MS - FRAME_MS * (index + 1)));
      expect(new Set(phases)).toEqual(new Set([phases[0]]));
      expect(phases[0]).toBeGreaterThanOrEqual(0);
      expect(phases[0]).toBeLessThan(FRAME_MS);
      // Where the layer is late, the page says that it is time, and says no less.
      await frames(page, 2);
      expect([await leftOf(page, 'backoff'), await attemptsIn(page)]).toEqual([0, 1]);
      await frames(page, 5);
      expect([await leftOf(page, 'backoff'), await attemptsIn(page)]).toEqual([0, 1]);
      await step(page);
      await frames(page, 1);
      expect([await leftOf(page, 'backoff'), await attemptsIn(page)]).toEqual([undefined, 2]);
      await over;
    }));

  it('SEE-2 reaches 0 within 50 ms of the next attempt, by the clocks of a real layer and of a real page', async () => {
    const spillway = createSpillway({ tools: [flaky(6)] });
    const trace: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => trace.push(event));
    const server = await serveInspector(spillway);
    try {
      const { page } = await openPage(browser, server.page);
      await page.waitForFunction(() => document.querySelector('.c-live') !== null);
      await page.evaluate(() => {
        const zeros: number[] = [];
        Object.assign(globalThis, { zeros });
        // What a drawing says, at once: a frame that comes late is no countdown that is late.
        new MutationObserver(() => {
          const text = document.querySelector('.ghost[data-kind=backoff] .countdown')?.textContent ?? '';
          if (text.endsWith(' ms') && text !== '0 ms')
            zeros.push(performance.timeOrigin + performance.now() + Number.parseInt(text, 10));
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
      });
      await lastValueFrom(spillway.turn(nodes));
      await settledRows(page, 1);
      const zeros = (await page.evaluate('globalThis.zeros')) as number[];
      const all = waits(trace);
      expect(all).toHaveLength(6);
      // Each drawing says of some wait when it will be over; a process that was held up says it late, never early.
      const errors = all.map(({ dueMs, startMs }) => {
        const own = zeros.filter((zeroMs) => Math.abs(zeroMs - dueMs) < BACKOFF_MS / 2);
        return Math.min(...own.map((zeroMs) => Math.abs(zeroMs - startMs)));
      });
      expect(Math.min(...errors)).toBeLessThanOrEqual(50);
    } finally {
      await spillway.close();
      await server.close();
    }
  });

  it('SEE-2 of a deadline stands still while a person is asked, and goes on when they have answered', () => {
    const answer$ = new Subject<ApprovalAnswer>();
    const pay = tool({
      name: 'pay',
      policy: { effects: 'read', needsApproval: true },
      execute: () => new Promise(() => undefined),
    });
    const layer = { tools: [pay], approvals: createApprovals({ ask: () => answer$ }) };
    return clocked(browser, layer, async ({ spillway, open, heard, step }) => {
      const page = await open();
      const left = async (): Promise<number> =>
        Number.parseFloat((await page.locator('.axis .countdown').textContent()) ?? '') * 1_000;
      spillway.turn(plan.from([{ id: 'a', tool: 'pay' }], { timeoutMs: 2_000 })).subscribe();
      await heard(page);
      const shown: number[] = [];
      for (let count = 0; count < 200; count++) {
        await step(page);
        if (count > 2) shown.push(await left());
      }
      expect(new Set(shown)).toEqual(new Set([2_000]));
      expect(await page.locator('.axis .state').textContent()).toContain('waits');
      answer$.next(true);
      await heard(page);
      for (let count = 0; count < 50; count++) await step(page);
      const later = await left();
      expect(later).toBeGreaterThan(1_000);
      expect(later).toBeLessThan(1_250);
    });
  });

  it('SEE-2 of a cooldown goes on when the turn is over, also on a page that is opened then, and ends', () =>
    clocked(
      browser,
      {
        tools: [
          tool({
            name: 'down',
            policy: {
              effects: 'read',
              retry: { maxAttempts: 1 },
              breaker: { failureThreshold: 1, cooldownMs: COOLDOWN_MS },
            },
            execute: (): never => {
              throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET' });
            },
          }),
        ],
      },
      async ({ spillway, open, heard, step }) => {
        const first = await open();
        await lastValueFrom(spillway.turn(plan.from([{ id: 'a', tool: 'down', optional: true }])));
        await heard(first);
        const shown: Array<number | undefined> = [];
        for (let count = 0; count < 3; count++) {
          await step(first);
          shown.push(await leftOf(first, 'cooldown'));
        }
        const [before = NaN] = shown;
        expect(before).toBeGreaterThan(COOLDOWN_MS - 2 * FRAME_MS);
        expect(before).toBeLessThan(COOLDOWN_MS);
        expect(shown).toEqual([before, before - FRAME_MS, before - 2 * FRAME_MS]);
        const late = await leftOf(await open(), 'cooldown');
        expect(late).toBeGreaterThan(COOLDOWN_MS - 7 * FRAME_MS);
        expect(late).toBeLessThan(COOLDOWN_MS - 3 * FRAME_MS);
        for (let count = 0; count < 50; count++) await step(first);
        expect(await leftOf(first, 'cooldown')).toBeUndefined();
      },
    ));
});
