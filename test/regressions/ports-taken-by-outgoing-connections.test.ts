// Was: a server's port was one that the kernel gives to outgoing connections, too, so that one could have it before the
// server did; and of a cluster, one of whose nodes could not start, the others ran on. Now: ports lie below those.
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startCluster } from '../fleet/restate/cluster.ts';
import { freePort } from '../free-port.ts';

/** Where Linux begins, unless it is told otherwise; others begin above. */
const EPHEMERAL_FROM = 32_768;

it('R-17 a free port is none of those that outgoing connections get, and is given once', async () => {
  const ports = await Promise.all(Array.from({ length: 500 }, () => freePort()));
  expect(Math.max(...ports)).toBeLessThan(EPHEMERAL_FROM);
  expect(new Set(ports).size).toBe(500);
});

/** The port at this end of a connection that stays open. */
const outgoingPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  onTestFinished(() => void (socket.destroy(), server.close()));
  return socket.localPort ?? 0;
};

it('R-17 a cluster of which one node finds its port taken ends as a whole', async () => {
  const taken = await outgoingPort();
  const folder = mkdtempSync(join(tmpdir(), 'spillway-ports-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  let count = 0;
  const starting = startCluster(async () => (++count === 4 ? taken : freePort()));
  await expect(starting).rejects.toThrow('node 2 ended with 1');
  expect(readdirSync(folder)).toStrictEqual([]);
});
