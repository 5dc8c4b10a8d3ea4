import {
  AsyncSubject,
  NEVER,
  Observable,
  Subject,
  from,
  map,
  merge,
  mergeMap,
  of,
  reduce,
  switchMap,
  take,
  takeUntil,
  tap,
  type Subscription,
} from 'rxjs';
import type { TurnEvent, TurnOwnEvent } from '../contract/event.ts';
import type { EventHeader } from '../contract/event/header.ts';
import type { TraceContext } from '../contract/event/trace-context.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { NodeState, Plan, PlanNode, TurnResult } from '../contract/turn.ts';
import { held } from '../operators/work/held.ts';
import { fannedOut, forkJoinAll, mergeMany } from '../operators/work/join-tree.ts';
import { onAbort } from '../operators/work/on-abort.ts';
import { paced } from '../operators/timing/paced.ts';
import { harvest, noHarvest, type Harvest, type SettledNode } from './harvest.ts';
import type { CallingLayer } from '../call/pipe.ts';
import type { Layer } from '../layer/services.ts';
import { journalledBefore, journalledOutcome, unbegun } from './journalled.ts';
import type { ReadyNode } from './node.ts';
import { given } from '../policy/check.ts';
import { leave, left, takenOver } from './leaving.ts';
import { nameOf } from './plan-node.ts';
import { TurnContext } from './context.ts';
import { toldOf } from '../policy/trace-part.ts';
import { turnElsewhere, type FleetPort } from './elsewhere.ts';
import { turnResult } from './result.ts';
import { compensation, reasonOf, settledSaga } from './conclusion.ts';

/** Whose turn it is, and what can end it. */
export interface TurnOptions {
  /** Aborting it settles the turn with what it has; unfinished nodes are `canceled`. */
  readonly signal?: AbortSignal;
  /** Whose turn it is: part of every call's idempotency key. */
  readonly session?: string;
  /** The user or service: part of every computed key, and given to hooks. */
  readonly actor?: string;
  /** The tenant: part of every call's key, and a tenant's calls have breakers of their own. */
  readonly tenant?: string;
  /** The turn's id, which all of its events carry. Default: a new UUIDv7. */
  readonly turnId?: string;
  /**
   * The W3C trace context that the turn is part of: its calls go on from it, and a sink puts the turn's span under it
   * . Default: none; the OpenTelemetry sink takes the span that is active where the turn begins.
   */
  readonly traceContext?: TraceContext;
  /**
   * Hands the turn to a fleet: it then runs where its workers are, and goes on if this process dies. Default: it runs
   * here.
   */
  readonly fleet?: FleetPort;
  /**
   * With `fleet`: what unsubscribing before the end does. `cancel` (default) is as with a turn that runs here; with
   * `detach` it goes on, and `fleet.attach(turnId)` tells of it.
   */
  readonly onUnsubscribe?: 'cancel' | 'detach';
  /** Keeps what the turn came to; an engine of `spillway/fleet` gives one. Default: nothing is kept. */
  readonly journal?: TurnJournal;
}

/**
 * Calls that are started in one go. Then the event loop goes on, and with it deadlines and the results of calls that
 * are quick. A fan of 100,000 would otherwise stall it for a second, with all its calls in memory before the first
 * could settle: so few are pending at once where tools are quick that their memory is reclaimed young.
 */
const BURST = 100;

/** How a turn can end that has not ended by itself. */
type CutShort = Extract<NodeState, 'timed_out' | 'canceled'>;

/** The nodes as their needs settle: a node with needs is a `forkJoin` of their outcomes. */
const readyNodes = ({ needs }: Plan, outcomes: ReadonlyArray<Observable<SettledNode>>): Observable<ReadyNode> => {
  const listenTo = outcomes.map(fannedOut);
  const joins = needs.flatMap((all, index) => {
    if (all.length === 0) return [];
    const settled$ = forkJoinAll(all.map((need) => (listenTo[need] as () => Observable<SettledNode>)()));
    return [settled$.pipe(map((settled) => ({ index, needs: settled.map(({ result }) => result) })))];
  });
  const roots = needs.flatMap((all, index) => (all.length === 0 ? [{ index, needs: [] }] : []));
  return merge(mergeMany(joins), from(roots));
};

type TurnStarted = Extract<TurnOwnEvent, { type: 'turn_started' }>;
type PlannedNode = TurnStarted['nodes'][number];

