import { AsyncSubject, NEVER, Observable, Subject, filter, forkJoin, from, map, merge, mergeMap } from 'rxjs';
import { observeOn, of, queueScheduler, reduce, subscribeOn, take, takeUntil, tap, type Subscription } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { NodeState } from '../../../src/contract/turn.ts';
import type { Outcome } from './call.ts';
import { untilDue } from './operators.ts';
import { hasValue, turnResult, type Settled, type Turn } from './turn-result.ts';

export interface Node {
  /** Places in the plan. */
  readonly needs: readonly number[];
  readonly optional: boolean;
  readonly default: unknown;
  /** Given the values of its needs, in their order, and when the turn is over. */
  readonly call: (values: readonly unknown[], deadlineMs: number) => Observable<Outcome>;
  readonly hasRun: () => boolean;
}
export interface TurnSettings {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly onDeadline: 'detach' | 'abort';
  readonly aborted$: Observable<unknown>;
  /** Hears of each node at the instant at which it settles. */
  readonly told: (settled: Settled) => void;
}
type Ready = { readonly index: number; readonly needs: readonly Settled[] };

/** and section 5: a turn as the join of its nodes, until its deadline. */
export const turn = (nodes: readonly Node[], settings: TurnSettings, runtime: Runtime): Observable<Turn> =>
  new Observable((subscriber) => {
    const outcomes = nodes.map(() => new AsyncSubject<Settled>());
    const found = nodes.map((): Settled | undefined => undefined);
    const calls: Subscription[] = [];
    const leave = (): void => calls.forEach((call) => call.unsubscribe());
    const [withDefault, end$] = [new Set<number>(), new Subject<NodeState>()];
    const deadlineMs = runtime.now() + settings.timeoutMs;
    let isOver = false;

    const settling = ({ index, needs }: Ready): Observable<Settled> => {
      const node = nodes[index] as Node;
      const isWhole = needs.every(hasValue);
      // A node without a value can still be skipped at the deadline's own instant: only calls do not start then.
      if (!isWhole && node.default === undefined) return of({ index, state: 'skipped' });
      if (runtime.now() >= deadlineMs) return NEVER;
      if (!isWhole) withDefault.add(index);
      const good = isWhole ? 'succeeded' : 'defaulted';
      const values = needs.map((need) => (hasValue(need) ? need.outcome?.value : node.default));
      return node.call(values, deadlineMs).pipe(map((outcome) => ({ index, outcome, state: outcome.error === undefined ? good : 'failed' })));
    };
    const start = (ready: Ready): Observable<Settled> => {
      const outcome$ = outcomes[ready.index] as AsyncSubject<Settled>;
      if (!isOver) calls[ready.index] = settling(ready).pipe(filter(() => !isOver), tap(settings.told)).subscribe(outcome$);
      return outcome$;
    };
    const unfinished = (index: number, state: NodeState): Settled => {
      settings.told({ index, state });
      return { index, state };
    };
    const cut = (state: NodeState): void => {
      isOver = true;
      if (state === 'canceled' || settings.onDeadline === 'abort') leave();
      for (const index of nodes.keys()) found[index] ??= unfinished(index, state);
    };
    const joins = nodes.map(({ needs }, index) => forkJoin(needs.map((need) => outcomes[need] as AsyncSubject<Settled>)).pipe(map((all) => ({ index, needs: all }))));
    const roots = nodes.flatMap(({ needs }, index) => (needs.length === 0 ? [{ index, needs: [] }] : []));
    subscriber.add(settings.aborted$.subscribe(() => end$.next('canceled')));
    merge(...joins, from(roots))
      // Nodes start in the order in which they became ready, not in that of the stack.
      .pipe(subscribeOn(queueScheduler), observeOn(queueScheduler), mergeMap(start, settings.concurrency), takeUntil(end$.pipe(take(1), tap(cut))))
      .pipe(reduce((_, settled) => void (found[settled.index] = settled), undefined), map(() => turnResult(nodes, found as Settled[], withDefault)))
      .subscribe(subscriber);
    // Who leaves before it has settled cancels it all. The deadline is set last: what settles at once goes before it.
    if (!subscriber.closed) subscriber.add(() => isOver || leave());
    subscriber.add(untilDue(settings.timeoutMs, runtime).subscribe(() => end$.next('timed_out')));
  });
