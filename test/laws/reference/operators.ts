import { BehaviorSubject, EMPTY, NEVER, Observable, concat, concatMap, defer, distinctUntilChanged, ignoreElements, map } from 'rxjs';
import { merge, retry, scan, Subject, switchMap, takeUntil, tap, throwError } from 'rxjs';
import type { BreakerOptions, RetryPolicy } from '../../../src/contract/policy.ts';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { backoffDelayMs, retryPolicy } from '../../../src/policy/backoff.ts';
import { breakerSettings } from '../../../src/policy/breaker-settings.ts';
import { advanceBreaker, breakerDueMs, decideBreaker, initialBreaker } from '../../../src/policy/breaker.ts';
import type { BreakerInput, BreakerMemory, BreakerOutcome, Permit } from '../../../src/policy/breaker.ts';

/** What an error means by sections 1 to 3 of the specification. Whoever makes the errors knows; the reference reads none. */
export type Meaning = { readonly retriable: boolean; readonly outcome: BreakerOutcome; readonly retryAfterMs?: number };
export type Operator = (source: Observable<unknown>) => Observable<unknown>;
/** The two errors that are made here. */
export const TIMEOUT: Error = new Error('timeout');
export const CIRCUIT_OPEN: Error = new Error('circuit_open');
export const untilDue = (ms: number, { after }: Runtime): Observable<unknown> => after(ms).pipe(concatMap(() => after(0)), concatMap(() => after(0)));

/** a fresh signal for each attempt, aborted when the attempt is left before its end. */
export const abortable = (work: (signal: AbortSignal) => Observable<unknown>): Observable<unknown> =>
  new Observable((subscriber) => {
    const [controller, work$] = [new AbortController(), defer(() => work(controller.signal))];
    let hasEnded = false;
    subscriber.add(() => hasEnded || controller.abort());
    work$.pipe(tap({ error: () => (hasEnded = true), complete: () => (hasEnded = true) })).subscribe(subscriber);
  });
/** a hard limit. The attempt has ended before its failure is told; what is due at the same instant goes first, in two steps as well. */
export const attemptTimeout = (timeoutMs: number, runtime: Runtime): Operator => (source) =>
  defer(() => {
    let late = false;
    const due$ = untilDue(timeoutMs, runtime).pipe(tap(() => (late = true)));
    return concat(source.pipe(takeUntil(due$)), defer(() => (late ? throwError(() => TIMEOUT) : EMPTY)));
  });
/** a scan of inputs over the policy's reducer, which is what the specification says the state is. */
export const createBreaker = (options: BreakerOptions, runtime: Runtime) => {
  const [settings, inputs$] = [breakerSettings(options), new Subject<BreakerInput>()];
  let latest: readonly [BreakerMemory, Permit | undefined] = [initialBreaker(settings), undefined];
  const memory$ = new BehaviorSubject(latest[0]);
  inputs$.pipe(scan(([before], input) => decideBreaker(before, input, settings), latest)).subscribe((step) => (latest = step));
  const tell = (input: BreakerInput): Permit | undefined => {
    inputs$.next(input);
    const [memory, permit] = latest;
    memory$.next(memory);
    return permit;
  };
  const now = (): { readonly atMs: number } => ({ atMs: runtime.now() });
  const ticks$ = memory$.pipe(map((memory) => breakerDueMs(memory, settings)), distinctUntilChanged(), switchMap((dueMs) => (dueMs === Infinity ? NEVER : runtime.after(dueMs - runtime.now()))), tap(() => tell({ type: 'tick', ...now() })), ignoreElements());
  const admit = (): Permit | undefined => tell(latest[0].rampFromMs === undefined ? { type: 'admit', ...now() } : { type: 'admit', ...now(), random: runtime.random() });
  const type$ = merge(memory$.pipe(map(({ type }) => type)), ticks$).pipe(distinctUntilChanged());
  return { tell, admit, now, type$, memory: (): BreakerMemory => advanceBreaker(latest[0], settings, runtime.now()) };
};
export type ReferenceBreaker = ReturnType<typeof createBreaker>;

/** each subscription takes a permit, which ends exactly once; who leaves after a value has had an answer. */
export const circuitBreaker = (breaker: ReferenceBreaker, read: (error: unknown) => Meaning): Operator => (source) =>
  new Observable((subscriber) => {
    const [permit, startedAtMs] = [breaker.admit(), breaker.now().atMs];
    if (permit === undefined) return subscriber.error(CIRCUIT_OPEN);
    let answered = false;
    const end = (outcome: BreakerOutcome, hint: { readonly retryAfterMs?: number } = {}): void =>
      void breaker.tell({ type: 'outcome', permit, outcome, durationMs: breaker.now().atMs - startedAtMs, ...hint, ...breaker.now() });
    const next = (): void => {
      answered = true;
      if (permit.probeEpoch !== undefined) breaker.tell({ type: 'progress', permit, ...breaker.now() });
    };
    if (subscriber.closed) return end('ignored');
    const failed = (error: unknown, { outcome, retryAfterMs } = read(error)): void => end(outcome, outcome === 'failure' && retryAfterMs !== undefined ? { retryAfterMs } : {});
    source.pipe(tap({ next, error: (error: unknown) => failed(error), complete: () => end('success'), unsubscribe: () => end(answered ? 'success' : 'ignored') })).subscribe(subscriber);
  });
/**
 * another attempt after each failure that may be retried, for as long as attempts and time are left.
 * @param isLast told of a failure that is not retried: whether the server's own pushback alone forbade it
 */
export const retryBackoff = (policy: Partial<RetryPolicy>, runtime: Runtime, read: (error: unknown) => Meaning, deadlineMs = Infinity, isLast?: (byPushback: boolean) => void): Operator => (source) =>
  defer(() => {
    const settings = retryPolicy(policy);
    const overMs = Math.min(runtime.now() + settings.maxTotalTimeMs, deadlineMs);
    let previousMs: number | undefined;
    const delay = (error: unknown, attempt: number): Observable<unknown> => {
      const { retriable, retryAfterMs = 0 } = read(error);
      const [delayMs, atMs] = [backoffDelayMs(settings, attempt - 1, previousMs, () => runtime.random()), runtime.now()];
      const mayRetry = retriable && attempt < settings.maxAttempts && atMs + delayMs < overMs;
      const waitMs = Math.max(delayMs, retryAfterMs);
      if (!mayRetry || retryAfterMs < 0 || atMs + waitMs >= overMs) {
        isLast?.(mayRetry && retryAfterMs < 0);
        return throwError(() => error);
      }
      previousMs = delayMs;
      return runtime.after(waitMs).pipe(switchMap(() => (runtime.now() >= overMs ? throwError(() => error) : [0])));
    };
    return source.pipe(retry({ delay }));
  });