/** A node as `turn_started` lists it. */
const plannedOf = (node: PlanNode): PlannedNode => {
  const { id, needs = [], toolCallId, optional } = node;
  return given({
    id,
    toolName: nameOf(node),
    needs,
    toolCallId,
    optional: optional === true ? true : undefined,
    hasDefault: node.default === undefined ? undefined : true,
  }) as PlannedNode;
};

/** What the trace is told of a plan when its turn starts. */
const started = (turn: TurnContext): Omit<TurnStarted, 'source' | keyof EventHeader> => {
  const { plan, journal, timeoutMs, trace } = turn;
  const { nodes, options } = plan;
  return {
    type: 'turn_started',
    timeoutMs,
    nodes: nodes.map(plannedOf),
    onDeadline: options.onDeadline ?? 'detach',
    ...toldOf(trace),
    ...given({
      concurrency: options.concurrency,
      remainingMs: journal?.remainingMs === timeoutMs ? undefined : journal?.remainingMs,
      worker: journal?.worker,
    }),
  };
};

/** The caller's signal, as what ends the turn. */
const aborted = (signal: AbortSignal | undefined): Observable<CutShort> => {
  if (signal === undefined) return NEVER;
  return new Observable<CutShort>((subscriber) => {
    const tell = (): void => subscriber.next('canceled');
    return signal.aborted ? tell() : onAbort(signal, tell);
  }).pipe(take(1));
};

/**
 * Runs a plan: nodes start as soon as their needs have settled, results are kept whatever else fails, and at its
 * deadline the turn settles with what it has. Emits the turn's events and those of its calls; the last one is
 * `settled`. Unsubscribing cancels everything.
 *
 * A node starts when all of its needs have settled:
 *
 * ```
 * flights             ----(a|)
 * hotels              --------(b|)
 * book (needs both)           ----(c|)
 * deadline            ----------------!
 * turn                ------------(s|)     settled, with three values
 * ```
 *
 * The deadline harvests:
 *
 * ```
 * flights             ----(a|)
 * hotels              --------------(b|)   goes on where `onDeadline` is `detach`; this stream has completed
 * deadline            ----------!
 * turn                ----------(s|)       settled: flights succeeded, the other two timed out; book never started
 * ```
 */
export function runTurn(layer: CallingLayer, plan: Plan, options: TurnOptions): Observable<TurnEvent> {
  const { fleet } = options;
  return fleet === undefined ? turnHere(layer, plan, options) : elsewhere(layer, plan, { ...options, fleet });
}

const elsewhere = (
  { runtime }: Layer,
  plan: Plan,
  { signal, journal: _, ...options }: TurnOptions & { readonly fleet: FleetPort },
): Observable<TurnEvent> => turnElsewhere({ ...options, aborted$: aborted(signal) }, plan, runtime);

const turnHere = (layer: CallingLayer, plan: Plan, options: TurnOptions): Observable<TurnEvent> =>
  new Observable((subscriber) => {
    // A tool that the plan brings along is checked as a registered one is: before anything runs.
    for (const { tool } of plan.nodes) if (typeof tool !== 'string') layer.registry.of(tool);
    const turn = new TurnContext(layer, plan, subscriber, options);
    const outcomes = plan.nodes.map(() => new AsyncSubject<SettledNode>());
    // Apart from what listens to them: at the deadline calls can go on that nobody waits for.
    const connections: Subscription[] = [];
    const outcomeOf = (ready: ReadyNode): Observable<SettledNode> => {
      const outcome$ = outcomes[ready.index] as AsyncSubject<SettledNode>;
      journalledOutcome(turn, ready)
        .pipe(held((connection) => (connections[ready.index] = connection)))
        .subscribe(outcome$);
      return outcome$;
    };
    let ending: CutShort | undefined;
    const due$ = new Subject<CutShort>();
    const end$ = merge(aborted(options.signal), due$, takenOver(turn)).pipe(
      tap((how) => {
        ending = how;
        turn.isOver = true;
      }),
    );
    subscriber.add(() => abandon(turn, connections));
    begin(turn);
    const found$ = readyNodes(plan, outcomes).pipe(
      paced(BURST, turn.site.runtime),
      mergeMap(outcomeOf, plan.options.concurrency ?? Infinity),
      takeUntil(end$),
      reduce(harvest, noHarvest(plan.nodes.length)),
    );
    subscriber.add(
      found$.pipe(switchMap((found) => concluded(turn, found, ending))).subscribe((result) => {
        tellResult(turn, result);
        subscriber.complete();
      }),
    );
    subscriber.add(left(turn).subscribe(() => leave(turn, subscriber)));
    // Armed after what settles at once, so that a result of the deadline's own instant still counts when it takes some
    // steps more.
    if (subscriber.closed || turn.isOver) return;
    subscriber.add(turn.over$.subscribe(() => due$.next('timed_out')));
  });

