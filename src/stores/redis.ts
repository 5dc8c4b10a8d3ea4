import { firstValueFrom } from 'rxjs';
import type { DedupeOutcome, DedupeRecord, DedupeStore } from '../contract/store.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, checkOneOf, integer } from '../policy/check.ts';
import { acrossProcesses } from './across-processes.ts';
import { liveRuntime } from '../runtime.ts';
import { redisChanges } from './redis/changes.ts';
import { redisClaims, type ClaimRequest } from './redis/claims.ts';
import { redisCommands, type RedisClientLike, type RedisCommands, type RedisSubscriberLike } from './redis/client.ts';
import { LOOK_BACK_MS, SPAN_MS, redisIndex } from './redis/index.ts';
import { redisLink } from './redis/link.ts';
import { listed } from './redis/listing.ts';
import { digestOf, redisNames } from './redis/names.ts';
import { readRecord, standingInstead } from './redis/reading.ts';
import { flagOf, storedOutcome, settledOf } from './redis/record.ts';
import { redisReplicas } from './redis/replicas.ts';
import { redisReport } from './redis/report.ts';
import { ABANDON, DELETE, RENEW, SETTLE } from './redis/scripts.ts';

export type {
  IoRedisLike,
  IoRedisSubscriberLike,
  NodeRedisClusterLike,
  NodeRedisLike,
  NodeRedisSentinelLike,
  NodeRedisSubscriberLike,
  RedisClientLike,
  RedisSubscriberLike,
} from './redis/client.ts';

/** Where records lie in Redis, and how long the store waits for it. */
export interface RedisStoreOptions {
  /** The beginning of each key's name, without braces, which mean a slot to Redis. Default `spillway:`. */
  readonly prefix?: string;
  /**
   * How long a command may take before the operation fails, in milliseconds; its answer is dropped when it comes.
   * Default 5,000.
   */
  readonly commandTimeoutMs?: number;
  /**
   * `replicated` waits after each claim and outcome until replicas have it. Not with a client that sends over several
   * connections: a cluster's, `createSentinel`'s, `createClientPool`'s. Default `default`: what the server's own
   * settings give.
   */
  readonly durability?: 'default' | 'replicated';
  /** How many replicas must have a write with `replicated`, 1 to 100. Default 1. */
  readonly replicas?: number;
  /**
   * How long replicas may take, in milliseconds, below `commandTimeoutMs`; the connection waits as well. Default 1,000.
   */
  readonly replicaTimeoutMs?: number;
  /**
   * A connected client that does nothing else, over which the store learns at once that another process has ended a
   * call. Without one, whoever waits for a call asks from time to time.
   */
  readonly subscriber?: RedisSubscriberLike;
  /** Clock, timers and ids; leases go by Redis' own clock. Default: the machine's. */
  readonly runtime?: Runtime;
}

const OPTION_KEYS = [
  'prefix',
  'commandTimeoutMs',
  'durability',
  'replicas',
  'replicaTimeoutMs',
  'subscriber',
  'runtime',
];

const WAIT_MAX_MS = 600_000;
const REPLICAS_MAX = 100;
/** Records die with a year of this length at the latest: Redis refuses times that do not fit. */
const KEEP_MAX_MS = 100 * 365 * 24 * 3_600_000;

/** Between two tries to undo a claim whose answer was lost: until the connection is back. */
const ABANDON_RETRY_MS = 500;

/** Redis counts whole milliseconds. */
const wholeMs = (ms: number): number => Math.min(Math.max(0, Math.ceil(ms)), KEEP_MAX_MS);

