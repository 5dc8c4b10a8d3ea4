import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../free-port.ts';
import { COMMAND, deployments, type RestateServer } from './server.ts';

const NODES = [1, 2, 3] as const;
const START_MS = 120_000;
const AWAY_MS = 2_000;

/** Three nodes of one cluster, each of which can be killed and brought back. */
export interface RestateCluster extends RestateServer {
  /** Kills one, and starts it on the same files. @param at 0 to 2 */
  restartNode(at: number): Promise<void>;
  /** The nodes that hold what the cluster knows of itself, as it says. */
  members(): Promise<number[]>;
}

interface Ports {
  readonly ingress: number;
  readonly admin: number;
  readonly fabric: number;
}

const settingsOf = (node: number, ports: Ports, all: readonly Ports[], dir: string): Record<string, string> => ({
  RESTATE_CLUSTER_NAME: 'spillway-test',
  RESTATE_NODE_NAME: `n${node}`,
  RESTATE_FORCE_NODE_ID: String(node),
  RESTATE_BASE_DIR: join(dir, `n${node}`),
  // One makes the cluster, the others join it.
  RESTATE_AUTO_PROVISION: String(node === 1),
  RESTATE_DEFAULT_REPLICATION: '2',
  RESTATE_DEFAULT_NUM_PARTITIONS: '2',
  RESTATE_BIFROST__DEFAULT_PROVIDER: 'replicated',
  RESTATE_METADATA_CLIENT__TYPE: 'replicated',
  RESTATE_METADATA_CLIENT__ADDRESSES: JSON.stringify(all.map(({ fabric }) => `http://127.0.0.1:${fabric}`)),
  RESTATE_BIND_ADDRESS: `127.0.0.1:${ports.fabric}`,
  RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${ports.fabric}`,
  RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ports.ingress}`,
  RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${ports.admin}`,
  RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '256MB',
  RESTATE_DISABLE_TELEMETRY: 'true',
  RUST_LOG: process.env['RESTATE_TEST_LOG'] ?? 'error',
});

const isWell = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

/** Gives each connection to the first node that takes it, as what stands before a cluster does. */
const front = (ports: readonly number[]) =>
  createServer((incoming) => {
    incoming.on('error', () => incoming.destroy());
    const attempt = (at: number): void => {
      const port = ports[at];
      if (port === undefined) return void incoming.destroy();
      const outgoing = connect(port, '127.0.0.1');
      outgoing.once('error', () => attempt(at + 1));
      outgoing.once('connect', () => {
        outgoing.removeAllListeners('error').on('error', () => incoming.destroy());
        outgoing.on('close', () => incoming.destroy());
        incoming.on('close', () => outgoing.destroy());
        incoming.pipe(outgoing).pipe(incoming);
      });
    };
    attempt(0);
  });

/** @param portOf where each node listens: three of one after those of the other */
export async function startCluster(portOf: () => Promise<number> = freePort): Promise<RestateCluster> {
  const dir = mkdtempSync(join(tmpdir(), 'spillway-restate-cluster-'));
  const all: Ports[] = [];
  for (const _ of NODES) all.push({ ingress: await portOf(), admin: await portOf(), fabric: await portOf() });
  const children: ChildProcess[] = [];
  const start = (at: number): void => {
    children[at] = spawn(COMMAND, ['--no-logo', '--listen-mode', 'tcp'], {
      stdio: ['ignore', process.env['RESTATE_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'ignore'],
      env: { ...process.env, ...settingsOf(at + 1, all[at] as Ports, all, dir) },
    });
  };
  const well = async (at: number): Promise<void> => {
    const { ingress, admin } = all[at] as Ports;
    const endMs = performance.now() + START_MS;
    while (performance.now() < endMs) {
      const urls = [`http://127.0.0.1:${ingress}/restate/health`, `http://127.0.0.1:${admin}/health`];
      if ((await Promise.all(urls.map(isWell))).every(Boolean)) return;
      const { exitCode, signalCode } = children[at] as ChildProcess;
      if (exitCode !== null || signalCode !== null) throw new Error(`node ${at + 1} ended with ${exitCode}`);
      await sleep(100);
    }
    throw new Error(`node ${at + 1} is not well after ${START_MS} ms`);
  };
  const kill = async (at: number): Promise<void> => {
    const child = children[at];
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  const end = async (): Promise<void> => {
    await Promise.all([...NODES.keys()].map(kill));
    rmSync(dir, { recursive: true, force: true });
  };
  for (const at of NODES.keys()) start(at);
  try {
    await Promise.all([...NODES.keys()].map(well));
  } catch (error) {
    await end();
    throw error;
  }
  const [ingress, admin] = [front(all.map((one) => one.ingress)), front(all.map((one) => one.admin))];
  for (const server of [ingress, admin]) await once(server.listen(0, '127.0.0.1'), 'listening');
  const urlOf = (server: typeof ingress): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registered = deployments(urlOf(admin));
  const members = async (): Promise<number[]> => {
    const answer = await fetch(`${urlOf(admin)}/cluster-health`);
    const { metadata_cluster_health: health } = (await answer.json()) as {
      readonly metadata_cluster_health?: { readonly members: number[] } | null;
    };
    return health?.members.toSorted((a, b) => a - b) ?? [];
  };
  const restartNode = async (at: number): Promise<void> => {
    await kill(at);
    await sleep(AWAY_MS);
    start(at);
    await well(at);
  };
  return {
    ingressUrl: urlOf(ingress),
    members,
    balance: registered.balance,
    restartNode,
    restart: async () => {
      for (const at of NODES.keys()) await restartNode(at);
    },
    stop: async () => {
      await end();
      registered.close();
      ingress.close();
      admin.close();
    },
  };
}
