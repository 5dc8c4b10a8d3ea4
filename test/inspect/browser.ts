import { existsSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';

/** Where Debian and others have it; the suite installs no browser of its own. */
const CANDIDATES = [
  process.env['CHROMIUM'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];
export const CHROMIUM: string | undefined = CANDIDATES.find((path) => path !== '' && existsSync(path));

export function openBrowser(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error('there is no chromium on this machine');
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
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
