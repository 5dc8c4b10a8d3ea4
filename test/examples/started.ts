import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

/** How long an example may take: it starts servers, and a machine may be busy. */
export const EXAMPLE_TIMEOUT_MS = 120_000;

/** What `npm run example NAME` prints, line by line. An example that fails, or that does not end, rejects. */
export async function linesOf(name: string, env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const { stdout, stderr } = await run(process.execPath, [join(root, 'test/examples/run.ts'), name], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', ...env },
    timeout: EXAMPLE_TIMEOUT_MS,
  });
  const said = stderr.replaceAll(/^.*(?:Warning|--trace-).*\n/gm, '');
  if (said !== '') throw new Error(`${name} said on stderr: ${said}`);
  return stdout.trimEnd().split('\n');
}
