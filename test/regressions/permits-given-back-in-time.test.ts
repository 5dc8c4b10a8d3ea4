// Was: a permit came back only after what its own abort tore down. Now: whoever unsubscribes from within an abort has
// given it back before the rest is torn down.
import { NEVER, Observable, Subscription, concat, of } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, guard, type Breaker, type Runtime } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { expect, it } from 'vitest';

type Work = (signal: AbortSignal) => Observable<string>;
const composed = (work: Work, breaker: Breaker, runtime: Runtime): Observable<string> =>
  abortable(work).pipe(attemptTimeout(20, runtime), circuitBreaker(breaker));
const fused = (work: Work, breaker: Breaker, runtime: Runtime): Observable<string> =>
  guard({ timeoutMs: 20, breaker }, runtime).from(({ signal }) => work(signal));

it.each([
  ['composed', composed],
  ['fused', fused],
])(
  'R-3.6 what is unsubscribed from within its abort gives its permit back before the rest is torn down: %s',
  (_, guarded) => {
    const seen: string[] = [];
    const scheduler = new TestScheduler(() => undefined);
    scheduler.run(({ flush }) => {
      const runtime = runtimeOn(scheduler);
      const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 50, successThreshold: 1 }, runtime);
      const first = breaker.admit();
      if (first.admitted) first.failure();
      breaker.state$.subscribe(({ type }) => seen.push(type));
      const call = new Subscription();
      const work: Work = (signal) => {
        signal.addEventListener('abort', () => call.unsubscribe());
        return new Observable((subscriber) => {
          subscriber.add(() => seen.push('torn down'));
          return concat(of('early'), NEVER).subscribe(subscriber);
        });
      };
      runtime.after(100).subscribe(() => call.add(guarded(work, breaker, runtime).subscribe()));
      flush();
    });
    // A value had come, so the probe was a good one.
    expect(seen).toStrictEqual(['open', 'half_open', 'closed', 'torn down']);
  },
);
