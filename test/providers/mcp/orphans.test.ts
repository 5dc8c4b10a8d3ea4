import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { EVERYTHING, ROOT, groupOf, until } from '../support.ts';

/** A server that neither the end of its input nor SIGTERM ends. */
const STUBBORN = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); await import(${JSON.stringify(EVERYTHING)});`;

/** A host that starts the server, prints its group, and does what the script says. */
const host = (script: string): string => `
  import { mcpStdioProvider } from ${JSON.stringify(`${ROOT}src/providers/mcp-stdio.ts`)};
  const provider = await mcpStdioProvider({ name: 'x', command: process.execPath, args: ['--input-type=module', '-e', ${JSON.stringify(STUBBORN)}, 'stdio'] });
  ${script}
  console.log(provider.pid);`;

const start = async (
  script: string,
): Promise<{ pid: number; exited: Promise<unknown[]>; kill: (signal: NodeJS.Signals) => void }> => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', host(script)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: ROOT,
  });
  const exited = once(child, 'exit');
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: Number(said.toString()), exited, kill: (signal) => void child.kill(signal) };
};

describe('a host that ends without closing its server', () => {
  it('process.exit: the server is gone', async () => {
    const { pid, exited, kill } = await start(`process.on('SIGUSR2', () => process.exit(5));`);
    expect(groupOf(pid)).toEqual([pid]);
    kill('SIGUSR2');
    expect(await exited).toEqual([5, null]);
    await until(() => groupOf(pid).length === 0);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s, and nobody listens: the host dies of it, the server is gone',
    async (signal) => {
      const { pid, exited, kill } = await start('');
      expect(groupOf(pid)).toEqual([pid]);
      kill(signal);
      expect(await exited).toEqual([null, signal]);
      await until(() => groupOf(pid).length === 0);
    },
  );

  it('SIGTERM, and the host listens: the host decides', async () => {
    const { pid, exited, kill } = await start(
      `process.once('SIGTERM', () => void provider.close().then(() => process.exit(7)));`,
    );
    kill('SIGTERM');
    expect(await exited).toEqual([7, null]);
    await until(() => groupOf(pid).length === 0);
  });

  it('an error that nobody catches: the server is gone', async () => {
    const { pid, exited } = await start(
      `setTimeout(() => { console.error = () => {}; process.on('uncaughtException', () => process.exit(9)); throw new Error('x'); }, 50);`,
    );
    expect(await exited).toEqual([9, null]);
    await until(() => groupOf(pid).length === 0);
  });
});

describe('a host that closes its server', () => {
  it('ends by itself: nothing keeps it alive', async () => {
    const { pid, exited } = await start(`setTimeout(() => void provider.close(), 50);`);
    expect(await exited).toEqual([0, null]);
    expect(groupOf(pid)).toEqual([]);
  });
});
