import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../free-port.ts';

const run = promisify(execFile);

export interface RedisServer {
  /** Its unix socket. */
  readonly path: string;
  /** Its port, when it was started with `tcp`; else 0. */
  readonly port: number;
  readonly pid: number;
  cli(...args: string[]): Promise<string>;
  /** Signals the process; SIGKILL waits until it is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same files and the same socket. */
  start(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

export interface RedisServerOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Listen on a free port as well. */
  readonly tcp?: boolean;
}

const START_MS = 20_000;
const TRIES = 5;
/** Settings that take several values. */
const LISTS = ['save', 'rename-command'];

/** A server that a test needs and that is not there is a failure, not a reason to skip. */
export function requireRedis(command = 'redis-server'): void {
  if (spawnSync(command, ['--version'], { stdio: 'ignore' }).error !== undefined)
    throw new Error(`${command} is missing, and these tests run against it: apt-get install redis-server`);
}

const gone = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });

/** A real `redis-server` in a folder of its own, on a unix socket. By default it keeps nothing. */
export async function startRedis({ settings = {}, tcp = false }: RedisServerOptions = {}): Promise<RedisServer> {
  requireRedis();
  const dir = mkdtempSync(join(tmpdir(), 'spillway-redis-'));
  const path = join(dir, 'redis.sock');
  let port = tcp ? await freePort() : 0;
  let child: ChildProcess | undefined;
  const auth = settings['requirepass'] === undefined ? [] : ['--no-auth-warning', '-a', settings['requirepass']];
  const cli = async (...args: string[]): Promise<string> =>
    (await run('redis-cli', ['-s', path, ...auth, ...args], { timeout: START_MS })).stdout.trim();

  const end = (): void => void child?.kill('SIGKILL');
  process.once('exit', end);

  const start = async (more: Readonly<Record<string, string>> = {}): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      const all = {
        port: String(port),
        bind: '127.0.0.1',
        dir,
        unixsocket: path,
        save: '',
        appendonly: 'no',
        'enable-debug-command': 'yes',
        ...settings,
        ...more,
      };
      let said = '';
      const started = spawn(
        'redis-server',
        Object.entries(all).flatMap(([name, value]) => [
          `--${name}`,
          ...(LISTS.includes(name) && value !== '' ? value.split(' ') : [value]),
        ]),
        { stdio: ['ignore', 'pipe', 'pipe'] },
      );
      started.stdout.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-2_000)));
      started.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-2_000)));
      child = started;
      const endMs = performance.now() + START_MS;
      while (started.exitCode === null && performance.now() < endMs) {
        const answer = await cli('PING').catch(() => '');
        if (answer === 'PONG' || answer.startsWith('LOADING') || answer.startsWith('NOAUTH')) return;
        await sleep(20);
      }
      started.kill('SIGKILL');
      await gone(started);
      // The free port may have been taken meanwhile.
      if (!tcp || attempt === TRIES) throw new Error(`redis-server did not start: ${said}`);
      port = await freePort();
    }
  };
  const stop = async (): Promise<void> => {
    process.off('exit', end);
    if (child !== undefined) {
      child.kill('SIGKILL');
      await gone(child);
    }
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    path,
    get port() {
      return port;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    cli,
    kill: async (signal) => {
      child?.kill(signal);
      if (signal === 'SIGKILL' && child !== undefined) await gone(child);
    },
    start,
    stop,
  };
}
