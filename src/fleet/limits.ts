import { EMPTY, concat, concatMap, defer, ignoreElements, map, of, type Observable } from 'rxjs';
import type { HookAttempt, Verdict } from '../contract/hooks.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer, number } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { redisCommands, type RedisClientLike } from '../stores/redis/client.ts';
import { redisLink } from '../stores/redis/link.ts';
import { numberOf } from '../stores/redis/record.ts';
import { TAKE } from './redis/scripts.ts';

/** A token bucket that all processes share. */
export interface FleetLimit {
  /** Attempts a second in the long run, above 0 and up to 1,000,000. */
  readonly perSecond: number;
  /** Attempts that may begin at once after a pause, 1 to 1,000,000. Default: those of one second, at least 1. */
  readonly burst?: number;
}

/** What may be attempted how often, over all processes that use the same Redis and name. */
export interface FleetLimitOptions {
  /** The fleet's name. Default `spillway`. */
  readonly name?: string;
  /** By tool: all attempts at it. Default: no limit. */
  readonly tools?: Readonly<Record<string, FleetLimit>>;
  /** Of each tenant: its attempts at all tools. Default: no limit. */
  readonly eachTenant?: FleetLimit;
  /** By tenant, in place of `eachTenant`. Default: none. */
  readonly tenants?: Readonly<Record<string, FleetLimit>>;
  /**
   * How long an attempt waits for its turn, in milliseconds, below the layer's `hookTimeoutMs`; one that would wait
   * longer is blocked at once. Default 10,000.
   */
  readonly maxWaitMs?: number;
  /** Timers. Default: the machine's. */
  readonly runtime?: Runtime;
}

const OPTION_KEYS = ['name', 'tools', 'eachTenant', 'tenants', 'maxWaitMs', 'runtime'];
const COMMAND_TIMEOUT_MS = 2_000;
const RATE_MAX = 1_000_000;

const checkLimit = (of: string, limit: FleetLimit): void => {
  checkKeys(of, limit, ['perSecond', 'burst']);
  checkNumber(`${of}.perSecond`, limit.perSecond, number(Number.MIN_VALUE, RATE_MAX));
  if (limit.burst !== undefined) checkNumber(`${of}.burst`, limit.burst, integer(1, RATE_MAX));
};

/** A bucket that an attempt needs a place of. */
interface Bucket {
  readonly key: string;
  readonly what: string;
  readonly limit: FleetLimit;
}

const checkLimits = ({ tools = {}, tenants = {}, eachTenant }: FleetLimitOptions): void => {
  for (const [of, limits] of Object.entries({ tools, tenants }))
    for (const [key, limit] of Object.entries(limits)) checkLimit(`${of}.${key}`, limit);
  if (eachTenant !== undefined) checkLimit('eachTenant', eachTenant);
};

const bucketsOf = (
  { tools = {}, tenants = {}, eachTenant }: FleetLimitOptions,
  { toolName, tenant }: HookAttempt,
): Bucket[] => {
  const ofTool = Object.hasOwn(tools, toolName) ? tools[toolName] : undefined;
  const ofTenant = tenant === undefined ? undefined : Object.hasOwn(tenants, tenant) ? tenants[tenant] : eachTenant;
  return [
    ...(ofTool === undefined ? [] : [{ key: `tool:${toolName}`, what: `the tool ${toolName}`, limit: ofTool }]),
    ...(ofTenant === undefined ? [] : [{ key: `tenant:${tenant}`, what: 'the tenant', limit: ofTenant }]),
  ];
};

/**
 * Limits attempts over a whole fleet, by tool and by tenant: each waits for its place, in the order in which they ask.
 * A Redis that gives no answer limits nothing.
 *
 * @param client a connected client, as `redisStore` takes it
 * @param options the limits
 * @returns a hook for `createSpillway({ hooks })`
 * @throws RangeError for an option out of its range
 *
 * @example
 * const hooks = fleetLimits(redis, { tools: { pay: { perSecond: 5 } }, eachTenant: { perSecond: 50 } });
 * const spillway = createSpillway({ tools, store, hooks, shareBreakers: true });
 */
export function fleetLimits(
  client: RedisClientLike,
  options: FleetLimitOptions,
): {
  /** Asked before each attempt: waits for its place, or blocks it. */
  beforeToolCall(attempt: HookAttempt): Observable<Verdict>;
} {
  checkKeys('fleetLimits', options, OPTION_KEYS);
  const { name = 'spillway', maxWaitMs = 10_000, runtime = liveRuntime } = options;
  checkNumber('maxWaitMs', maxWaitMs, duration);
  checkLimits(options);
  const link = redisLink(redisCommands(client), COMMAND_TIMEOUT_MS, runtime);

  const taken = async (bucket: Bucket): Promise<number> => {
    const { perSecond, burst = Math.max(1, Math.floor(perSecond)) } = bucket.limit;
    try {
      const terms = [perSecond, burst, maxWaitMs].map(String);
      const keys = [`{${name}-limits}:${bucket.key}`];
      return numberOf(await link.run('The limit could not be asked for', TAKE, keys, terms));
    } catch {
      return 0;
    }
  };
  const placeIn = (bucket: Bucket): Observable<Verdict> =>
    defer(() => taken(bucket)).pipe(
      concatMap((waitMs) => {
        if (waitMs >= 0) return waitMs === 0 ? EMPTY : runtime.after(waitMs).pipe(ignoreElements());
        const reason = `${bucket.what} is at its limit of ${bucket.limit.perSecond} a second in the whole fleet`;
        return of({ block: `${reason}; its turn would come in ${-waitMs - 1} ms` });
      }),
    );
  return {
    // The first word counts: a bucket that blocks, or that nothing does.
    beforeToolCall: (attempt) =>
      attempt.attempt === 0
        ? of({})
        : concat(...bucketsOf(options, attempt).map(placeIn), of({})).pipe(map((verdict): Verdict => verdict)),
  };
}
