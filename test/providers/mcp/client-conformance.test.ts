import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { ROOT } from '../support.ts';

const NODE = process.execPath;
const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const CLIENT = join(import.meta.dirname, 'conformance-client.ts');
const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = async (...args: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(NODE, [SUITE, ...args], {
    cwd: folder,
    maxBuffer: 2 ** 26,
  }).catch((failed: unknown) => failed as { readonly stdout: string; readonly stderr: string });
  return stdout + stderr;
};

/** The client scenarios of the suite, as it lists them. */
const scenarios = [...((await run('list')).split('Client scenarios')[1]?.matchAll(/^ {2}- (\S+)/gm) ?? [])].map(
  ([, name = '']) => name,
);

describe('R-16.6 the protocol’s conformance suite for clients, by mcpHttpProvider under a layer', () => {
  it('R-16.6 has the scenarios that we know', () => {
    expect(scenarios).toHaveLength(26);
    expect(scenarios.filter((name) => name.startsWith('auth/'))).toHaveLength(22);
  });

  it.each(scenarios)('R-16.6 %s', async (scenario) => {
    const said = await run('client', '--command', `${NODE} ${CLIENT}`, '--scenario', scenario);
    expect(/^Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings$/m.test(said), said).toBe(true);
  });
});