const checkOptions = (
  {
    prefix = '',
    commandTimeoutMs = 5_000,
    durability = 'default',
    replicas = 1,
    replicaTimeoutMs = 1_000,
  }: RedisStoreOptions,
  { cluster, pooled }: RedisCommands,
): void => {
  if (typeof prefix !== 'string' || /[{}]/.test(prefix))
    throw new RangeError(
      `prefix must be a text without braces, which mean a slot to Redis, not ${JSON.stringify(prefix)}`,
    );
  checkNumber('commandTimeoutMs', commandTimeoutMs, integer(1, WAIT_MAX_MS));
  checkOneOf('durability', durability, ['default', 'replicated']);
  checkNumber('replicas', replicas, integer(1, REPLICAS_MAX));
  checkNumber('replicaTimeoutMs', replicaTimeoutMs, integer(1, WAIT_MAX_MS));
  if (durability !== 'replicated') return;
  if (replicaTimeoutMs >= commandTimeoutMs)
    throw new RangeError(
      `replicaTimeoutMs must be below commandTimeoutMs (${commandTimeoutMs}), not ${replicaTimeoutMs}`,
    );
  if (cluster)
    throw new RangeError(
      "durability 'replicated' must not be used with a cluster client, which sends WAIT to any node: use " +
        'min-replicas-to-write on the nodes',
    );
  if (!pooled) return;
  const remedy =
    'give the store a client of one connection (createClient, or ioredis with sentinels), or set ' +
    'min-replicas-to-write on the primary';
  throw new RangeError(
    `durability 'replicated' must not be used with a client of createSentinel or createClientPool, which ` +
      `sends WAIT over any connection: ${remedy}`,
  );
};

/**
 * Records in Redis 6.2 or later, or Valkey, shared by all processes that use the same server and prefix. `client` is a
 * connected client of the official `redis` package or of `ioredis`, or a cluster or Sentinel client of either; it stays
 * its maker's to close.
 *
 * Each operation is one Lua script by Redis' own clock. A record and its fence share a slot; one process' claims of one
 * moment share a script. The promise is: a call runs at most once while Redis keeps what it acknowledged, and with its
 * default settings Redis keeps nothing over a kill: `report()` says so, and what to set.
 *
 * @returns a store whose operations fail with `store_unavailable`, transient and not executed, saying what to do, when
 * Redis cannot be reached, refuses or gives no answer in time; whether the operation took place is not known then. A
 * damaged record fails so too, permanent
 * @throws RangeError for an option out of its range, and for a client of neither library
 *
 * @example
 * const client = createClient({ url: 'redis://localhost:6379' });
 * await client.connect();
 * const spillway = createSpillway({ tools, store: redisStore(client) });
 */
