import { Observable } from 'rxjs';

/**
 * Emits nothing, and errors with the reason of a signal once it is aborted: what waits beside it need not know of
 * signals.
 */
export const failsOnAbort = (signal: AbortSignal): Observable<never> =>
  new Observable((subscriber) => {
    const fail = (): void => subscriber.error(signal.reason);
    if (signal.aborted) return fail();
    signal.addEventListener('abort', fail, { once: true });
    return () => signal.removeEventListener('abort', fail);
  });

/**
 * A signal that is aborted with the first of others, which live no longer than it does: its listeners stay on them.
 * `AbortSignal.any` would be kept by Node for as long as someone listens, and what is fetched listens for ever.
 */
export function firstAborted(signals: readonly AbortSignal[]): AbortSignal {
  const joint = new AbortController();
  const abort = (): void => joint.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }
  return joint.signal;
}
