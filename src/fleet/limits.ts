import { concatMap, defer, map, of, type Observable } from 'rxjs';
import type { HookAttempt, Verdict } from '../contract/hooks.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer, number } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { redisCommands, type RedisClientLike } from '../stores/redis/client.ts';
import { redisLink } from '../stores/redis/link.ts';
import { listOf, numberOf } from '../stores/redis/record.ts';
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

const termsOf = ({ limit: { perSecond, burst = Math.max(1, Math.floor(perSecond)) } }: Bucket): number[] => [
  perSecond,
  burst,
];

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

  /** All places of an attempt, or none: what one bucket has not must not use another up. */
  const taken = async (buckets: readonly Bucket[]): Promise<readonly [full: number, waitMs: number]> => {
    const terms = buckets.flatMap(termsOf);
    const keys = buckets.map(({ key }) => `{${name}-limits}:${key}`);
    try {
      const given = [maxWaitMs, ...terms].map(String);
      const [full, waitMs] = listOf(await link.run('The limit could not be asked for', TAKE, keys, given));
      return [numberOf(full), numberOf(waitMs)];
    } catch {
      return [0, 0];
    }
  };
  const placesIn = (buckets: readonly Bucket[]): Observable<Verdict> =>
    defer(() => taken(buckets)).pipe(
      concatMap(([full, waitMs]): Observable<Verdict> => {
        const bucket = buckets[full - 1];
        if (bucket === undefined) return waitMs === 0 ? of({}) : runtime.after(waitMs).pipe(map(() => ({})));
        const reason = `${bucket.what} is at its limit of ${bucket.limit.perSecond} a second in the whole fleet`;
        return of({ block: `${reason}; its turn would come in ${waitMs} ms` });
      }),
    );
  return {
    beforeToolCall: (attempt) => {
      const buckets = attempt.attempt === 0 ? [] : bucketsOf(options, attempt);
      return buckets.length === 0 ? of({}) : placesIn(buckets);
    },
  };
}
