import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FleetEngine, FleetHealth } from '../../contract/fleet/port.ts';
import { fleetMetrics } from '../../fleet/metrics.ts';
import { prometheusSink } from '../../sinks/prometheus.ts';
import type { Spillway } from '../../spillway.ts';

type Answer = readonly [status: number, body: string];

const fleetText = (health: FleetHealth): string => fleetMetrics(health);

/** What a platform asks a worker for. */
export interface Probes {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/metrics` (of the fleet, and of this worker's tools), `/healthz` (the process lives) and `/readyz` (it takes
 * turns). They tell nothing of any input or output, and take no order.
 *
 * @param isServing whether it takes turns
 */
export async function openProbes(
  fleet: FleetEngine,
  spillway: Spillway,
  port: number,
  isServing: () => boolean,
): Promise<Probes> {
  const sink = prometheusSink({ tools: spillway.tools, inspect: () => spillway.inspect() });
  const watching = spillway.trace$.subscribe(sink);
  const text = async (path: string): Promise<Answer> => {
    if (path === '/healthz') return [200, 'alive\n'];
    if (path === '/readyz') return isServing() ? [200, 'serving\n'] : [503, 'draining\n'];
    if (path !== '/metrics') return [404, 'there is /metrics, /healthz and /readyz\n'];
    const own = await sink.text();
    // Where the engine gives no answer, what is known here is told all the same.
    const shared = await fleet.health().then(fleetText, () => '');
    return [200, `${own}${shared}`];
  };
  const server = createServer((request, response) => {
    // Not read as a URL, which may be none: whatever anybody asks for must not end the process.
    const [path = ''] = (request.url ?? '').split('?', 1);
    void text(request.method === 'GET' ? path : '')
      .catch((): Answer => [500, 'the metrics could not be made\n'])
      .then(([status, body]) => {
        response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
        response.end(body);
      });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        watching.unsubscribe();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
