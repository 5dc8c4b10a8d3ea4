import {
  BehaviorSubject,
  NEVER,
  Subject,
  distinctUntilChanged,
  ignoreElements,
  map,
  merge,
  scan,
  switchMap,
  tap,
  type Observable,
} from 'rxjs';
import type { BreakerStateName } from '../../../src/contract/breaker-state.ts';
import type { BreakerOptions } from '../../../src/contract/policy.ts';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { breakerSettings } from '../../../src/policy/breaker/settings.ts';
import { advanceBreaker, breakerDueMs, decideBreaker, initialBreaker } from '../../../src/policy/breaker/reducer.ts';
import type { BreakerInput, BreakerMemory, Permit } from '../../../src/policy/breaker/reducer.ts';

export interface Breaker {
  readonly tell: (input: BreakerInput) => Permit | undefined;
  readonly admit: () => Permit | undefined;
  readonly now: () => { readonly atMs: number };
  /** each change at its instant, traffic or not. */
  readonly type$: Observable<BreakerStateName>;
  readonly memory: () => BreakerMemory;
}

/**
 * a scan of inputs over the exported reducer. That the policy decides is the rule itself; who tells it what,
 * and when, is what is held equal.
 */
export const createBreaker = (options: BreakerOptions, runtime: Runtime): Breaker => {
  const settings = breakerSettings(options);
  const inputs$ = new Subject<BreakerInput>();
  let latest: readonly [BreakerMemory, Permit | undefined] = [initialBreaker(settings), undefined];
  inputs$
    .pipe(scan(([before], input) => decideBreaker(before, input, settings), latest))
    .subscribe((step) => (latest = step));
  const memory$ = new BehaviorSubject(latest[0]);
  const tell = (input: BreakerInput): Permit | undefined => {
    inputs$.next(input);
    const [memory, permit] = latest;
    memory$.next(memory);
    return permit;
  };
  const now = (): { readonly atMs: number } => ({ atMs: runtime.now() });
  const ticks$ = memory$.pipe(
    map((memory) => breakerDueMs(memory, settings)),
    distinctUntilChanged(),
    switchMap((dueMs) => (dueMs === Infinity ? NEVER : runtime.after(dueMs - runtime.now()))),
    tap(() => tell({ type: 'tick', ...now() })),
    ignoreElements(),
  );
  const isRamping = (): boolean => latest[0].rampFromMs !== undefined;
  return {
    tell: (input) => tell(input),
    admit: () =>
      tell(isRamping() ? { type: 'admit', ...now(), random: runtime.random() } : { type: 'admit', ...now() }),
    now: () => now(),
    type$: merge(memory$.pipe(map(({ type }) => type)), ticks$).pipe(distinctUntilChanged()),
    memory: () => advanceBreaker(latest[0], settings, runtime.now()),
  };
};
