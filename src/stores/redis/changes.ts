import { Observable } from 'rxjs';
import { redisChannels, type RedisChannels, type RedisSubscriberLike } from './client.ts';

/** Messages of single channels, each subscribed to while somebody listens. */
export interface RedisChanges {
  changes(channel: string): Observable<unknown>;
  close(): void;
}

/**
 * Both libraries subscribe again by themselves after a reconnection. What was said meanwhile is lost, and so is what
 * was said before a subscription was there: whoever waits then has to look for itself.
 */
export function redisChanges(client: RedisSubscriberLike): RedisChanges {
  const watched = new Map<string, Set<() => void>>();
  const tell = (channel: string): void => {
    for (const listener of watched.get(channel) ?? []) listener();
  };
  const ignore = (): void => undefined;
  let closed = false;

  const join = (channel: string): void => {
    channels.subscribe(channel).then(() => tell(channel), ignore);
  };
  const ready = (): void => {
    // Again for those whose first try failed; for the others it changes nothing.
    for (const channel of watched.keys()) join(channel);
  };
  const channels: RedisChannels = redisChannels(client, tell, ready);
  const leave = (channel: string): void => {
    watched.delete(channel);
    channels.unsubscribe(channel).catch(ignore);
  };

  return {
    changes: (channel) =>
      new Observable((subscriber) => {
        if (closed) return undefined;
        const listener = (): void => subscriber.next(channel);
        const listeners = watched.get(channel);
        if (listeners === undefined) {
          watched.set(channel, new Set([listener]));
          join(channel);
        } else listeners.add(listener);
        return () => {
          const left = watched.get(channel);
          left?.delete(listener);
          if (left?.size === 0) leave(channel);
        };
      }),
    close: () => {
      if (closed) return;
      closed = true;
      for (const channel of watched.keys()) leave(channel);
      channels.close();
    },
  };
}