/** Tells that it begins, or goes on here. */
const begin = (turn: TurnContext): void => {
  const { journal, timeoutMs, trace } = turn;
  if (journal?.started !== true) turn.emit(started(turn));
  if (journal?.moved === undefined) return;
  const ranMs = Math.max(0, timeoutMs - journal.remainingMs);
  turn.emit({ type: 'turn_moved', ...journal.moved, ranMs, ...toldOf(trace) });
};

/** The turn's subscriber has gone before it settled: everything stops at once, and what it did is undone. */
const abandon = (turn: TurnContext, connections: readonly Subscription[]): void => {
  if (turn.isSettled) return;
  turn.isSettled = true;
  turn.isOver = true;
  // Calls that the deadline has detached go on. Of the others none begins anything because another one was stopped.
  const running = turn.takeRunning();
  for (const call of running) call?.leave();
  for (const [index, call] of running.entries()) if (call !== undefined) connections[index]?.unsubscribe();
  // Its own stream is closed by now.
  const over = (): void => turn.emitAlways({ type: 'abandoned' });
  const { saga } = turn;
  if (saga?.hasBegun !== true) return over();
  compensation(turn, saga, 'canceled').subscribe(({ stays }) => {
    over();
    // Nobody but the trace has heard what stays: `resume()` tells it.
    if (stays.length > 0) saga.record.release();
    else saga.record.told();
  });
};

const tellResult = (turn: TurnContext, result: TurnResult): void => {
  turn.isSettled = true;
  turn.emit({ type: 'settled', result });
  const { saga, journal } = turn;
  if (saga !== undefined) (journal?.ended$ ?? of(0)).pipe(take(1)).subscribe(() => saga.record.told());
};

/** The turn has what it will have: what is unfinished is cut short, what it did is undone where it failed. */
const concluded = (turn: TurnContext, found: Harvest, ending: CutShort | undefined): Observable<TurnResult> => {
  turn.isOver = true;
  // A result beats the deadline also where its journal was slow; it is kept before the turn's own end is.
  for (const settled of turn.unjournalled.values()) harvest(found, settled);
  // What had settled before the turn moved is not lost either, however soon its end comes here.
  for (const settled of journalledBefore(turn, found.results)) harvest(found, settled);
  if (ending !== undefined) cutShort(turn, found, ending);
  const result = resultOf(turn, found);
  const { saga } = turn;
  if (saga === undefined) return of(result);
  const reason = reasonOf({ status: result.status, ending, lacksCanceled: turn.lacksCanceled(result) });
  // What was undone is no longer to be had.
  return settledSaga(turn, saga, reason).pipe(
    map(({ nodes, ...more }) => {
      if (nodes === undefined) return { ...result, ...more };
      found.results = found.results.map((node) => (node === undefined ? node : (nodes.get(node.id)?.(node) ?? node)));
      return { ...resultOf(turn, found), ...more };
    }),
  );
};

const resultOf = (turn: TurnContext, { results, failures, executedTools, replayed }: Harvest): TurnResult =>
  turnResult(turn.plan, results, failures, turn.usedDefault, executedTools, replayed, turn.layer.trace.redactor.text);

/** The deadline or the caller ended the turn: what has settled is kept, the other nodes get `state`. */
const cutShort = (turn: TurnContext, found: Harvest, state: CutShort): void => {
  const { nodes, options } = turn.plan;
  const unfinished = nodes.flatMap((node, index) => (found.results[index] === undefined ? [{ node, index }] : []));
  const onDeadline = options.onDeadline ?? 'detach';
  if (state === 'timed_out')
    turn.emit({ type: 'deadline', unfinished: unfinished.map(({ node }) => node.id), onDeadline });
  const running = turn.takeRunning();
  for (const call of running) {
    if (call === undefined) continue;
    if (call.executed) found.executedTools++;
    if (state === 'canceled') call.cancel();
    else if (onDeadline === 'abort') call.expire();
    else call.detach();
  }
  const end = state === 'timed_out' ? 'the turn ended' : 'the turn was canceled';
  for (const { node, index } of unfinished) {
    const how = running[index] === undefined ? unbegun(turn, index) : 'It was running';
    const reason = `${how} when ${end}`;
    found.results[index] = { id: node.id, toolName: nameOf(node), state, reason };
    turn.emit({ type: 'node_settled', nodeId: node.id, toolName: nameOf(node), state });
  }
};
