import { BehaviorSubject, Observable, Subject, defer, filter, finalize, firstValueFrom, mergeMap } from 'rxjs';

/** So much at a time; the rest waits for a place: the lowest rank first, and of one rank in the order of coming. */
export interface Places {
  held<T>(work: Observable<T>, rank: number): Observable<T>;
  /** Resolves once nothing has a place, nor waits for one. */
  empty(): Promise<unknown>;
}

interface Waiting {
  readonly rank: number;
  readonly work: Observable<never>;
}

/** Where one of this rank stands among those that wait: behind its equals. */
const placeOf = (waiting: readonly Waiting[], rank: number): number => {
  let [from, to] = [0, waiting.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((waiting[middle]?.rank ?? 0) <= rank) from = middle + 1;
    else to = middle;
  }
  return from;
};

export function places(count: number): Places {
  const waiting: Waiting[] = [];
  const asked$ = new Subject<void>();
  const taken$ = new BehaviorSubject(0);
  const next$ = defer(() => {
    taken$.next(taken$.value + 1);
    const { work } = waiting.shift() as Waiting;
    return work.pipe(finalize(() => taken$.next(taken$.value - 1)));
  });
  // Who is asked for has a place once one is free: only then is it chosen who that is.
  asked$.pipe(mergeMap(() => next$, count)).subscribe();
  return {
    held: <T>(work: Observable<T>, rank: number) =>
      new Observable<T>((subscriber) => {
        const told = new Observable<never>((place) => {
          place.add(
            work.subscribe({
              next: (value) => subscriber.next(value),
              error: (error: unknown) => {
                subscriber.error(error);
                place.complete();
              },
              complete: () => {
                subscriber.complete();
                place.complete();
              },
            }),
          );
        });
        waiting.splice(placeOf(waiting, rank), 0, { rank, work: told });
        asked$.next();
      }),
    empty: () => firstValueFrom(taken$.pipe(filter((taken) => taken === 0 && waiting.length === 0))),
  };
}