export function redisStore(client: RedisClientLike, options: RedisStoreOptions = {}): DedupeStore {
  checkKeys('redisStore', options, OPTION_KEYS);
  const {
    prefix = 'spillway:',
    commandTimeoutMs = 5_000,
    durability = 'default',
    replicas = 1,
    replicaTimeoutMs = 1_000,
    subscriber,
    runtime = liveRuntime,
  } = options;
  const commands = redisCommands(client);
  checkOptions(options, commands);
  const link = redisLink(commands, commandTimeoutMs, runtime);
  const index = redisIndex(link, commands.cluster);
  const copies = durability === 'replicated' ? redisReplicas(link, { replicas, replicaTimeoutMs }) : undefined;
  const channels = subscriber === undefined ? undefined : redisChanges(subscriber);
  const names = redisNames(prefix, commands.cluster);

  /** How far Redis' clock is ahead of our monotonic one: it chooses sets of the index, nothing else. */
  let aheadMs = runtime.wallNow() - runtime.now();
  const spanOf = (atMs: number): number => Math.floor(atMs / SPAN_MS);
  const setsAt = ({ tool, request }: Pick<DedupeRecord, 'tool' | 'request'>, atMs: number): string[] => [
    names.tool(tool, spanOf(atMs)),
    names.session(request.sessionKey, spanOf(atMs)),
  ];

  /** Outcomes whose writing failed, and may have taken place: one that is handed in again is the same write. */
  const unsure = new WeakMap<DedupeOutcome, string>();

  const remove = async (name: string, version: string): Promise<boolean> =>
    flagOf(await link.run('The record could not be deleted', DELETE, [name], [version]));
  const extend = async (name: string, version: number, leaseMs: number): Promise<boolean> =>
    flagOf(
      await link.run('The lease could not be renewed', RENEW, [name], [String(version), String(wholeMs(leaseMs))]),
    );

  /**
   * A claim that nobody will act on: its key is free again at once. What it took over is left as something that may
   * have run.
   */
  const undo = async ({ name, over }: ClaimRequest, version: number): Promise<void> => {
    try {
      if (over === undefined) await remove(name, String(version));
      else await extend(name, version, 0);
    } catch {
      // Then its lease ends it.
    }
  };

  /**
   * A claim that failed, and may have been granted all the same when its answer was lost with the connection. Tried for
   * as long as it would stand in the way.
   */
  const abandon = async ({ name, over, operation: claimed, leaseMs }: ClaimRequest): Promise<void> => {
    const untilMs = runtime.now() + leaseMs;
    const timers = runtime.background ?? runtime;
    while (runtime.now() < untilMs) {
      try {
        await link.run('The claim could not be undone', ABANDON, [name], [claimed, over === undefined ? '' : '1']);
        return;
      } catch {
        await firstValueFrom(timers.after(ABANDON_RETRY_MS));
      }
    }
  };

  const ask = redisClaims({
    link,
    cluster: commands.cluster,
    fenceOf: (name) => names.fence(name),
    before: () => index.flush(),
    orphaned: (request, version) => void undo(request, version),
    unanswered: (request) => void abandon(request),
  });

  async function* list(
    setOf: (span: number) => string,
    belongs: (record: DedupeRecord) => boolean,
  ): AsyncGenerator<DedupeRecord> {
    const nowMs = runtime.now() + aheadMs;
    const sets: string[] = [];
    // From the next span on: another process' clock may be a little ahead.
    for (let span = spanOf(nowMs) + 1; span >= spanOf(nowMs - LOOK_BACK_MS); span--) sets.push(setOf(span));
    for await (const record of listed(link, sets, names)) if (belongs(record)) yield record;
  }

  return acrossProcesses({
    get: (key) => readRecord(link, key, names.of(key)),
    setIfNotExists: async (claim, over) => {
      const digest = digestOf(claim.key);
      for (const set of setsAt(claim, runtime.now() + aheadMs)) index.add(set, digest);
      const request = {
        claim,
        over,
        name: names.record(digest),
        leaseMs: wholeMs(claim.leaseMs),
        ttlMs: wholeMs(claim.ttlMs),
        operation: runtime.id(),
      };
      const claimed = await ask(request).catch((refusal: unknown) => standingInstead(link, request, refusal));
      aheadMs = claimed.atMs - runtime.now();
      if (!claimed.created || copies === undefined) return claimed;
      const { version } = claimed.record;
      try {
        await copies.confirm(request.name, version);
      } catch (error) {
        await undo(request, version);
        throw error;
      }
      return claimed;
    },
    compareAndSet: async (key, version, outcome) => {
      const name = names.of(key);
      const ttlMs = wholeMs(outcome.ttlMs);
      const written = unsure.get(outcome) ?? runtime.id();
      const args = [String(version), outcome.state, String(ttlMs), written, storedOutcome(outcome)];
      try {
        const answer = await link.run('The outcome could not be recorded', SETTLE, [names.fence(name), name], args);
        const record = settledOf(answer, key, outcome, ttlMs, name);
        if (record === undefined) return undefined;
        await index.keep(setsAt(record, record.createdAtMs), digestOf(key), ttlMs);
        await copies?.confirm(name, record.version);
        return record;
      } catch (error) {
        unsure.set(outcome, written);
        throw error;
      }
    },
    renew: (key, version, leaseMs) => extend(names.of(key), version, leaseMs),
    delete: (key, version) => remove(names.of(key), version === undefined ? '' : String(version)),
    byTool: (tool) =>
      list(
        (span) => names.tool(tool, span),
        (record) => record.tool === tool,
      ),
    bySession: (sessionKey) =>
      list(
        (span) => names.session(sessionKey, span),
        (record) => record.request.sessionKey === sessionKey,
      ),
    // Redis removes what has expired by itself, lists too.
    sweep: () => 0,
    ...(channels === undefined
      ? {}
      : { changes: (key: string) => channels.changes(commands.ownPrefix + names.of(key)) }),
    report: () =>
      redisReport(link, {
        cluster: commands.cluster,
        replicas: copies === undefined ? 0 : replicas,
        indexLost: index.lost,
      }),
    close: () => channels?.close(),
  });
}
