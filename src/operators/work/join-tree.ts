import { AsyncSubject, forkJoin, map, merge, type Observable } from 'rxjs';

/**
 * RxJS's joins remove each inner subscription from a list that they search: beyond this many, a join of joins is
 * cheaper.
 */
const WIDTH = 64;

const byWidth = <T>(all: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / WIDTH) }, (_, row) => all.slice(row * WIDTH, (row + 1) * WIDTH));

/** `forkJoin` of any number of streams. */
export function forkJoinAll<T>(streams: ReadonlyArray<Observable<T>>): Observable<T[]> {
  if (streams.length <= WIDTH) return forkJoin(streams);
  return forkJoinAll(byWidth(streams).map((few) => forkJoin(few))).pipe(map((lists) => lists.flat()));
}

/** `merge` of any number of streams. */
export function mergeMany<T>(streams: ReadonlyArray<Observable<T>>): Observable<T> {
  return streams.length <= WIDTH ? merge(...streams) : mergeMany(byWidth(streams).map((few) => merge(...few)));
}

/**
 * How many observers one subject gets: RxJS shifts them off a list at its end, so that each of very many would cost as
 * much as all.
 */
const LISTENERS = 500;

/**
 * Spreads the observers of one stream over relays: each caller gets the stream to subscribe to, after so many a relay
 * of it.
 */
export function fannedOut<T>(source: Observable<T>): () => Observable<T> {
  let current = source;
  let asked = 0;
  return () => {
    if (asked++ === LISTENERS) {
      const relay = new AsyncSubject<T>();
      source.subscribe(relay);
      current = relay;
      asked = 1;
    }
    return current;
  };
}
