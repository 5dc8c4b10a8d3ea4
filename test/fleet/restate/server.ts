import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../free-port.ts';

/** The binary itself: its launcher, killed, would leave it running. */
export const COMMAND: string = fileURLToPath(
  import.meta.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`),
);
const START_MS = 60_000;
const AWAY_MS = 500;

/** A real Restate, and what balances its calls over the workers. */
export interface RestateServer {
  readonly ingressUrl: string;
  /**
   * Calls go to this port, too, until its process is gone. Each version has an address of its own, as Restate wants it:
   * what one began stays with it.
   */
  balance(port: number, gone: Promise<unknown>, version: string): Promise<void>;
  /** Kills it, and starts it on the same files. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Gives each connection to one of the ports that answer, in turn. */
const balancer = (): { readonly server: Server; readonly ports: number[] } => {
  const ports: number[] = [];
  let turn = 0;
  const server = createServer((incoming) => {
    incoming.on('error', () => incoming.destroy());
    const port = ports[turn++ % Math.max(1, ports.length)];
    if (port === undefined) return incoming.destroy();
    const outgoing = connect(port, '127.0.0.1');
    outgoing.on('error', () => incoming.destroy());
    outgoing.on('close', () => incoming.destroy());
    incoming.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing).pipe(incoming);
    return undefined;
  });
  return { server, ports };
};

/** What balances the calls of one Restate, by version, and is registered there. */
export const deployments = (adminUrl: string): Pick<RestateServer, 'balance'> & { readonly close: () => void } => {
  const balancers = new Map<string, ReturnType<typeof balancer>>();
  return {
    balance: async (port, gone, version) => {
      const known = balancers.get(version);
      const { server, ports } = known ?? balancer();
      ports.push(port);
      void gone.then(() => ports.splice(ports.indexOf(port), 1));
      if (known !== undefined) return;
      balancers.set(version, { server, ports });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const answer = await fetch(`${adminUrl}/deployments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, force: true }),
      });
      if (!answer.ok) throw new Error(`not registered: ${answer.status} ${await answer.text()}`);
    },
    close: () => {
      for (const { server } of balancers.values()) server.close();
    },
  };
};

export async function startRestate(): Promise<RestateServer> {
  const dir = mkdtempSync(join(tmpdir(), 'spillway-restate-'));
  const [ingress, admin, node] = await Promise.all([freePort(), freePort(), freePort()]);
  const adminUrl = `http://127.0.0.1:${admin}`;
  const registered = deployments(adminUrl);
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const started = spawn(COMMAND, ['--no-logo', '--base-dir', dir, '--listen-mode', 'tcp'], {
      stdio: ['ignore', 'ignore', 'ignore'],
      env: {
        ...process.env,
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '256MB',
        RESTATE_DISABLE_TELEMETRY: 'true',
        RUST_LOG: 'error',
      },
    });
    child = started;
    const endMs = performance.now() + START_MS;
    while (performance.now() < endMs) {
      const [one, other] = await Promise.all(
        [`${adminUrl}/health`, `http://127.0.0.1:${ingress}/restate/health`].map((url) =>
          fetch(url).then(
            ({ ok }) => ok,
            () => false,
          ),
        ),
      );
      if (one && other) return;
      if (started.exitCode !== null) throw new Error(`restate-server ended with ${started.exitCode}`);
      await sleep(50);
    }
    throw new Error('restate-server did not start');
  };
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  await start();
  return {
    ingressUrl: `http://127.0.0.1:${ingress}`,
    balance: registered.balance,
    restart: async () => {
      await kill();
      await sleep(AWAY_MS);
      await start();
    },
    stop: async () => {
      await kill();
      registered.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
