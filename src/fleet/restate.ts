import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createEndpointHandler, service, type Context, type ServiceDefinition } from '@restatedev/restate-sdk';
import { firstValueFrom, type Observable } from 'rxjs';
import type { FleetEngine } from '../contract/fleet/port.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { abortOf } from './worker/abort-of.ts';
import { places } from './places.ts';
import type { Dispatcher, Given, RunEnd, Workforce } from './dispatcher.ts';
import { FLEET_NAME, REDIS_TERMS, engineOnRedis, type RedisTerms } from './redis/engine.ts';
import type { LedgerConnection } from './redis/connection.ts';

export type { LedgerConnection } from './redis/connection.ts';

/** Where Restate and its workers are. Times are milliseconds. */
export interface RestateFleetOptions extends RedisTerms {
  /** The ingress of Restate, which turns are submitted to: `http://localhost:8080`. */
  readonly ingressUrl: string;
  /**
   * The port at which this process is called by Restate, once it serves; 0 is a free one. Default 9,080. Over HTTP/2
   * without TLS: put it behind what balances load over all workers, as a Service of Kubernetes does.
   */
  readonly port?: number;
  /** Called once this process serves, with its port: for whoever has to tell a load balancer. Default: nobody is. */
  readonly listening?: (port: number) => void;
  /** The fleet's name, and its service's: 1 to 64 letters, digits or `_`. Default `spillway`. */
  readonly name?: string;
}

const OPTION_KEYS = [...REDIS_TERMS, 'ingressUrl', 'port', 'listening'];
const NAME = /^\w{1,64}$/;
const PORT = 9_080;
/** Longer than any turn: Restate must not think that a turn which is at work has fallen asleep. */
const LONG = { days: 365 } as const;

/** A turn is given again however often its workers die: its deadline ends it, not a count. */
const RETRY = {
  initialInterval: 50,
  exponentiationFactor: 2,
  maxInterval: 1_000,
  maxAttempts: 1_000_000,
  onMaxAttempts: 'pause',
} as const;

interface RestateSite {
  readonly ingressUrl: string;
  readonly name: string;
  readonly port: number;
  readonly listening: (port: number) => void;
}

/** The worker is to end: Restate gives its turns to another when the attempt fails. */
class HandedOver extends Error {
  override readonly name: string = 'HandedOver';
}

/** What Restate is asked with. */
interface Asked {
  readonly turnId: string;
  /** Among the turns that wait; absent from one that an earlier release of this package asked for. */
  readonly place?: number;
}

type Turns = ServiceDefinition<string, { readonly run: (ctx: Context, asked: Asked) => Promise<void> }>;

/** What a service needs of the process that it runs in. */
interface TurnsSite {
  readonly run: (given: Given, place: number) => Observable<RunEnd>;
  readonly isEnding: () => boolean;
  readonly add: Dispatcher['add'];
}

const turnsOf = (name: string, { run, isEnding, add }: TurnsSite): Turns =>
  service({
    name,
    handlers: {
      run: async (ctx: Context, { turnId, place = 1 }: Asked): Promise<void> => {
        const { attemptCompletedSignal, id } = ctx.request();
        const lost$ = abortOf(attemptCompletedSignal);
        for (let times = 0; ; times++) {
          const end = await ctx.run(`turn ${times}`, async (): Promise<RunEnd> => {
            const came = await firstValueFrom(run({ turnId, lost$ }, place));
            if (came.act === 'done' || !isEnding()) return came;
            if (came.isNew !== true) throw new HandedOver('the worker ends');
            // Restate would give it to this version only, which may be the last time that it has a worker.
            await add(turnId, place, `${turnId}/${id}`);
            return { act: 'done' };
          });
          if (end.act === 'done') return;
          await ctx.sleep(end.afterMs);
        }
      },
    },
    options: { inactivityTimeout: LONG, abortTimeout: LONG, retryPolicy: RETRY },
  });

const listen = (server: Http2Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => resolve((server.address() as AddressInfo).port));
  });

const workforce = (
  { name, port, listening }: RestateSite,
  { run, add }: Pick<TurnsSite, 'add'> & { readonly run: (given: Given) => Observable<RunEnd> },
  concurrency: number,
): Workforce => {
  let isEnding = false;
  const limited = places(concurrency);
  const turns = turnsOf(name, {
    run: (given, place) => limited.held(run(given), place),
    isEnding: () => isEnding,
    add,
  });
  const server = createServer(createEndpointHandler({ services: [turns] }));
  const sessions = new Set<{ close(): void; destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  return {
    ready: listen(server, port).then(listening),
    pause: async () => {
      isEnding = true;
      server.close();
      // What is called from now on goes elsewhere.
      for (const session of sessions) session.close();
    },
    close: async () => {
      await limited.empty();
      // What Restate still waits for here it asks another for.
      for (const session of sessions) session.destroy();
    },
  };
};

const SILENT = 'The turn could not be handed to Restate';

const sent = async (url: URL, asked: Asked, once: string): Promise<Response> => {
  try {
    return await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': once },
      body: JSON.stringify(asked),
    });
  } catch (cause) {
    throw new ToolExecutionError('store_unavailable', `${SILENT}: it could not be reached; check that it runs`, {
      cause,
    });
  }
};

const restateDispatcher = (site: RestateSite): Dispatcher => {
  const add: Dispatcher['add'] = async (turnId, place, once) => {
    const { status, ok } = await sent(new URL(`/${site.name}/run/send`, site.ingressUrl), { turnId, place }, once);
    if (ok) return;
    const remedy =
      status === 404
        ? `it knows no service ${site.name}; register a worker's address with restate's admin API (POST /deployments)`
        : `it answered ${status}`;
    throw new ToolExecutionError('store_unavailable', `${SILENT}: ${remedy}`, { status });
  };
  return {
    engine: 'restate',
    add,
    work: (run, concurrency) => workforce(site, { run, add }, concurrency),
    close: async () => undefined,
  };
};

/**
 * A fleet on Restate 1.7, which calls workers over HTTP/2 and notices at once when a connection to one is lost.
 * Journals and events lie in a Redis, beside the records of keys.
 *
 * @param connection an `ioredis` client with `maxRetriesPerRequest: null`; it stays its maker's to close
 * @param options where Restate is, and how it reaches this process
 * @returns an engine, for `serve` in workers, and for `spillway.turn(plan, { fleet })` anywhere
 * @throws RangeError for an option out of its range
 *
 * @example
 * const fleet = restateFleet(redis, { ingressUrl: 'http://localhost:8080' });
 * fleet.serve({ layer: createSpillway({ tools, store: redisStore(redis) }) });
 */
export function restateFleet(connection: LedgerConnection, options: RestateFleetOptions): FleetEngine {
  checkKeys('restateFleet', options, OPTION_KEYS);
  const { ingressUrl, port = PORT, listening = () => undefined, ...terms } = options;
  const { name = FLEET_NAME } = terms;
  if (!NAME.test(name))
    throw new RangeError(`name must be 1 to 64 letters, digits or _, not ${JSON.stringify(name.slice(0, 80))}`);
  if (!URL.canParse(ingressUrl)) throw new RangeError('ingressUrl must be a URL, such as http://localhost:8080');
  checkNumber('port', port, integer(0, 65_535));
  return engineOnRedis(connection, terms, restateDispatcher({ ingressUrl, name, port, listening }));
}
