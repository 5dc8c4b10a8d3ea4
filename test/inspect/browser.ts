import { execFileSync } from 'node:child_process';
import { chromium, type Browser, type Page } from 'playwright-core';

const executable = (): string => execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();

/** Debian's browser; the suite installs none of its own. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: executable(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** A page in which what is waited for comes when the machine has time for it: tests have a limit of their own. */
export async function newPage(browser: Browser, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, ...options });
  page.setDefaultTimeout(120_000);
  return page;
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
  const page = await newPage(browser, options);
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

/** Keeps each order of rows and each state of a row that the page shows from now on. */
export const watchStates = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const orders = new Set<string>();
    const states: Record<string, string[]> = {};
    Object.assign(globalThis, { watched: { orders, states } });
    const look = (): void => {
      const rows = [...document.querySelectorAll<HTMLElement>('.row[data-node]')].map(({ dataset }) => dataset);
      if (rows.length > 0) orders.add(rows.map(({ node }) => node).join(' '));
      for (const { node = '', state = '' } of rows)
        if (states[node]?.at(-1) !== state) (states[node] ??= []).push(state);
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
    look();
  });

/** What `watchStates` has kept. */
export const statesSeen = (
  page: Page,
): Promise<{ readonly orders: readonly string[]; readonly states: Readonly<Record<string, string>> }> =>
  page.evaluate(() => {
    const { orders, states } = Reflect.get(globalThis, 'watched') as {
      orders: Set<string>;
      states: Record<string, string[]>;
    };
    const joined = Object.entries(states).map(([node, all]) => [node, all.join(' ')]);
    return { orders: [...orders], states: Object.fromEntries(joined) as Record<string, string> };
  });

/** A picture of the waterfall, of which nothing is left that was drawn before. */
export async function drawnAnew(page: Page): Promise<Buffer> {
  await page.evaluate(async () => {
    for (const display of ['none', '']) {
      document.body.style.display = display;
      for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    }
  });
  return page.locator('#waterfall').screenshot();
}

/** In how many pixels two pictures differ; `NaN` where they have not even one size. */
export async function differingPixels(browser: Browser, first: Buffer, second: Buffer): Promise<number> {
  const page = await newPage(browser);
  try {
    return await page.evaluate(
      async (pictures) => {
        const [a, b] = await Promise.all(
          pictures.map(async (picture) => {
            const image = new Image();
            image.src = `data:image/png;base64,${picture}`;
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height);
            const drawing = canvas.getContext('2d');
            drawing?.drawImage(image, 0, 0);
            return drawing?.getImageData(0, 0, image.width, image.height);
          }),
        );
        if (a === undefined || b === undefined || a.width !== b.width || a.height !== b.height) return NaN;
        const [left, right] = [new Uint32Array(a.data.buffer), new Uint32Array(b.data.buffer)];
        return left.reduce((count, pixel, index) => count + Number(pixel !== right[index]), 0);
      },
      [first, second].map((picture) => picture.toString('base64')),
    );
  } finally {
    await page.close();
  }
}
