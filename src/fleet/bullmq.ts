import { Queue, Worker, DelayedError, WaitingError, type ConnectionOptions, type Job } from 'bullmq';
import { Subject, filter, firstValueFrom, fromEventPattern, type Observable } from 'rxjs';
import type { FleetEngine } from '../contract/fleet/port.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { redisThrown } from '../errors/redis.ts';
import type { Dispatcher, Given, RunEnd, Workforce } from './dispatcher.ts';
import type { LedgerConnection } from './redis/connection.ts';
import { FLEET_NAME, REDIS_TERMS, engineOnRedis, type RedisTerms } from './redis/engine.ts';

export type { LedgerConnection } from './redis/connection.ts';

/** Where a fleet's turns lie, and how soon a worker counts as dead. Times are milliseconds. */
export interface BullmqFleetOptions extends RedisTerms {
  /** The fleet's name, and its queue's: 1 to 64 letters, digits, `_` or `-`. Default `spillway`. */
  readonly name?: string;
  /**
   * How long a worker holds a turn without a sign of life; it gives one every third of it. What a turn loses when its
   * worker dies is this, and a third more at most. Default 3,000, at least 1,000.
   */
  readonly lockMs?: number;
}

const OPTION_KEYS = [...REDIS_TERMS, 'lockMs'];
const NAME = /^[\w-]{1,64}$/;
/** A third of a lock: two signs of life may be lost. */
const BEATS_PER_LOCK = 3;
/** BullMQ knows priorities up to here; behind that, turns of one tenant keep no order to those of others. */
const PLACE_MAX = 2_000_000;
/** A turn is given again however often its workers die: its deadline ends it, not a count. */
const STALLED_MAX = 1_000_000;

/** A turn that is given to a worker which still has it comes again after so long. */
const OWN_RUN_MS = 100;

/** Ids of jobs: BullMQ takes no number, and no colon. */
const jobIdOf = (turnId: string): string => `turn-${turnId}`;
const turnIdOf = ({ id = '' }: Job): string => id.slice('turn-'.length);

interface BullmqSite {
  readonly connection: ConnectionOptions;
  readonly name: string;
  readonly lockMs: number;
  readonly runtime: Runtime;
}

/** Errors of a connection: the client makes it again by itself, and what was asked for rejects on its own. */
const ignore = (): void => undefined;

type Process = (job: Job, token?: string) => Promise<void>;

/** Not by a clock where it need not be: those of two workers can be far apart. */
const later = async (job: Job, token: string | undefined, afterMs: number, runtime: Runtime): Promise<never> => {
  if (afterMs === 0) {
    await job.moveToWait(token);
    throw new WaitingError();
  }
  await job.moveToDelayed(runtime.wallNow() + afterMs, token);
  throw new DelayedError();
};

const processOf = (runtime: Runtime, run: (given: Given) => Observable<RunEnd>, lost$: Subject<string>): Process => {
  const active = new Set<string>();
  return async (job, token) => {
    const { id = '' } = job;
    if (active.has(id)) {
      // BullMQ renews a job's lock by its id: the end of the run that was given up would end that of this one, too.
      lost$.next(id);
      return later(job, token, OWN_RUN_MS, runtime);
    }
    active.add(id);
    try {
      const mine$ = lost$.pipe(filter((lost) => lost === id));
      const end = await firstValueFrom(run({ turnId: turnIdOf(job), lost$: mine$ }));
      if (end.act === 'again') await later(job, token, end.afterMs, runtime);
    } finally {
      active.delete(id);
    }
  };
};

const workforce = (
  { connection, name, lockMs, runtime }: BullmqSite,
  run: (given: Given) => Observable<RunEnd>,
  concurrency: number,
): Workforce => {
  const lost$ = new Subject<string>();
  // Redis takes no part of a millisecond: it would refuse each look for workers that died, and nobody would hear of it.
  const beatMs = Math.floor(lockMs / BEATS_PER_LOCK);
  const worker = new Worker(name, processOf(runtime, run, lost$), {
    connection,
    prefix: `{${name}}`,
    concurrency,
    lockDuration: lockMs,
    lockRenewTime: beatMs,
    stalledInterval: beatMs,
    maxStalledCount: STALLED_MAX,
  });
  worker.on('error', ignore);
  fromEventPattern<string[]>(
    (listener) => worker.on('lockRenewalFailed', listener),
    (listener) => worker.off('lockRenewalFailed', listener),
  ).subscribe((ids) => {
    for (const id of ids) lost$.next(id);
  });
  return {
    ready: worker.waitUntilReady(),
    pause: () => worker.pause(true),
    close: () => worker.close(),
  };
};

const bullmqDispatcher = (site: BullmqSite): Dispatcher => {
  const { connection, name } = site;
  const queue = new Queue(name, { connection, prefix: `{${name}}` });
  queue.on('error', ignore);
  return {
    engine: 'bullmq',
    add: async (turnId, place) => {
      const options = { jobId: jobIdOf(turnId), priority: Math.min(PLACE_MAX, Math.max(1, place)) };
      try {
        await queue.add('turn', {}, { ...options, removeOnComplete: true, removeOnFail: true });
      } catch (thrown) {
        throw redisThrown(thrown, 'The turn could not be queued');
      }
    },
    work: (run, concurrency) => workforce(site, run, concurrency),
    close: () => queue.close(),
  };
};

/**
 * A fleet on BullMQ 6, over the Redis that all its processes use. Who submits and who serves give the same name.
 *
 * @param connection an `ioredis` client with `maxRetriesPerRequest: null`, as BullMQ wants it
 * @returns an engine, for `serve` in workers, and for `spillway.turn(plan, { fleet })` anywhere
 * @throws RangeError for an option out of its range
 *
 * @example
 * const redis = new Redis('redis://localhost:6379', { maxRetriesPerRequest: null });
 * const fleet = bullmqFleet(redis);
 * fleet.serve({ layer: createSpillway({ tools, store: redisStore(redis) }) });
 */
export function bullmqFleet(connection: LedgerConnection, options: BullmqFleetOptions = {}): FleetEngine {
  checkKeys('bullmqFleet', options, OPTION_KEYS);
  const { lockMs = 3_000, ...terms } = options;
  const { name = FLEET_NAME, runtime = liveRuntime } = terms;
  if (!NAME.test(name))
    throw new RangeError(`name must be 1 to 64 letters, digits, _ or -, not ${JSON.stringify(name.slice(0, 80))}`);
  checkNumber('lockMs', lockMs, integer(1_000, 600_000));
  return engineOnRedis(connection, terms, bullmqDispatcher({ connection, name, lockMs, runtime }));
}
