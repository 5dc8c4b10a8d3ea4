// `npm run screenshot`: the picture of the README, of the demo as the inspector shows it. Needs chromium.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execFileSync } from 'node:child_process';
import { openBrowser } from '../test/inspect/browser.ts';

const root = resolve(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'spillway-screenshot-'));
try {
  const html = join(folder, 'turn.html');
  execFileSync(
    process.execPath,
    [join(root, 'src/cli/main.ts'), 'run', join(root, 'src/cli/demo/plan.yaml'), '--seed', '7', '--html', html],
    { cwd: root, stdio: 'ignore' },
  );
  const browser = await openBrowser();
  const page = await browser.newPage({ viewport: { width: 1180, height: 400 }, colorScheme: 'light' });
  await page.goto(`file://${html}`);
  await page.locator('.row[data-node=seats]').click();
  await page.locator('.details h2', { hasText: 'seats' }).waitFor();
  await page.screenshot({ path: join(root, 'src/inspect/demo.png') });
  await browser.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
