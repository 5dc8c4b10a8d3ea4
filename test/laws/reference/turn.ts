import {
  AsyncSubject,
  Observable,
  Subject,
  filter,
  forkJoin,
  from,
  map,
  merge,
  mergeMap,
  observeOn,
  queueScheduler,
  reduce,
  subscribeOn,
  take,
  takeUntil,
  tap,
  type Subscription,
} from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { NodeState } from '../../../src/contract/turn.ts';
import { untilDue } from './operators.ts';
import { settling, type Ready } from './node.ts';
import type { Node, Settled, Turn, TurnSettings } from './shapes.ts';
import { turnResult } from './turn-result.ts';

/** a node starts as soon as its needs have settled. */
const readyNodes = (nodes: readonly Node[], outcomes: ReadonlyArray<Observable<Settled>>): Observable<Ready> => {
  const joins = nodes.map(({ needs }) => forkJoin(needs.flatMap((need) => outcomes[need] ?? [])));
  const roots = nodes.flatMap(({ needs }, index) => (needs.length === 0 ? [{ index, needs: [] }] : []));
  return merge(...joins.map((join$, index) => join$.pipe(map((needs) => ({ index, needs })))), from(roots));
};

/** and section 5: a turn as the join of its nodes, until its deadline. */
export const turn = (
  nodes: readonly Node[],
  { timeoutMs, concurrency, onDeadline, aborted$, told }: TurnSettings,
  runtime: Runtime,
): Observable<Turn> =>
  new Observable((subscriber) => {
    const outcomes = nodes.map(() => new AsyncSubject<Settled>());
    const found = nodes.map((): Settled | undefined => undefined);
    const calls: Subscription[] = [];
    const [withDefault, end$, deadlineMs] = [new Set<number>(), new Subject<NodeState>(), runtime.now() + timeoutMs];
    let isOver = false;
    const start = (ready: Ready): Observable<Settled> => {
      const [node, outcome$] = [nodes[ready.index] as Node, outcomes[ready.index] as AsyncSubject<Settled>];
      const settled$ = settling(node, ready, runtime, deadlineMs, () => withDefault.add(ready.index));
      if (!isOver)
        calls[ready.index] = settled$
          .pipe(
            filter(() => !isOver),
            tap(told),
          )
          .subscribe(outcome$);
      return outcome$;
    };
    const leave = (): void => calls.forEach((call) => call.unsubscribe());
    const cut = (state: NodeState): void => {
      isOver = true;
      if (state === 'canceled' || onDeadline === 'abort') leave();
      const unfinished = nodes.flatMap((_, index) => (found[index] === undefined ? [{ index, state }] : []));
      from(unfinished)
        .pipe(tap(told))
        .subscribe((settled) => (found[settled.index] = settled));
    };
    subscriber.add(aborted$.subscribe(() => end$.next('canceled')));
    readyNodes(nodes, outcomes)
      // Nodes start in the order in which they became ready, and not in that of the stack.
      .pipe(
        subscribeOn(queueScheduler),
        observeOn(queueScheduler),
        mergeMap(start, concurrency),
        takeUntil(end$.pipe(take(1), tap(cut))),
      )
      .pipe(
        reduce((_, settled) => void (found[settled.index] = settled), undefined),
        map(() => turnResult(nodes, found as Settled[], withDefault)),
      )
      .subscribe(subscriber);
    // Who leaves before it has settled cancels it all.
    if (!subscriber.closed) subscriber.add(() => isOver || leave());
    // The deadline is set last: what settles at once goes before it.
    subscriber.add(untilDue(timeoutMs, runtime).subscribe(() => end$.next('timed_out')));
  });
