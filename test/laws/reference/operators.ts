import { EMPTY, Observable, concat, concatMap, defer, takeUntil, tap, throwError } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { BreakerOutcome } from '../../../src/policy/breaker/reducer.ts';
import type { Breaker } from './breaker.ts';

/**
 * What an error means by sections 1 to 3 of the specification. Who makes the errors knows it; no reference reads one.
 */
export type Meaning = { readonly retriable: boolean; readonly outcome: BreakerOutcome; readonly retryAfterMs?: number };
export type Read = (error: unknown) => Meaning;
export type Operator = (source: Observable<unknown>) => Observable<unknown>;

export const TIMEOUT: Error = new Error('timeout');
export const CIRCUIT_OPEN: Error = new Error('circuit_open');

/** what is due at the same instant goes first, also what takes another step. */
export const untilDue = (ms: number, { after }: Runtime): Observable<unknown> =>
  after(ms).pipe(
    concatMap(() => after(0)),
    concatMap(() => after(0)),
  );

/** a fresh signal for each attempt, aborted when the attempt is left before its end. */
export const abortable = (work: (signal: AbortSignal) => Observable<unknown>): Observable<unknown> =>
  new Observable((subscriber) => {
    const controller = new AbortController();
    let hasEnded = false;
    const end = (): void => void (hasEnded = true);
    subscriber.add(() => hasEnded || controller.abort());
    defer(() => work(controller.signal))
      .pipe(tap({ error: end, complete: end }))
      .subscribe(subscriber);
  });

/** a hard limit. The attempt has ended before its failure is told. */
export const attemptTimeout =
  (timeoutMs: number, runtime: Runtime): Operator =>
  (source) =>
    defer(() => {
      let late = false;
      const due$ = untilDue(timeoutMs, runtime).pipe(tap(() => (late = true)));
      return concat(
        source.pipe(takeUntil(due$)),
        defer(() => (late ? throwError(() => TIMEOUT) : EMPTY)),
      );
    });

/** each subscription takes a permit, which ends exactly once; who leaves after a value has had an answer. */
export const circuitBreaker =
  (breaker: Breaker, read: Read): Operator =>
  (source) =>
    new Observable((subscriber) => {
      const { atMs: startedAtMs } = breaker.now();
      const permit = breaker.admit();
      if (permit === undefined) return subscriber.error(CIRCUIT_OPEN);
      const end = (outcome: BreakerOutcome, hint: { readonly retryAfterMs?: number } = {}): void =>
        void breaker.tell({
          type: 'outcome',
          permit,
          outcome,
          durationMs: breaker.now().atMs - startedAtMs,
          ...breaker.now(),
          ...hint,
        });
      let answered = false;
      const next = (): void => {
        answered = true;
        if (permit.probeEpoch !== undefined) breaker.tell({ type: 'progress', permit, ...breaker.now() });
      };
      const error = (thrown: unknown): void => {
        const { outcome, retryAfterMs } = read(thrown);
        end(outcome, outcome === 'failure' && retryAfterMs !== undefined ? { retryAfterMs } : {});
      };
      const unsubscribe = (): void => end(answered ? 'success' : 'ignored');
      if (subscriber.closed) return unsubscribe();
      source.pipe(tap({ next, error, complete: () => end('success'), unsubscribe })).subscribe(subscriber);
    });
