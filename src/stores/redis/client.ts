import { read } from '../../errors/structure.ts';

/** What is used of a client of the official `redis` package (node-redis 4 to 6). */
export interface NodeRedisLike {
  /** Sends one command, whose name is the first of `args`, and gives its answer; rejects with the client's error. */
  sendCommand(args: string[]): Promise<unknown>;
}

/** What is used of a cluster client of the official `redis` package. */
export interface NodeRedisClusterLike {
  /** By this member a cluster client is known. */
  readonly masters: readonly unknown[];
  /** Sends one command to the node that has `firstKey`; `isReadonly` allows a replica to answer. */
  sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

/**
 * What is used of a Sentinel client of the official `redis` package: what `createSentinel` gives, and what its `use`
 * and `acquire` lend.
 */
export interface NodeRedisSentinelLike {
  /** Sends one command to the primary, or with `isReadonly` to a replica. */
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

/** What is used of a client or a cluster client of `ioredis` (5 and 6). */
export interface IoRedisLike {
  /** `true` for a cluster client. */
  readonly isCluster?: boolean;
  /** Sends one command, in a cluster to the node of its first key, and gives its answer. */
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** A client that the store can use, of either library: one connection, a pool, a cluster or Sentinel. */
export type RedisClientLike = NodeRedisLike | NodeRedisClusterLike | NodeRedisSentinelLike | IoRedisLike;

/** A second connection of the official `redis` package, for messages. */
export interface NodeRedisSubscriberLike {
  /** Has `listener` called with each message of a channel. */
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  /** Ends a subscription. */
  unsubscribe(channel: string): Promise<unknown>;
  /** Has `listener` called whenever the connection is up, after each reconnection as well. */
  on(event: 'ready', listener: () => void): unknown;
  /** Takes the listener away. */
  off(event: 'ready', listener: () => void): unknown;
}

/** A second connection of `ioredis`, for messages. */
export interface IoRedisSubscriberLike {
  /** Subscribes the connection to a channel. */
  subscribe(channel: string): Promise<unknown>;
  /** Ends a subscription. */
  unsubscribe(channel: string): Promise<unknown>;
  /** Has `listener` called with each message of all channels, or whenever the connection is up. */
  on(event: 'ready' | 'message', listener: (channel: string, message: string) => void): unknown;
  /** Takes the listener away. */
  off(event: 'ready' | 'message', listener: (channel: string, message: string) => void): unknown;
}

/** A second connection, of either library, on which the store hears of ended calls. */
export type RedisSubscriberLike = NodeRedisSubscriberLike | IoRedisSubscriberLike;

/** One client, whichever library it is of. */
export interface RedisCommands {
  readonly cluster: boolean;
  /** Whether commands go over several connections, each over any of them. */
  readonly pooled: boolean;
  /** What the client puts before each key itself: `keyPrefix` of ioredis. Channels do not get it. */
  readonly ownPrefix: string;
  /** @param key the key by which a cluster finds the node */
  send(args: string[], key: string | undefined): Promise<unknown>;
}

/** Subscriptions to channels, over a connection of either library. */
export interface RedisChannels {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  close(): void;
}

const has = (value: unknown, name: string): boolean => typeof read(value, name) === 'function';

const isIoRedis = (client: unknown): client is IoRedisLike => has(client, 'call');

const isNodeCluster = (client: RedisClientLike): client is NodeRedisClusterLike => 'masters' in client;

/** The one that `createSentinel` gives knows its nodes; one that it lends has to be given back, and cannot connect. */
const isNodeSentinel = (client: RedisClientLike): client is NodeRedisSentinelLike =>
  has(client, 'getSentinelNode') || (has(client, 'release') && !has(client, 'connect'));

/**
 * `call` is ioredis; `sendCommand` without it is node-redis, and `masters` is its cluster. Both have more methods of
 * the same names that differ.
 */
export function redisCommands(client: RedisClientLike): RedisCommands {
  if (isIoRedis(client)) {
    const ownPrefix = read(read(client, 'options'), 'keyPrefix');
    return {
      cluster: client.isCluster === true,
      pooled: false,
      ownPrefix: typeof ownPrefix === 'string' ? ownPrefix : '',
      send: ([command = '', ...args]) => client.call(command, ...args),
    };
  }
  if (!has(client, 'sendCommand')) {
    throw new RangeError(
      'client must be a client of the package redis (with sendCommand) or of ioredis (with call): pass what ' +
        'createClient(...) or new Redis(...) gave',
    );
  }
  if (isNodeCluster(client))
    return { cluster: true, pooled: true, ownPrefix: '', send: (args, key) => client.sendCommand(key, false, args) };
  // Never as a read, which may go to a replica.
  if (isNodeSentinel(client))
    return { cluster: false, pooled: true, ownPrefix: '', send: (args) => client.sendCommand(false, args) };
  // What `createClientPool` gives.
  return {
    cluster: false,
    pooled: typeof read(client, 'totalClients') === 'number',
    ownPrefix: '',
    send: (args) => client.sendCommand(args),
  };
}

const isIoSubscriber = (client: RedisSubscriberLike): client is IoRedisSubscriberLike => has(client, 'call');

/**
 * Makes subscriptions over a client. `heard` is called with the channel of each message, `ready` when the connection
 * has come back: messages sent in between were missed.
 */
export function redisChannels(
  client: RedisSubscriberLike,
  heard: (channel: string) => void,
  ready: () => void,
): RedisChannels {
  for (const method of ['subscribe', 'unsubscribe', 'on', 'off']) {
    if (!has(client, method))
      throw new RangeError(`subscriber must be a client of redis or ioredis of its own; it has no ${method}()`);
  }
  if (isIoSubscriber(client)) {
    const io = client;
    io.on('message', heard);
    io.on('ready', ready);
    return {
      subscribe: (channel) => io.subscribe(channel),
      unsubscribe: (channel) => io.unsubscribe(channel),
      close: () => {
        io.off('message', heard);
        io.off('ready', ready);
      },
    };
  }
  client.on('ready', ready);
  // One function for all: a channel that is subscribed to again has it once.
  const listener = (_message: string, channel: string): void => heard(channel);
  return {
    subscribe: (channel) => client.subscribe(channel, listener),
    unsubscribe: (channel) => client.unsubscribe(channel),
    close: () => void client.off('ready', ready),
  };
}
