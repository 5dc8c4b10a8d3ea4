import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SignInFile } from '../../src/cli/sign-in/file.ts';
import { renewed } from '../../src/cli/sign-in/renewal.ts';
import { folder, until, type Folder } from './support.ts';

const HOLDER = join(import.meta.dirname, 'lock-holder.ts');
const BEAT_MS = 50;
const STALE_MS = 2_000;

interface Holder {
  readonly pid: number;
  readonly said: () => string;
  readonly release: () => void;
  readonly ended: Promise<unknown>;
}

let files: Folder;
let lock: string;
const holders: Holder[] = [];
beforeEach(() => {
  files = folder();
  lock = join(files.path, 'sign-in.lock');
});
afterEach(async () => {
  for (const { pid, release } of holders) {
    try {
      process.kill(pid, 'SIGCONT');
      release();
    } catch {
      // It has ended.
    }
  }
  await Promise.all(holders.splice(0).map(({ ended }) => ended));
  files[Symbol.dispose]();
});

/** A process of its own that takes the lock as soon as it can. */
const holder = (): Holder => {
  const child = spawn(process.execPath, [HOLDER, lock, String(BEAT_MS), String(STALE_MS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stdin.on('error', () => undefined);
  const made: Holder = {
    pid: child.pid ?? 0,
    said: () => said,
    release: () => void child.stdin.write('let go\n'),
    ended: new Promise((resolve) => child.once('exit', resolve)),
  };
  holders.push(made);
  return made;
};
const holds = (one: Holder): Promise<void> => until(() => one.said().includes('held'));
const owner = (): string => readFileSync(lock, 'utf8');

it('R-16.8 a lock is held for as long as its work takes, however long that is', async () => {
  const first = holder();
  await holds(first);
  const name = owner();
  const second = holder();
  const since = performance.now();
  await until(() => performance.now() - since > 3 * STALE_MS);
  expect([owner(), second.said()]).toEqual([name, '']);
  first.release();
  await holds(second);
  expect(first.said()).toBe('held\nfree\n');
});

it('R-16.8 a process that was stopped for too long does not take away the lock of who came after it', async () => {
  const first = holder();
  await holds(first);
  process.kill(first.pid, 'SIGSTOP');
  const second = holder();
  await holds(second);
  const name = owner();
  process.kill(first.pid, 'SIGCONT');
  first.release();
  await first.ended;
  expect([owner(), first.said()]).toEqual([name, 'held\nlost\nfree\n']);
  const third = holder();
  second.release();
  await holds(third);
  expect(second.said()).toBe('held\nfree\n');
});

it('R-16.8 what a process has left that was killed is taken away, and one of many who wait gets it', async () => {
  const first = holder();
  await holds(first);
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  const waiting = [holder(), holder(), holder()];
  for (let taken = 1; taken <= waiting.length; taken++) {
    const having = (): Holder[] => waiting.filter(({ said }) => said().includes('held'));
    await until(() => having().length === taken);
    expect(having().filter(({ said }) => !said().includes('free'))).toHaveLength(1);
    having().at(-1)?.release();
    for (const one of having()) one.release();
  }
});

it('R-16.8 and so is what was left by one that took it away', async () => {
  const old = new Date(Date.now() - 60_000);
  for (const path of [lock, `${lock}.clearing`]) {
    writeFileSync(path, 'somebody');
    utimesSync(path, old, old);
  }
  const one = holder();
  await holds(one);
  expect(owner()).not.toBe('somebody');
});

it('R-16.8 a renewal that was stopped for too long brings no sign-in back that was forgotten meanwhile', async () => {
  const url = new URL('https://mcp.example/mcp');
  const file = new SignInFile(url, { SPILLWAY_SIGN_INS: files.path });
  await file.write({ tokens: { access_token: 'a0', token_type: 'Bearer', refresh_token: 'r0' } });
  // What others do who find its lock stale.
  const forgotten = async (): Promise<Response> => {
    for (const name of readdirSync(files.path)) rmSync(join(files.path, name));
    return Response.json({ access_token: 'a1', token_type: 'Bearer', refresh_token: 'r1' });
  };
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'r0' });
  const response = await renewed(file, forgotten, url, { method: 'POST', body });
  expect([response.status, await file.read()]).toEqual([400, undefined]);
});
