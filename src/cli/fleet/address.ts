import type { RedisOptions } from 'ioredis';
import { UsageError } from '../arguments/usage.ts';
import type { Environment } from '../environment.ts';

/** What `ioredis` takes. */
export type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

/** Where an engine is, as a URL says it. */
export interface EngineAddress {
  /** The engine, without what only its users may know. */
  readonly place: string;
  /** The fleet's name. */
  readonly name?: string;
  /** The Redis that it has its turns in. */
  readonly redis: ConnectOptions;
  /** That Redis, without what only its users may know. */
  readonly redisPlace: string;
  /** Where Restate is, and the port at which it calls a worker; absent where the engine is BullMQ. */
  readonly restate?: { readonly ingressUrl: string; readonly port?: number };
}

const EXAMPLE = 'bullmq://localhost:6379';
const RESTATE_EXAMPLE = 'restate://localhost:8080?redis=redis://localhost:6379';
const PORT = 6_379;

/** By scheme: the one of the Redis that is meant. */
const BULLMQ: Readonly<Record<string, string>> = {
  'bullmq:': 'redis:',
  'bullmqs:': 'rediss:',
  'bullmq+unix:': 'redis+unix:',
};
const RESTATE: Readonly<Record<string, string>> = { 'restate:': 'http:', 'restates:': 'https:' };
const REDIS: readonly string[] = ['redis:', 'rediss:', 'redis+unix:'];

const placeOf = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`;

/** @param scheme of the Redis that the URL names */
const redisOf = ({ hostname, port, pathname, username, password }: URL, scheme: string): ConnectOptions => {
  if (scheme === 'redis+unix:') return { path: decodeURIComponent(pathname) };
  const db = Number(pathname.slice(1));
  if (!Number.isInteger(db))
    throw new UsageError(`--engine: what follows the host is the number of a database, such as ${EXAMPLE}/1`);
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? PORT : Number(port),
    db,
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(scheme === 'rediss:' ? { tls: {} } : {}),
  };
};

const portOf = (text: string | null): { readonly port?: number } => {
  if (text === null) return {};
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new UsageError(`--engine: port must be an integer from 0 to 65535, not ${JSON.stringify(text.slice(0, 32))}`);
  return { port };
};

/** As it is written: a plus sign is one, as in `redis+unix:` and in passwords. */
const queried = ({ search }: URL, name: string): string => {
  const part = search
    .slice(1)
    .split('&')
    .find((one) => one.startsWith(`${name}=`));
  try {
    return decodeURIComponent(part?.slice(name.length + 1) ?? '');
  } catch {
    return '';
  }
};

const restateAddress = (url: URL, scheme: string): EngineAddress => {
  const redis = queried(url, 'redis');
  // Nothing of it is said: it may hold a password.
  if (!URL.canParse(redis) || !REDIS.includes(new URL(redis).protocol))
    throw new UsageError(`--engine: Restate needs a Redis for what turns come to, such as ${RESTATE_EXAMPLE}`);
  const redisUrl = new URL(redis);
  return {
    place: placeOf(url),
    redis: redisOf(redisUrl, redisUrl.protocol),
    redisPlace: placeOf(redisUrl),
    restate: { ingressUrl: `${scheme}//${url.host}${url.pathname}`, ...portOf(url.searchParams.get('port')) },
  };
};

/**
 * Reads where an engine is, from what was given or else from the environment.
 * @throws UsageError for a URL that names none
 */
export const addressOf = (given: string | undefined, env: Environment): EngineAddress => {
  const text = given ?? env['SPILLWAY_ENGINE'] ?? '';
  if (text === '') throw new UsageError(`the engine is missing; write --engine ${EXAMPLE}, or set SPILLWAY_ENGINE`);
  // Nothing of it is said: it may hold a password.
  if (!URL.canParse(text)) throw new UsageError(`--engine must be a URL, such as ${EXAMPLE}`);
  const url = new URL(text);
  const [bullmq, restate] = [BULLMQ[url.protocol], RESTATE[url.protocol]];
  if (bullmq === undefined && restate === undefined)
    throw new UsageError(
      `there is no engine ${JSON.stringify(url.protocol.slice(0, 32))}; there is bullmq:, bullmqs: (over ` +
        `TLS) and bullmq+unix: (a socket), such as ${EXAMPLE}, and restate: and restates:, such as ${RESTATE_EXAMPLE}`,
    );
  const name = url.searchParams.get('name');
  const address =
    restate === undefined
      ? { place: placeOf(url), redis: redisOf(url, bullmq ?? ''), redisPlace: placeOf(url) }
      : restateAddress(url, restate);
  return name === null ? address : { ...address, name };
};
