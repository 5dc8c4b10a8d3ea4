import {
  BehaviorSubject,
  EMPTY,
  catchError,
  defer,
  expand,
  filter,
  map,
  mergeMap,
  of,
  takeUntil,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer, number } from '../policy/check.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { doubted } from '../policy/recovery/proof.ts';
import { latencyWindow, type LatencyWindow } from '../policy/retry/latency.ts';
import type { RetryBudget } from '../policy/retry/budget.ts';
import { liveRuntime } from '../runtime.ts';
import { tornDownAlone } from './work/torn-down-alone.ts';

/** When `hedge` starts another attempt. Times are milliseconds. */
export interface HedgePolicy {
  /**
   * When the second attempt starts. Without it: at the source's own quantile, once enough answers have been measured.
   */
  readonly delayMs?: number;
  /**
   * The quantile of the latest answers after which a second attempt starts. Default 0.95 (Dean and Barroso, "The Tail
   * at Scale", 2013).
   */
  readonly quantile?: number;
  /** Answers that are measured before the quantile counts; until then nothing is hedged. Default 20. */
  readonly minimumSamples?: number;
  /** Attempts beside the first. Default 1. */
  readonly maxHedges?: number;
  /**
   * Charged for each hedge as for a retry; a hedge that it does not allow is not made. Whoever makes the calls records
   * them in it.
   */
  readonly budget?: RetryBudget;
}

const leavesOpen = (error: unknown): boolean => doubted(toToolExecutionError(error), 'mutating').uncertain;

/** Answers that the quantile is taken of. */
const WINDOW = 100;

/**
 * Starts a second attempt when the first is slower than usual: the first to emit wins, and the loser is unsubscribed.
 * For sources without effects: both attempts may run.
 *
 * ```
 * first attempt           --------a|
 * second attempt             --b|
 * hedge({ delayMs: 3 })   -----b|       the first attempt is unsubscribed when b is there
 * ```
 *
 * An attempt that fails while another runs drops out of the race; the error of the last one is the stream's, or that of
 * the last one that may have taken effect. An early failure is not hedged: that is what `retryBackoff` is for. What all
 * subscriptions of one `hedge()` measure is shared, so make it once per tool.
 *
 * @param policy a fixed `delayMs`, or the `quantile` of what was measured
 * @param runtime where time comes from
 * @throws RangeError for an option out of its range
 *
 * @example
 * const hedged = hedge({ delayMs: 300 });
 * search$.pipe(hedged).subscribe();
 */
export function hedge(
  policy: HedgePolicy = {},
  runtime: Runtime = liveRuntime,
): <T>(source: Observable<T>) => Observable<T> {
  checkKeys('a hedge', policy, ['delayMs', 'quantile', 'minimumSamples', 'maxHedges', 'budget']);
  const { delayMs, quantile = 0.95, minimumSamples = 20, maxHedges = 1, budget } = policy;
  if (delayMs !== undefined) checkNumber('delayMs', delayMs, duration);
  checkNumber('quantile', quantile, number(0, 1));
  checkNumber('minimumSamples', minimumSamples, integer(1, WINDOW));
  checkNumber('maxHedges', maxHedges, integer(1, 10));
  const latencies = latencyWindow(WINDOW);
  /**
   * When the next attempt starts, after the one of this number has; a hedge that the budget does not allow is not made.
   */
  const nextAfter = (number: number): Observable<number> => {
    const waitMs = delayMs ?? latencies.quantile(quantile, minimumSamples);
    if (waitMs === undefined || number >= maxHedges) return EMPTY;
    return runtime.after(waitMs).pipe(
      filter(() => budget?.available(runtime.now()) !== false),
      tap(() => budget?.recordRetry(runtime.now())),
      map(() => number + 1),
    );
  };
  return <T>(source: Observable<T>): Observable<T> => raced(source, nextAfter, latencies, runtime);
}

/** One subscription: each attempt is started by what follows the one before it, and the first to answer wins. */
const raced = <T>(
  source: Observable<T>,
  nextAfter: (number: number) => Observable<number>,
  latencies: LatencyWindow,
  runtime: Runtime,
): Observable<T> =>
  defer(() => {
    const winner$ = new BehaviorSubject<number | undefined>(undefined);
    const won$ = winner$.pipe(filter((winner) => winner !== undefined));
    /** When the attempts that run have started, by their numbers. */
    const startedAtMs = new Map<number, number>();
    /** The last failure that leaves open whether its attempt took effect: no later one takes that back. */
    let open: { readonly error: unknown } | undefined;
    const win = (number: number): void => {
      if (winner$.value !== undefined) return;
      // Of the losers too, as far as they came: of winners alone the quantile would sink, and ever more would be
      // hedged.
      for (const atMs of startedAtMs.values()) latencies.record(runtime.now() - atMs);
      winner$.next(number);
    };
    const attempt = (number: number): Observable<T> => {
      startedAtMs.set(number, runtime.now());
      return source.pipe(
        // A loser's teardown costs nobody what the winner gives.
        tornDownAlone,
        tap({ next: () => win(number), complete: () => win(number) }),
        takeUntil(won$.pipe(filter((winner) => winner !== number))),
        catchError((error: unknown) => {
          startedAtMs.delete(number);
          if (winner$.value === number) return throwError(() => error);
          if (leavesOpen(error)) open = { error };
          return startedAtMs.size === 0 ? throwError(() => (open === undefined ? error : open.error)) : EMPTY;
        }),
      );
    };
    return of(0).pipe(expand(nextAfter), takeUntil(won$), mergeMap(attempt));
  });
