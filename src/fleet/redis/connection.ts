import type { IoRedisLike, IoRedisSubscriberLike } from '../../stores/redis/client.ts';

/** A connection of `ioredis` 5 or 6, made with `maxRetriesPerRequest: null`; it stays its maker's to close. */
export interface LedgerConnection extends IoRedisLike {
  /** Makes another connection to the same server, for messages. */
  duplicate(): IoRedisSubscriberLike & {
    /** Ends the connection at once. */
    disconnect(): void;
    /** Has `listener` called with each error of the connection. */
    on(event: 'error', listener: (error: Error) => void): unknown;
  };
}
