import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { lastValueFrom, toArray } from 'rxjs';
import { createSpillway, type TraceEvent, type TurnResult } from '../../src/index.ts';
import type { FleetEngine } from '../../src/contract.ts';
import { restateFleet } from '../../src/fleet/restate.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { bullmqFleet, type BullmqFleetOptions } from '../../src/fleet/bullmq.ts';
import {
  fleetConformanceTools,
  type FleetHarness,
  type FleetMark,
  type FleetMarkKind,
} from '../../src/testing/index.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import type { RestateServer } from './restate/server.ts';
import type { WorkerTask } from './worker.ts';

/** What both engines are made with. */
export type FleetOptions = Omit<BullmqFleetOptions, 'lockMs'>;

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

/** A worker process. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  readonly ready: Promise<unknown>;
  readonly gone: Promise<unknown>;
}

/** A Redis for the fleet, one for the world outside, an engine in this process, and workers in others. */
export interface Fleet {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly engine: FleetEngine;
  /** Another engine, as another machine has one. */
  open(options?: FleetOptions): FleetEngine;
  start(name: string, task?: Partial<WorkerTask>): WorkerProcess;
  marks(kind: FleetMarkKind): Promise<FleetMark[]>;
  stop(): Promise<void>;
}

/** What Redis has acknowledged it still has after a kill. */
const DURABLE = { 'maxmemory-policy': 'noeviction', appendonly: 'yes', appendfsync: 'always' };

export async function startFleet(engineOptions: FleetOptions = {}, restate?: RestateServer): Promise<Fleet> {
  const [server, outside] = await Promise.all([startRedis({ settings: DURABLE }), startRedis()]);
  const connections: Redis[] = [];
  const engines: FleetEngine[] = [];
  const children: WorkerProcess[] = [];
  const connect = (path = server.path): Redis => {
    const redis = new Redis({ path, maxRetriesPerRequest: null, retryStrategy: () => 50 });
    redis.on('error', () => undefined);
    connections.push(redis);
    return redis;
  };
  const open = (own: FleetOptions = engineOptions): FleetEngine => {
    const engine =
      restate === undefined
        ? bullmqFleet(connect(), own)
        : restateFleet(connect(), { ingressUrl: restate.ingressUrl, ...own });
    engines.push(engine);
    return engine;
  };
  const world = connect(outside.path);
  const start = (worker: string, task: Partial<WorkerTask> = {}): WorkerProcess => {
    const at = restate === undefined ? {} : { ingressUrl: restate.ingressUrl };
    const told: WorkerTask = { path: server.path, worldPath: outside.path, worker, ...at, ...task };
    const child = fork(WORKER, [JSON.stringify(told)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [...process.execArgv, ...(task.quiet === true ? ['--expose-gc'] : [])],
    });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)));
    const gone = once(child, 'exit');
    const ready = Promise.race([
      once(child, 'message').then((told: unknown[]) => {
        const { port } = told[0] as { readonly port: number };
        return restate?.balance(port, gone, task.version ?? '0');
      }),
      gone.then(() => {
        if (child.signalCode !== 'SIGKILL') throw new Error(`worker ${worker} ended: ${said}`);
      }),
    ]);
    ready.catch(() => undefined);
    const started = { child, ready, gone };
    children.push(started);
    return started;
  };
  return {
    server,
    redis: connect(),
    engine: open(),
    open,
    start,
    marks: async (kind) => (await world.lrange(kind, 0, -1)).map((line) => JSON.parse(line) as FleetMark),
    stop: async () => {
      for (const { child } of children) child.kill('SIGKILL');
      await Promise.all(children.map(({ gone }) => gone));
      await Promise.all(engines.map((engine) => engine.close().catch(() => undefined)));
      for (const connection of connections) connection.disconnect();
      await Promise.all([server.stop(), outside.stop(), restate?.stop()]);
    },
  };
}

/** How long the engine's server is away. */
const AWAY_MS = 1_000;

/** A fleet, as the conformance cases want it. */
export async function harness(restate?: RestateServer): Promise<FleetHarness> {
  const fleet = await startFleet({}, restate);
  const tools = fleetConformanceTools({ mark: async () => 0, first: async () => true }, 'here');
  const here = createSpillway({ tools, store: redisStore(fleet.redis) });
  return {
    engine: fleet.engine,
    movesFrozen: restate === undefined,
    open: () => fleet.open(),
    start: async (worker, version) => {
      const { child, ready, gone } = fleet.start(worker, version === undefined ? {} : { version });
      await ready;
      return {
        kill: async () => {
          child.kill('SIGKILL');
          await gone;
        },
        freeze: () => void child.kill('SIGSTOP'),
        thaw: () => void child.kill('SIGCONT'),
        drain: async () => {
          child.kill('SIGTERM');
          await gone;
        },
      };
    },
    runHere: (planned) => lastValueFrom(here.turn(planned)),
    marks: (kind) => fleet.marks(kind),
    restart: async () => {
      if (restate !== undefined) return restate.restart();
      await fleet.server.kill('SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
      await fleet.server.start();
    },
    close: () => fleet.stop(),
  };
}

export const eventsOf = (engine: FleetEngine, turnId: string): Promise<TraceEvent[]> =>
  lastValueFrom(engine.attach(turnId).pipe(toArray()));

export const settledOf = (events: readonly TraceEvent[]): TurnResult => {
  const last = events.at(-1);
  if (last?.source !== 'turn' || last.type !== 'settled') throw new Error('the turn has not settled');
  return last.result;
};
