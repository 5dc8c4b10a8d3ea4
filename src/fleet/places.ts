import { BehaviorSubject, Observable, Subject, filter, finalize, firstValueFrom, mergeMap } from 'rxjs';

/** So much at a time; the rest waits for a place, in the order in which it came. */
export interface Places {
  held<T>(work: Observable<T>): Observable<T>;
  /** Resolves once nothing has a place, nor waits for one. */
  empty(): Promise<unknown>;
}

export function places(count: number): Places {
  const asked$ = new Subject<Observable<unknown>>();
  const taken$ = new BehaviorSubject(0);
  asked$.pipe(mergeMap((work) => work, count)).subscribe();
  return {
    held: <T>(work: Observable<T>) =>
      new Observable<T>((subscriber) => {
        taken$.next(taken$.value + 1);
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
        asked$.next(told.pipe(finalize(() => taken$.next(taken$.value - 1))));
      }),
    empty: () => firstValueFrom(taken$.pipe(filter((taken) => taken === 0))),
  };
}
