import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { scriptedServer, type ScriptedServer } from '../../errors/scripted-server.ts';
import { startRedis, type RedisServer } from '../../stores/redis/server.ts';
import { asked, mine, until } from '../kit.ts';
import { said, testUpstream, use, type TestUpstream } from '../upstream.ts';

interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: { text: string };
  readonly err: { text: string };
  readonly exit: Promise<number | null>;
}

const SLOW_START_MS = 50_000;
const children: ChildProcessWithoutNullStreams[] = [];
const run = (...args: readonly string[]): Running => {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../../src/cli/main.ts'), 'gateway', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, API_TOKEN: 'tok-123456' },
  });
  children.push(child);
  const out = { text: '' };
  const err = { text: '' };
  child.stdout.on('data', (piece: Buffer) => (out.text += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (err.text += piece.toString()));
  const exit = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code));
  });
  return { child, out, err, exit };
};
const listening = async (running: Running): Promise<string> => {
  await until(
    () =>
      (running.out.text.includes('\n') && running.err.text.includes('gateway_listening')) ||
      running.child.exitCode !== null,
    SLOW_START_MS,
  );
  return running.out.text.trim();
};
const post = (url: string, body: unknown): Promise<Response> =>
  fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-ant-test' },
    body: JSON.stringify(body),
  });

describe('R-13.1 spillway gateway anthropic', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-gateway-'));
  const manifest = join(folder, 'api.yaml');
  let api: ScriptedServer;
  let upstream: TestUpstream;
  let redis: RedisServer;
  beforeAll(async () => {
    api = await scriptedServer();
    upstream = await testUpstream();
    redis = await startRedis({ tcp: true });
    writeFileSync(
      manifest,
      `name: api\nbase_url: ${api.url}\nheaders: { Authorization: 'Bearer \${env:API_TOKEN}' }\ntools:\n  - id: look\n    url: /look/{id}\n    timeout_ms: 20000\n`,
    );
  });
  afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));
  afterAll(async () => {
    await api.close();
    await upstream.close();
    await redis.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('R-13.1 serves the tools of a manifest, keeps state in Redis, and another process goes on with it', async () => {
    api.script(
      (request, response) =>
        void response.end(
          `looked ${request.url} ${request.headers.authorization === 'Bearer tok-123456' ? 'as we are' : 'as nobody'}`,
        ),
    );
    upstream.answer((_, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'api_look', { id: 7 }), use('toolu_2', 'mine')], stop: 'tool_use' }
        : { blocks: [said('Done')] },
    );
    const options = [
      'anthropic',
      '--upstream',
      upstream.url,
      '--tools',
      manifest,
      '--allow',
      '127.0.0.1',
      '--port',
      '0',
      '--state',
      `redis://127.0.0.1:${redis.port}`,
    ];
    const [one, other] = [run(...options), run(...options)];
    const first = await post(await listening(one), { ...asked, tools: [mine] });
    expect(await first.json()).toMatchObject({ content: [use('toolu_2', 'mine')] });
    one.child.kill('SIGKILL');
    const messages = [
      ...asked.messages,
      { role: 'assistant', content: [use('toolu_2', 'mine')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_2', content: 'mine' }] },
    ];
    expect((await post(await listening(other), { ...asked, tools: [mine], messages })).status).toBe(200);
    expect(upstream.asked[1]?.body.messages.at(-1)?.content).toMatchObject([
      { content: 'looked /look/7 as we are' },
      { content: 'mine' },
    ]);
    other.child.kill('SIGTERM');
    expect(await other.exit).toBe(0);
    expect(other.err.text).not.toContain('sk-ant-test');
  });

  it('R-13.5 SIGTERM lets a turn end, harvests one that does not, and exits 0', async () => {
    api.script(() => undefined);
    upstream.answer((_, place) =>
      place === 0 ? { everyMs: 100 } : { blocks: [use('toolu_1', 'api_look', { id: 7 })], stop: 'tool_use' },
    );
    const gateway = run(
      'anthropic',
      '--upstream',
      upstream.url,
      '--tools',
      manifest,
      '--allow',
      '127.0.0.1',
      '--port',
      '0',
      '--grace',
      '1500',
    );
    const url = await listening(gateway);
    const short = post(url, { ...asked, stream: true }).then((response) => response.text());
    await until(() => upstream.asked.length === 1);
    const long = post(url, { ...asked, stream: true }).then((response) => response.text());
    await until(() => upstream.asked.length === 2);
    gateway.child.kill('SIGTERM');
    expect(await short).toContain('message_stop');
    expect(await long).toContain('overloaded_error');
    expect(await gateway.exit).toBe(0);
    expect(gateway.err.text).toContain('gateway_draining');
  });

  it.each([
    [['anthropic'], /--upstream/],
    [['openai', '--upstream', 'http://x'], /there is no gateway "openai"/],
    [['anthropic', '--upstream', 'nowhere'], /--upstream must be an address/],
    [['anthropic', '--upstream', 'http://x', '--port', '70000'], /--port must be an integer/],
    [
      ['anthropic', '--upstream', 'http://x', '--state', 'mysql://user:pw@x'],
      /--state must be an address such as redis/,
    ],
    [['anthropic', '--upstream', 'http://x', '--tools', join(folder, 'none.yaml')], /there is no such file/],
    [['anthropic', '--upstream', 'http://x', '--prot', '1'], /there is no option --prot; did you mean --port/],
  ])('R-13.1 %j: exit 2, and says why', async (args, why) => {
    const wrong = run(...args);
    expect(await wrong.exit).toBe(2);
    expect(wrong.err.text).toMatch(why);
    expect(wrong.err.text).not.toContain('pw@');
  });
});
