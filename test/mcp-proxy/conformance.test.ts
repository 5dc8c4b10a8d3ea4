import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy, type McpProxyOptions } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { serveConformance } from './conformance-server.ts';
import { NODE, ROOT } from './kit.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const FIXTURE = join(import.meta.dirname, 'conformance-server.ts');
/** The scenarios of 0.1.16. */
const SCENARIOS = 32;

const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the suite says of each scenario: `✓ ping: 1 passed, 0 failed`. */
const verdicts = async (url: string): Promise<readonly string[]> => {
  const args = [SUITE, 'server', '--url', url, '--suite', 'all'];
  // It exits with 1 where something failed, and says what.
  const { stdout } = await promisify(execFile)(NODE, args, { cwd: folder, maxBuffer: 2 ** 26 }).catch(
    (failed: unknown) => failed as { readonly stdout: string },
  );
  return stdout.split('\n').filter((line) => /^[✓✗] /.test(line));
};

const through = async (servers: McpProxyOptions['servers']): Promise<readonly string[]> => {
  const proxy = createMcpProxy({ servers });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: true, runtime: liveRuntime });
  try {
    return await verdicts(front.url);
  } finally {
    await front.close();
    await proxy.close();
  }
};

describe('R-16.6 the protocol’s own conformance suite', () => {
  let server: Awaited<ReturnType<typeof serveConformance>>;
  let direct: readonly string[];
  beforeAll(async () => {
    server = await serveConformance();
    direct = await verdicts(server.url);
  });
  afterAll(() => server.close());

  it('R-16.6 the fixture passes all of it', () => {
    expect(direct).toHaveLength(SCENARIOS);
    expect(direct.filter((line) => !line.startsWith('✓'))).toEqual([]);
  });

  it('R-16.6 and so it does behind the proxy, as a process', async () => {
    expect(await through({ s: { place: { command: NODE, args: [FIXTURE, 'stdio'] } } })).toEqual(direct);
  });

  it('R-16.6 and over HTTP', async () => {
    expect(await through({ s: { place: { url: server.url } } })).toEqual(direct);
  });
});
