import { ToolExecutionError } from '../contract/tool-error.ts';
import { read, readStructure } from './structure.ts';
import { TEXT_LENGTH_MAX } from './text/plain.ts';

/**
 * What each error of Redis and its clients means, and what to do. A server's error is named by the first word of its
 * reply.
 */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    'OOM',
    'Redis is out of memory and takes no writes: raise maxmemory, or remove other data; do not let it evict ' +
      'these records',
  ],
  [
    'READONLY',
    'this Redis is a read-only replica: connect to the primary, or use Sentinel or a cluster client that follows it',
  ],
  ['LOADING', 'Redis is loading its data after a start: ask again in a moment'],
  ['MASTERDOWN', 'this Redis is a replica that lost its primary: connect to the primary'],
  ['BUSY', 'a script of someone else keeps Redis busy: end it with SCRIPT KILL'],
  ['MISCONF', 'Redis cannot write its snapshot and takes no writes: look at its log and its disk'],
  ['NOREPLICAS', 'Redis has fewer replicas than min-replicas-to-write asks for: look at the replicas'],
  ['MOVED', 'this Redis is a node of a cluster and the key lives on another: give the store a cluster client'],
  ['ASK', 'this Redis is a node of a cluster and the key is being moved: give the store a cluster client'],
  ['TRYAGAIN', 'the cluster is moving these keys: ask again in a moment'],
  ['CLUSTERDOWN', 'the Redis cluster has no primary for some of its slots: repair the cluster'],
  ['CROSSSLOT', 'the record and its fence are in different slots: use a prefix without braces'],
  ['NOAUTH', 'Redis wants a password: give the client one'],
  ['WRONGPASS', 'Redis refused the user name or the password: correct what the client is given'],
  [
    'NOPERM',
    'the Redis user may not run this command or touch this key: allow the commands the store needs on the ' +
      'keys of its prefix',
  ],
  [
    'WRONGTYPE',
    'a key of the store holds something that is not its own: give the store a prefix that nobody else uses',
  ],
  ['NOPROTO', 'Redis does not know the protocol version asked for: use Redis 6.2 or later'],
  // What the clients call their own errors: `redis` by class, `ioredis` by name.
  [
    'ClientClosedError',
    'the client is not connected: connect it before the store is used, and close it after the store',
  ],
  ['ClientOfflineError', 'the connection to Redis is lost; the client is making it again'],
  ['SocketClosedUnexpectedlyError', 'the connection to Redis was lost; whether the command took place is not known'],
  ['DisconnectsClientError', 'the client was disconnected; whether the command took place is not known'],
  ['MaxRetriesPerRequestError', 'Redis could not be reached: check that it runs and where the client looks for it'],
  ['ECONNREFUSED', 'nothing listens where the client looks for Redis: check that it runs, and its host and port'],
  ['ECONNRESET', 'the connection to Redis was lost; whether the command took place is not known'],
  ['EPIPE', 'the connection to Redis was lost; whether the command took place is not known'],
  ['ENOTFOUND', 'the host name of Redis is not known: correct it'],
  ['ETIMEDOUT', 'Redis could not be reached in time: check the network'],
]);

const UNKNOWN = 'the connection to Redis failed: check that Redis runs and that the client is connected';

/** An error reply begins with a word in capitals. Before Redis 7 one from a script comes inside of another. */
const REPLY = /^([A-Z][A-Z0-9]{2,31})(?=[ .]|$)/;
const REPLY_IN_SCRIPT = /^ERR Error running script.{0,200}?-([A-Z][A-Z0-9]{2,31}) /s;

/** The first word of an error reply, such as `NOSCRIPT`; `undefined` for what is no reply of a server. */
export function redisReply(thrown: unknown): string | undefined {
  const message = read(thrown, 'message');
  if (typeof message !== 'string') return undefined;
  const text = message.slice(0, TEXT_LENGTH_MAX);
  return (REPLY_IN_SCRIPT.exec(text) ?? REPLY.exec(text))?.[1];
}

/**
 * What a Redis client threw as `store_unavailable`: what happened and what to do. Nothing of the error itself is
 * carried on but its code: clients put the arguments of a command, which may be a password or a stored result, beside
 * the message.
 */
export function redisThrown(thrown: unknown, doing: string): ToolExecutionError {
  const structure = readStructure(thrown, () => 0);
  const names = structure.links.flatMap((link) => [...link.codes, ...link.names]);
  const reply = redisReply(thrown);
  const code = [reply, ...names].find((name) => name !== undefined && REMEDIES.has(name)) ?? reply ?? structure.code;
  const remedy =
    (code === undefined ? undefined : REMEDIES.get(code)) ??
    (reply === undefined ? UNKNOWN : `Redis answered ${reply}`);
  return new ToolExecutionError('store_unavailable', `${doing}: ${remedy}`, { code });
}
