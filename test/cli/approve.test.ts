import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createSpillway, liveRuntime, tool, type ToolResultEnvelope } from 'spillway';
import { approvalsIn, createApprovals } from 'spillway/gates';
import { redisStore } from 'spillway/stores/redis';
import { sqliteStore } from 'spillway/stores/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runApprove } from '../../src/cli/approve.ts';
import { UsageError } from '../../src/cli/arguments/usage.ts';
import { CLIENTS } from '../stores/redis/clients.ts';
import { startRedis } from '../stores/redis/server.ts';
import { spillway } from './support.ts';

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const approve = async (args: readonly string[], env: Record<string, string> = {}): Promise<Said> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const code = await runApprove(args, { stdout, stderr, env, signal, runtime: liveRuntime });
  const text = (output: PassThrough): string => String(output.read() ?? '');
  return { code, stdout: text(stdout), stderr: text(stderr) };
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-approve-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program that waits for a person, its store in a file. */
const waiting = async (
  input: unknown,
): Promise<{ url: string; id: string; result: Promise<ToolResultEnvelope>; close(): Promise<void> }> => {
  const path = join(folder, 'calls.db');
  const store = sqliteStore(path);
  const pay = tool({ name: 'pay', needsApproval: true, policy: { effects: 'mutating' }, execute: () => 'paid' });
  const layer = createSpillway({ tools: [pay], approvals: createApprovals({ pollMs: 20 }), store });
  const result = layer.execute({ toolName: 'pay', input, session: 'ada', tenant: 'acme' });
  const questions = approvalsIn(store);
  await expect.poll(async () => (await questions.pending()).length).toBe(1);
  const [{ id } = { id: '' }] = await questions.pending();
  const close = async (): Promise<void> => {
    await layer.close();
    await store.close?.();
  };
  return { url: `sqlite:${path}`, id, result, close };
};

describe('spillway approve', () => {
  it('R-22.5 lists what waits, and approves it: the program goes on', async () => {
    const { url, id, result, close } = await waiting({ amount: 7 });
    const listed = await approve(['--store', url]);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toContain(id);
    expect(listed.stdout).toMatch(/pay +acme \/ ada .*\{"amount":7\}/);
    expect(await approve([id, '--store', url], { USER: 'grace' })).toEqual({
      code: 0,
      stdout: 'approved: pay {"amount":7}\n',
      stderr: '',
    });
    expect((await result).status).toBe('success');
    expect(await approve([id], { SPILLWAY_STORE: url })).toMatchObject({
      code: 1,
      stderr: 'spillway: too late, it is closed: pay {"amount":7}\n',
    });
    expect((await approve(['--store', url])).stdout).toBe('nobody waits for an approval\n');
    await close();
  });

  it('R-22.5 --deny says no, and why', async () => {
    const { url, id, result, close } = await waiting({ amount: 7 });
    const said = await approve([id, '--deny', '--reason', 'too much', '--by', 'grace', '--store', url, '--json']);
    expect(JSON.parse(said.stdout)).toMatchObject({ counts: true, state: 'denied' });
    expect((await result).error).toMatchObject({
      code: 'not_permitted',
      message: 'grace did not approve the call: too much',
    });
    await close();
  });

  it('R-15.2 what a model wrote neither drives the terminal nor forges a line', async () => {
    const evil = 'x\u001b[2J\u001b]0;owned\u0007\napproved: pay {"amount":1}\u202e\u200b';
    const { url, id, close } = await waiting({ to: evil });
    const listed = await approve(['--store', url]);
    const answered = await approve([id, '--deny', '--store', url]);
    for (const { stdout } of [listed, answered]) {
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u200b]/);
      expect(
        stdout
          .trimEnd()
          .split('\n')
          .filter((line) => line.startsWith('approved:')),
      ).toEqual([]);
    }
    expect((await approve(['evil\u001b[2J', '--store', url])).stderr).not.toContain('\u001b');
    await close();
  });

  it('R-22.5 over Redis, as a command of its own', async () => {
    const server = await startRedis({ tcp: true });
    const [, connect] = CLIENTS[0] ?? [];
    const client = await connect?.({ path: server.path });
    if (client === undefined) throw new Error('there is no client library');
    const url = `redis://127.0.0.1:${server.port}/0?prefix=own:`;
    const store = redisStore(client.client, { prefix: 'own:' });
    const pay = tool({ name: 'pay', needsApproval: true, policy: { effects: 'mutating' }, execute: () => 'paid' });
    const layer = createSpillway({ tools: [pay], approvals: createApprovals({ pollMs: 20 }), store });
    const result = layer.execute({ toolName: 'pay', input: { amount: 7 } });
    const questions = approvalsIn(store);
    await expect.poll(async () => (await questions.pending()).length).toBe(1);
    const [{ id } = { id: '' }] = await questions.pending();
    expect(await spillway('approve', id, '--store', url)).toMatchObject({
      code: 0,
      stdout: 'approved: pay {"amount":7}\n',
    });
    expect((await result).status).toBe('success');
    expect((await spillway('approve', '--store', 'redis://:hunter2@127.0.0.1:1/0')).stderr).not.toContain('hunter2');
    await layer.close();
    await client.close();
    await server.stop();
  });

  it.each([
    ['no store', []],
    ['a store that is none', ['--store', 'postgres://x']],
    ['a file that is not there', ['--store', 'sqlite:/nowhere/calls.db']],
    ['two ids', ['a', 'b', '--store', 'sqlite:x']],
    ['--deny of nothing', ['--deny', '--store', 'sqlite:x']],
    ['an empty reason', ['a', '--reason', '', '--store', 'sqlite:x']],
    ['an option that is none', ['a', '--approve']],
  ])('R-22.5 %s is a usage error', async (_what, args) => {
    await expect(approve(args)).rejects.toThrow(UsageError);
  });
});
