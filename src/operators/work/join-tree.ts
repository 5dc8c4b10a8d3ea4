import { AsyncSubject, forkJoin, map, merge, type Observable } from 'rxjs';

/** RxJS's joins remove each inner subscription from a list that they search: beyond this many, a join of joins is cheaper. */
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

/** An AsyncSubject tells its observers by shifting them off a list: of more than this many, each would cost what all cost. */
const LISTENERS = 500;

/** One stream for many who wait for it, each of whom asks once for what to subscribe to: after so many, for a relay of it. */
export function fannedOut<T>(source: Observable<T>): () => Observable<T> {
  let heard = source;
  let asked = 0;
  return () => {
    if (asked++ === LISTENERS) {
      const relay = new AsyncSubject<T>();
      source.subscribe(relay);
      heard = relay;
      asked = 1;
    }
    return heard;
  };
}
