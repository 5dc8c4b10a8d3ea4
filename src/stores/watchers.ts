import { Observable, type Subscriber } from 'rxjs';

/** The listeners for changes of keys. A key without listeners costs nothing. */
export interface Watchers {
  changes(key: string): Observable<void>;
  /** Notes that a key has changed; told by `tell`, once the operation is over and a listener may ask. */
  note(key: string): void;
  tell(): void;
  /** Any key may have changed. */
  tellAll(): void;
  close(): void;
}

/**
 * @param attended told when the first one begins to watch, and when nobody does any more
 */
export function createWatchers(attended: (watched: boolean) => void = () => {}): Watchers {
  const watching = new Map<string, Set<Subscriber<void>>>();
  const noted: string[] = [];
  let closed = false;
  const leave = (key: string, subscriber: Subscriber<void>): void => {
    const subscribers = watching.get(key);
    if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) return;
    watching.delete(key);
    if (watching.size === 0) attended(false);
  };
  const tellOf = (key: string): void => {
    for (const subscriber of Array.from(watching.get(key) ?? [])) subscriber.next();
  };
  return {
    changes: (key) =>
      new Observable((subscriber) => {
        if (closed) return subscriber.complete();
        const first = watching.size === 0;
        const subscribers = watching.get(key) ?? new Set();
        watching.set(key, subscribers.add(subscriber));
        if (first) attended(true);
        return () => leave(key, subscriber);
      }),
    note: (key) => {
      if (watching.has(key)) noted.push(key);
    },
    tell: () => {
      for (let key = noted.shift(); key !== undefined; key = noted.shift()) tellOf(key);
    },
    tellAll: () => {
      for (const key of Array.from(watching.keys())) tellOf(key);
    },
    close: () => {
      closed = true;
      for (const subscriber of Array.from(watching.values(), (subscribers) => Array.from(subscribers)).flat())
        subscriber.complete();
    },
  };
}
