import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { folder } from '../cli/support.ts';
import { freePort } from '../free-port.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { isAlive, until } from '../providers/support.ts';
import { NODE, ledger, type Ledger } from './kit.ts';
import { NEWEST_CLIENTS, REAL_CLIENTS, loadLangChainMcp, type Connect, type RealClient } from './real-clients.ts';
import { MAIN, behind, type Command } from './wire-kit.ts';

beforeAll(loadLangChainMcp, SIDE_INSTALL_TIMEOUT_MS);

const FAULTS = join(import.meta.dirname, 'fault-server.ts');
const MODERN_FAULTS = join(import.meta.dirname, 'modern-fault-server.ts');

/** What a busy machine may take to start a process. */
const BUSY_MS = 60_000;

/** A server and the proxy before it: the command that a client starts, and what ends with the client. */
interface Place {
  readonly command: (...options: readonly string[]) => Command;
  readonly isStartedByProxy: boolean;
  ready(): Promise<void>;
  close(): void;
}
type MakePlace = (kept: Ledger) => Promise<Place>;

const started =
  (file: string): MakePlace =>
  async (kept) => ({
    command: (...options) => behind([NODE, file, kept.path], ...options),
    isStartedByProxy: true,
    ready: () => Promise.resolve(),
    close: () => undefined,
  });

/** Whoever runs a server over HTTP starts it again; how long that takes on a busy machine, the proxy is to bear. */
const PATIENT = `defaults:
  circuit_breaker: false
  retry_policy: { max_attempts: 200, initial_delay_ms: 100, max_delay_ms: 300, max_total_time_ms: 60000 }
`;
const overHttp: MakePlace = async (kept) => {
  const files = folder();
  const config = files.write('guards.yaml', PATIENT);
  const port = await freePort();
  let isClosed = false;
  const start = (): ReturnType<typeof spawn> => {
    const child = spawn(NODE, [MODERN_FAULTS, kept.path, String(port)], { stdio: 'ignore' });
    return child.once('exit', () => (isClosed ? undefined : (running = start())));
  };
  let running = start();
  return {
    command: (...options) => [
      NODE,
      MAIN,
      'mcp',
      '--config',
      config,
      '--server',
      `s=http://127.0.0.1:${port}/mcp`,
      ...options,
    ],
    isStartedByProxy: false,
    ready: () => until(() => kept.count('started ') > 0, BUSY_MS),
    close: () => {
      isClosed = true;
      running.kill('SIGKILL');
      files[Symbol.dispose]();
    },
  };
};

interface Setup {
  readonly name: string;
  readonly connect: Connect;
  readonly place: MakePlace;
  readonly options: readonly string[];
}

const PLACES: Readonly<Record<string, MakePlace>> = {
  'a process': started(MODERN_FAULTS),
  'a server over HTTP': overHttp,
};
const SETUPS: readonly Setup[] = [
  ...Object.entries(REAL_CLIENTS).map(([name, connect]) => ({ name, connect, place: started(FAULTS), options: [] })),
  ...Object.entries(PLACES).flatMap(([where, place]) =>
    Object.entries(NEWEST_CLIENTS).map(([how, connect]) => ({
      name: `the newest era over ${how}, before ${where}`,
      connect,
      place,
      options: how === 'HTTP' ? ['--http', '0'] : [],
    })),
  ),
];

interface Opened extends RealClient, AsyncDisposable {
  readonly place: Place;
}
const opened = async ({ connect, place: make, options }: Setup, kept: Ledger, ...more: string[]): Promise<Opened> => {
  const place = await make(kept);
  try {
    await place.ready();
    const client = await connect(place.command(...options, ...more));
    const end = (): Promise<void> => client.close().finally(() => place.close());
    return { ...client, place, [Symbol.asyncDispose]: end };
  } catch (error) {
    place.close();
    throw error;
  }
};
/** The server's own id, and of no other process: an answer has other numbers, too, and what is told here is killed. */
const pidOf = async (client: RealClient, kept: Ledger): Promise<number> => {
  const told = await client.call('pid');
  const pid = told.match(/\d+/g)?.find((number) => kept.count(`pid ${number}`) > 0);
  if (pid === undefined) throw new Error(`no server has noted an id that is in ${told}`);
  return Number(pid);
};

describe('R-16.2 R-16.5 what befalls a server behind the clients of others', () => {
  it.each(SETUPS)('R-16.2 R-16.5 $name: killed, idle and in the middle of a read and of a payment', async (setup) => {
    using kept = ledger();
    await using client = await opened(setup, kept);
    const before = await pidOf(client, kept);
    // A client that asks for the newest era first may have started the server more than once.
    const starts = kept.count('started ');
    process.kill(before, 'SIGKILL');
    await until(() => kept.count('started ') > starts, BUSY_MS);
    expect(await pidOf(client, kept)).not.toBe(before);
    expect(await client.call('look', { first: 'kill', times: 1 })).toContain('looked 2 times');
    expect(await client.call('pay', { amount: 7, then: 'kill' })).toContain('may have');
    expect(await client.call('pay', { amount: 8 })).toContain('paid 8');
    expect([kept.count('pay 7'), kept.count('pay 8')]).toEqual([1, 1]);
  });

  it.each(SETUPS)('R-16.2 R-16.5 $name: flooded, that call and one beside it are answered', async (setup) => {
    using kept = ledger();
    await using client = await opened(setup, kept);
    const [flooded, beside] = await Promise.all([client.call('flood', { count: 20_000 }), pidOf(client, kept)]);
    expect(flooded).toContain('flooded');
    expect(beside).toBeGreaterThan(0);
  });

  // Most of it is the proxy's wait for an answer to its ping.
  it.concurrent.each(SETUPS)(
    'R-16.2 R-16.5 $name: frozen, the call ends at its limit, and the next one has another server',
    async (setup) => {
      using kept = ledger();
      await using client = await opened(setup, kept, '--timeout', '8000');
      const before = await pidOf(client, kept);
      const starts = kept.count('started ');
      expect(await client.call('pay', { amount: 7, then: 'freeze' })).toContain('may have');
      // One that the proxy has not started is for others to end.
      if (!client.place.isStartedByProxy) process.kill(before, 'SIGKILL');
      await until(() => kept.count('started ') > starts && !isAlive(before), BUSY_MS);
      expect(await client.call('pay', { amount: 8 })).toContain('paid 8');
      expect(kept.count('pay 7')).toBe(1);
    },
  );
});
