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
