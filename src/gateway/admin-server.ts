import type { Runtime } from '../contract/runtime.ts';
import { checkKeys } from '../policy/check.ts';
import { adminHandler, type AdminLayer, type AdminOptions } from './admin.ts';
import { serveLocally } from './admin/local-server.ts';

/** What `adminHandler` takes, and where its server listens. */
export interface AdminServerOptions extends AdminOptions {
  /**
   * The address to listen at. Default `127.0.0.1`. An address that others can reach needs a `token` of your own, and
   * TLS in front of it.
   */
  readonly host?: string;
  /** The port to listen at, 0 to 65,535. Default 0: any free one, which `url` shows. */
  readonly port?: number;
  /**
   * How long answers that are on their way when `close()` is called may take, in milliseconds, 0 to 60,000. Default
   * 500.
   */
  readonly closeGraceMs?: number;
  /** The timer for `closeGraceMs`. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** An admin page that is being served. */
export interface AdminServer {
  /** The base address for requests: scheme, address and port. */
  readonly url: string;
  /**
   * The token that requests must bear: the one given, or the one made. The server prints it nowhere; show it only to
   * those who may ask.
   */
  readonly token: string;
  /** Stops listening, lets answers go out that are on their way, and ends all connections. Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves a layer's admin page on Node, at a loopback address with a token that is made, unless you say otherwise. It
 * prints nothing; `onRefused` hears of every request that is refused.
 *
 * @param layer the layer, from `createSpillway`
 * @param options where to listen, and what `adminHandler` takes
 * @throws RangeError for an option out of its range, and for an address that others can reach without a token of your
 * own: it does not start
 * @throws Error when it cannot listen, with the reason and the remedy
 *
 * @example
 * const admin = await serveAdmin(spillway);
 * console.error(`admin: ${admin.url}, token ${admin.token}`);
 * await admin.close();
 */
export async function serveAdmin(layer: AdminLayer, options: AdminServerOptions = {}): Promise<AdminServer> {
  const { host: _host, port: _port, closeGraceMs: _graceMs, runtime: _runtime, ...rest } = options;
  checkKeys('serveAdmin', rest, [
    'token',
    'allowedHosts',
    'allowedOrigins',
    'approvals',
    'metrics',
    'maxBodyBytes',
    'onRefused',
  ]);
  let token = '';
  const server = await serveLocally('the admin server', options, (own) => {
    const handler = adminHandler(layer, { ...rest, allowedHosts: [...(rest.allowedHosts ?? []), ...own] });
    ({ token } = handler);
    return handler;
  });
  return { url: server.url, token, close: () => server.close() };
}
