import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { FileError } from '../../src/cli/arguments/usage.ts';
import { runInspect } from '../../src/cli/trace/inspect.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { folder, spillway, start, until } from './support.ts';

const EVENT = { seq: 1, atMs: 5, source: 'call', callId: 'c1', toolName: 'search', type: 'call_started' };
const LINE = `${JSON.stringify(EVENT)}\n`;

describe('SEE-9 spillway report', () => {
  it('SEE-9 writes one file with its data, which names nothing of others, of 120 kB at most beside it', async () => {
    using files = folder();
    const trace = files.write('trace.ndjson', LINE);
    const out = join(files.path, 'turn.html');
    expect(await spillway('report', trace, '-o', out)).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const html = readFileSync(out, 'utf8');
    const [, data = ''] = /<script type="application\/json" id="trace">(.*?)<\/script>/s.exec(html) ?? [];
    expect((JSON.parse(data) as { lines: string[] }).lines).toEqual([LINE.trim()]);
    expect(html.length - data.length).toBeLessThanOrEqual(120_000);
    expect(html).not.toMatch(/(?:src|href)="(?!data:)/);
    expect(html).toContain("default-src 'none'");
  });

  it.each([
    ['no file', ['report', 'none.ndjson', '-o', 'x.html'], 'there is no such file'],
    ['no --out', ['report', 'none.ndjson'], '--out is missing'],
    ['no trace', ['inspect'], 'the trace file is missing'],
    ['no port', ['inspect', 'none.ndjson', '--port', 'x'], '--port must be a port from 0 to 65535, not "x"'],
    ['no such trace', ['inspect', 'none.ndjson'], 'there is no such file'],
    ['no port of a run', ['run', 'none.yaml', '--inspect=x'], '--inspect must be a port'],
  ])('SEE-9 of %s says what is wrong, and ends with 2', async (_, args, message) => {
    const { code, stderr } = await spillway(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('SEE-9 never overwrites the trace itself', async () => {
    using files = folder();
    const trace = files.write('trace.ndjson', LINE);
    expect(await spillway('report', trace, '-o', trace)).toMatchObject({ code: 2 });
    expect(readFileSync(trace, 'utf8')).toBe(LINE);
  });
});

it('SEE-7 spillway inspect refuses what is no file, and a port that is taken for what it is', async () => {
  using files = folder();
  const trace = files.write('trace.ndjson', LINE);
  const loop = join(files.path, 'loop');
  symlinkSync(loop, loop);
  // One that is not refused would be served for ever.
  const signal = AbortSignal.abort();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const inspected = (...args: readonly string[]): Promise<unknown> =>
    runInspect(args, { stdout, stderr, env: {}, runtime: liveRuntime, signal });
  const isFolder = new FileError(`${files.path}: is a folder; name a file in it`);
  await expect(inspected(files.path)).rejects.toThrow(isFolder);
  await expect(inspected(trace, files.path)).rejects.toThrow(isFolder);
  await expect(inspected(loop)).rejects.toThrow(new FileError(`${loop}: cannot be used (ELOOP)`));
  await using taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await expect(inspected(trace, '--port', String(port))).rejects.toThrow(/port \d+ of 127\.0\.0\.1 is in use/);
});

it('SEE-7 spillway inspect prints the page’s address, serves it, and ends when it is interrupted', async () => {
  using files = folder();
  const running = start(['inspect', files.write('trace.ndjson', LINE)]);
  let address = '';
  running.child.stdout.on('data', (text: string) => (address += text));
  await until(() => address.includes('\n'));
  expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\da-f]{64}\n$/);
  expect((await fetch(address.trim())).status).toBe(200);
  expect((await fetch(address.trim().slice(0, -1))).status).toBe(403);
  running.child.kill('SIGINT');
  expect((await running.ended).code).toBe(0);
});
