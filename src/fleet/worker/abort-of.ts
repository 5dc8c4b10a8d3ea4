import { defer, fromEvent, of, take, type Observable } from 'rxjs';

/** That an attempt is over, also where it was before anybody listened, as when it waited for a place. */
export const abortOf = (signal: AbortSignal): Observable<unknown> =>
  defer(() => (signal.aborted ? of(0) : fromEvent(signal, 'abort'))).pipe(take(1));
