// Was: any `GET //` ended a worker's process, since a path that is no URL was thrown in the server's listener. Now: a
// path is compared as it is, and what cannot be answered is a status.
import { connect } from 'node:net';
import { NEVER } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway } from 'spillway';
import type { FleetEngine } from '../../src/contract.ts';
import { openProbes } from '../../src/cli/fleet/probes.ts';

const engine: FleetEngine = {
  serve: () => ({ ready: Promise.resolve(), close: async () => undefined }),
  submit: async (turnId) => ({ turnId, state: 'accepted', deadlineAtMs: 0 }),
  attach: () => NEVER,
  cancel: async () => false,
  health: async () => {
    throw new Error('no answer');
  },
  close: async () => undefined,
};

/** The status of a path that is sent as it stands. */
const statusOf = (port: number, path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: worker\r\nconnection: close\r\n\r\n`);
    });
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.once('error', reject);
    socket.once('close', () => resolve(answer.split(' ', 2)[1] ?? ''));
  });

it('R-17.4 no path that anybody asks for ends a worker', async () => {
  const spillway = createSpillway();
  const probes = await openProbes(engine, spillway, 0, () => true);
  try {
    const asked = ['//', '//[', 'http://[', '/healthz?x=//', '/readyz', '/metrics', '/%ff', '*'];
    const statuses: string[] = [];
    for (const path of asked) statuses.push(await statusOf(probes.port, path));
    expect(statuses).toStrictEqual(['404', '404', '404', '200', '200', '200', '404', '404']);
  } finally {
    await probes.close();
    await spillway.close();
  }
});
