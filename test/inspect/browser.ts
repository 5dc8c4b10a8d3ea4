import { execFileSync } from 'node:child_process';
import { chromium, type Browser, type Page } from 'playwright-core';

const executable = (): string => execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();

/** Debian's browser; the suite installs none of its own. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: executable(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** A row of the waterfall, as the page shows it. */
export interface ShownRow {
  readonly node: string;
  readonly state: string;
  readonly attempts: number;
  readonly reason: string;
}

/** The rows that are in the page. */
export function rowsOf(page: Page): Promise<ShownRow[]> {
  return page.locator('.row[data-node]').evaluateAll((rows) =>
    rows.map((row) => {
      const { node = '', state = '', attempts = '', reason = '' } = (row as HTMLElement).dataset;
      return { node, state, attempts: Number(attempts), reason };
    }),
  );
}

/** The lanes of the waterfall, and where in it each part of them stands, in hundredths of a pixel. */
export const lanesOf = (page: Page): Promise<readonly string[]> =>
  page.locator('#waterfall :is(.track, .track *, .walls, .wall)').evaluateAll((parts) =>
    parts.map((part) => {
      const whole = part.closest('#waterfall')?.getBoundingClientRect() ?? { x: 0, y: 0 };
      const { x, y, width, height } = part.getBoundingClientRect();
      const place = [x - whole.x, y - whole.y, width, height].map((length) => length.toFixed(2)).join(' ');
      return `${part.getAttribute('class')} ${part.textContent} at ${place}`;
    }),
  );

/** A page, and what went wrong in it so far. */
export interface OpenedPage {
  readonly page: Page;
  readonly errors: readonly string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: Parameters<Browser['newPage']>[0] = {},
): Promise<OpenedPage> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, ...options });
  const errors: string[] = [];
  page.on('pageerror', ({ message }) => errors.push(message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(url);
  return { page, errors };
}

/** Waits until the page shows so many nodes, and all of them have settled. */
export const settledRows = (page: Page, count: number): Promise<unknown> =>
  page.waitForFunction(
    (rows) =>
      document.querySelectorAll('.row[data-node]').length === rows &&
      [...document.querySelectorAll<HTMLElement>('.row[data-node]')].every(
        ({ dataset }) => !['running', 'waiting'].includes(dataset['state'] ?? ''),
      ),
    count,
  );
