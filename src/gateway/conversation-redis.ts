import { redisThrown } from '../entrance/redis.ts';
import { read } from '../entrance/structure.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import { CONVERSATION_TTL_MS, readRecord, type ConversationRecord, type ConversationState } from './conversation.ts';

/** What is used of a client of the packages `redis` (also a cluster's) or `ioredis`. */
export type ConversationRedisLike =
  | { sendCommand(args: string[]): Promise<unknown> }
  | { readonly masters: readonly unknown[]; sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown> }
  | { call(command: string, ...args: string[]): Promise<unknown> };

export interface RedisConversationOptions {
  /** What keys begin with. Default `spillway:conversation:`. */
  readonly prefix?: string;
  /** How long a record is kept. Default 86,400,000: a day. */
  readonly ttlMs?: number;
}

type Send = (key: string, command: string, ...args: string[]) => Promise<unknown>;

const sender = (client: ConversationRedisLike): Send => {
  if (typeof read(client, 'call') === 'function' && 'call' in client) return (_key, command, ...args) => client.call(command, ...args);
  if (typeof read(client, 'sendCommand') !== 'function' || !('sendCommand' in client)) {
    throw new RangeError('client must be a client of the package redis (with sendCommand) or of ioredis (with call): pass what createClient(...) or new Redis(...) gave');
  }
  if ('masters' in client) return (key, command, ...args) => client.sendCommand(key, false, [command, ...args]);
  return (_key, command, ...args) => client.sendCommand([command, ...args]);
};

/**
 * Conversation state in Redis, shared by all gateways that use it. The client is yours: connect it before, and close it after.
 *
 * @param client a client of `redis` or `ioredis`
 * @param options prefix and lifetime
 * @throws RangeError for an option out of its range, or a client that is none
 *
 * @example
 * const stateOn = (client: ConversationRedisLike) => redisConversationState(client, { ttlMs: 3_600_000 });
 */
export function redisConversationState(client: ConversationRedisLike, options: RedisConversationOptions = {}): ConversationState {
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
        await send(name, 'SET', name, JSON.stringify(record), 'PX', lifetime);
      } catch (thrown) {
        throw redisThrown(thrown, 'storing a conversation');
      }
    },
    retrieve: async (keys) => {
      try {
        // One by one: in a cluster they live on different nodes; a client sends them together.
        const found = await Promise.all(keys.map(async (key) => [key, await send(prefix + key, 'GET', prefix + key)] as const));
        return new Map(
          found.flatMap(([key, text]): Array<[string, ConversationRecord]> => {
            const record = typeof text === 'string' ? readRecord(text) : undefined;
            return record === undefined ? [] : [[key, record]];
          }),
        );
      } catch (thrown) {
        throw redisThrown(thrown, 'retrieving conversations');
      }
    },
  };
}
