import { Observable, Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer, number } from '../policy/check.ts';
import { latencyWindow } from '../policy/latency.ts';
import type { RetryBudget } from '../policy/retry-budget.ts';
import { liveRuntime } from '../runtime.ts';

export interface HedgePolicy {
  /** When the second attempt starts. Without it: at the source's own quantile, once enough answers have been measured. */
  readonly delayMs?: number;
  /** The quantile of the latest answers after which a second attempt starts. Default 0.95 (Dean and Barroso, "The Tail at Scale", 2013). */
  readonly quantile?: number;
  /** Answers that are measured before the quantile counts; until then nothing is hedged. Default 20. */
  readonly minimumSamples?: number;
  /** Attempts beside the first. Default 1. */
  readonly maxHedges?: number;
  /** Charged for each hedge as for a retry; a hedge that it does not allow is not made. Whoever makes the calls records them in it. */
  readonly budget?: RetryBudget;
}

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
 * An attempt that fails while another runs drops out of the race; the error of the last one is the stream's. An early failure is not hedged:
 * that is what `retryBackoff` is for. What all subscriptions of one `hedge()` measure is shared, so make it once per tool.
 *
 * @param policy a fixed `delayMs`, or the `quantile` of what was measured
 * @param runtime where time comes from
 * @throws RangeError for an option out of its range
 *
 * @example
 * const hedged = hedge({ delayMs: 300 });
 * search$.pipe(hedged).subscribe();
 */
export function hedge(policy: HedgePolicy = {}, runtime: Runtime = liveRuntime): <T>(source: Observable<T>) => Observable<T> {
  checkKeys('a hedge', policy, ['delayMs', 'quantile', 'minimumSamples', 'maxHedges', 'budget']);
  const { delayMs, quantile = 0.95, minimumSamples = 20, maxHedges = 1, budget } = policy;
  if (delayMs !== undefined) checkNumber('delayMs', delayMs, duration);
  checkNumber('quantile', quantile, number(0, 1));
  checkNumber('minimumSamples', minimumSamples, integer(1, WINDOW));
  checkNumber('maxHedges', maxHedges, integer(1, 10));
  const latencies = latencyWindow(WINDOW);
  return <T>(source: Observable<T>): Observable<T> =>
    new Observable<T>((subscriber) => {
      const attempts = new Set<Subscription>();
      const timer = new Subscription();
      subscriber.add(timer);
      let started = 0;
      let winner: Subscription | undefined;

      const win = (attempt: Subscription): void => {
        winner = attempt;
        timer.unsubscribe();
        for (const other of attempts) if (other !== attempt) other.unsubscribe();
      };
      const start = (): void => {
        const startedAtMs = runtime.now();
        let attempt: Subscription | undefined;
        let measured = false;
        // Of the losers too, as far as they came: of winners alone the quantile would sink, and ever more would be hedged.
        const measure = (): void => {
          if (!measured) latencies.record(runtime.now() - startedAtMs);
          measured = true;
        };
        started++;
        new Observable<T>((own) => {
          attempt = own;
          attempts.add(own);
          subscriber.add(own);
          own.add(() => winner !== undefined && measure());
          return source.subscribe(own);
        }).subscribe({
          next: (value) => {
            if (winner === undefined && attempt !== undefined) {
              measure();
              win(attempt);
            }
            subscriber.next(value);
          },
          error: (error: unknown) => {
            if (attempt !== undefined) attempts.delete(attempt);
            if (attempts.size === 0 || winner === attempt) subscriber.error(error);
          },
          complete: () => {
            if (winner === undefined && attempt !== undefined) {
              measure();
              win(attempt);
            }
            subscriber.complete();
          },
        });
        armNext();
      };
      const armNext = (): void => {
        const waitMs = delayMs ?? latencies.quantile(quantile, minimumSamples);
        if (waitMs === undefined || winner !== undefined || started > maxHedges || subscriber.closed) return;
        timer.add(
          runtime.after(waitMs).subscribe(() => {
            const now = runtime.now();
            if (budget?.available(now) === false) return;
            budget?.recordRetry(now);
            start();
          }),
        );
      };
      start();
    });
}
