import { redisThrown } from '../errors/redis.ts';
import { read } from '../errors/structure.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import {
  CONVERSATION_TTL_MS,
  NOTHING_SAID,
  TOMBSTONE,
  storedTextOf,
  recordOf,
  type ConversationRecord,
  type ConversationState,
} from './conversation/conversation.ts';

/** What is used of a client of the packages `redis` (also a cluster's) or `ioredis`. */
export type ConversationRedisLike =
  | {
      /** Sends one command of the package `redis`; its name is the first of `args`. */
      sendCommand(args: string[]): Promise<unknown>;
    }
  | {
      /** By this member a cluster client of the package `redis` is known. */
      readonly masters: readonly unknown[];
      /** Sends one command to the node that has `firstKey`. */
      sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
    }
  | {
      /** Sends one command of `ioredis`, to the right node of a cluster as well. */
      call(command: string, ...args: string[]): Promise<unknown>;
    };

/** Where records lie in Redis, and for how long. */
export interface RedisConversationOptions {
  /** The beginning of each key's name. Default `spillway:conversation:`. */
  readonly prefix?: string;
  /** How long a record is kept after it was stored, in milliseconds. Default 86,400,000: a day. */
  readonly ttlMs?: number;
}

/**
 * What `storedAfter` decides, where it lies: of gateways that store at once none may overwrite what it has not seen.
 * KEYS[1] the key; ARGV the author, what the record says, the lifetime in milliseconds, what an empty record says, the
 * tombstone.
 */
const STORE = `
local text = ARGV[1] .. '\\n' .. ARGV[2]
local kept = redis.call('GET', KEYS[1])
if kept then
  local stop = string.find(kept, '\\n', 1, true)
  local said = stop and string.sub(kept, stop + 1)
  local own = stop and string.sub(kept, 1, stop - 1) == ARGV[1]
  if not (own or said == ARGV[2] or said == ARGV[4]) then text = ARGV[5] end
end
redis.call('SET', KEYS[1], text, 'PX', ARGV[3])
return 1`;

type Send = (key: string, command: string, ...args: string[]) => Promise<unknown>;

const sender = (client: ConversationRedisLike): Send => {
  if (typeof read(client, 'call') === 'function' && 'call' in client)
    return (_key, command, ...args) => client.call(command, ...args);
  if (typeof read(client, 'sendCommand') !== 'function' || !('sendCommand' in client)) {
    throw new RangeError(
      'client must be a client of the package redis (with sendCommand) or of ioredis (with call): pass what ' +
        'createClient(...) or new Redis(...) gave',
    );
  }
  if ('masters' in client) return (key, command, ...args) => client.sendCommand(key, false, [command, ...args]);
  return (_key, command, ...args) => client.sendCommand([command, ...args]);
};

/**
 * Conversation state in Redis, shared by all gateways that use it. The client is yours: connect it before, and close it
 * after.
 *
 * @param client a client of `redis` or `ioredis`
 * @param options prefix and lifetime
 * @throws RangeError for an option out of its range, or a client that is none
 *
 * @example
 * const stateOn = (client: ConversationRedisLike) => redisConversationState(client, { ttlMs: 3_600_000 });
 */
export function redisConversationState(
  client: ConversationRedisLike,
  options: RedisConversationOptions = {},
): ConversationState {
  checkKeys('redisConversationState', options, ['prefix', 'ttlMs']);
  const { prefix = 'spillway:conversation:', ttlMs = CONVERSATION_TTL_MS } = options;
  checkNumber('ttlMs', ttlMs, positiveDuration);
  if (typeof prefix !== 'string') throw new RangeError(`prefix must be a text, not ${typeof prefix}`);
  const send = sender(client);
  const lifetime = String(Math.ceil(ttlMs));
  return {
    store: async (key, record) => {
      const name = prefix + key;
      try {
        const { author, said } = storedTextOf(record);
        await send(name, 'EVAL', STORE, '1', name, author, said, lifetime, NOTHING_SAID, TOMBSTONE);
      } catch (thrown) {
        throw redisThrown(thrown, 'storing a conversation');
      }
    },
    retrieve: async (keys) => {
      try {
        // One by one: in a cluster they live on different nodes; a client sends them together.
        const found = await Promise.all(
          keys.map(async (key) => [key, await send(prefix + key, 'GET', prefix + key)] as const),
        );
        return new Map(
          found.flatMap(([key, text]): Array<[string, ConversationRecord]> => {
            const record = typeof text === 'string' ? recordOf(text) : undefined;
            return record === undefined ? [] : [[key, record]];
          }),
        );
      } catch (thrown) {
        throw redisThrown(thrown, 'retrieving conversations');
      }
    },
  };
}
