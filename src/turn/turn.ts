import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { TraceEvent, TurnEvent } from '../contract/event.ts';
import type { NodeResult, PlanNode } from '../contract/turn.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { expireAfter, type Expiry } from '../operators/expiry.ts';
import { decideCascade, hasValue } from '../policy/cascade.ts';
import { TURN_TIMEOUT_MS } from '../policy/profile.ts';
import { GuardedCall } from './call.ts';
import type { CallSite } from './call-record.ts';
import type { Layer } from './layer.ts';
import type { Plan } from './plan.ts';
import { canDoWithout, inputOf, nameOf, nodeAt } from './plan-node.ts';
import type { Call } from './request.ts';
import type { CallOutcome } from './result.ts';
import { turnResult } from './turn-result.ts';
import { STAMP, type Unstamped } from './trace.ts';

export interface TurnOptions {
  /** Aborting it settles the turn with what it has; unfinished nodes are `canceled`. */
  readonly signal?: AbortSignal;
  /** Whose turn it is: part of every call's idempotency key. */
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
}

type OwnEvent = Extract<Unstamped, { source: 'turn' }>;
type WithoutHeader<E> = E extends OwnEvent ? Omit<E, 'source' | 'turnId' | 'seq' | 'atMs'> : never;

/**
 * Calls that are started in one go; then the event loop has its turn, and with it deadlines and the results of those that are quick. A fan of
 * 100,000 would otherwise stall it for a second, with all its calls in memory before the first could settle.
 */
const BURST = 1_000;

/**
 * A turn while it runs. Needs are counted down as `forkJoin` would wait for them, but by hand: each of RxJS's joins removes its inner
 * subscriptions one by one from a list, which a fan of 100,000 nodes makes quadratic. What has become ready goes through one queue, so that a
 * chain of 100,000 nodes that settle at once is a loop and not a stack.
 */
class TurnRun {
  readonly #layer: Layer;
  readonly #plan: Plan;
  readonly #subscriber: Subscriber<TurnEvent>;
  readonly #report: (event: TraceEvent) => void;
  readonly #turnId: string;
  readonly #timeoutMs: number;
  readonly #concurrency: number;
  readonly #results: Array<NodeResult | undefined>;
  readonly #failures: Array<ToolErrorKind | undefined>;
  readonly #usedDefault: boolean[];
  /** Needs of each node that have not settled. */
  readonly #waiting: number[];
  readonly #ready: number[];
  #readyHead = 0;
  /** By place: the calls that have not settled. Not a Map, for the reason that `RunningCalls` gives. */
  #running: Array<GuardedCall | undefined>;
  #runningCount = 0;
  readonly #site: CallSite;
  readonly #identity: Pick<Call, 'session' | 'actor' | 'tenant'>;
  #deadline: Expiry | undefined;
  #unsettled: number;
  #executedTools = 0;
  /** Calls that got the result of an earlier one. */
  #replayed = 0;
  #draining = false;
  /** Between two bursts of starts. */
  #pause: Subscription | undefined;
  #over = false;
  /** Settled, or abandoned. */
  #ended = false;

  constructor(layer: Layer, plan: Plan, subscriber: Subscriber<TurnEvent>, { session, actor, tenant }: TurnOptions) {
    const { nodes, needs, options } = plan;
    this.#identity = { ...(session === undefined ? {} : { session }), ...(actor === undefined ? {} : { actor }), ...(tenant === undefined ? {} : { tenant }) };
    this.#layer = layer;
    this.#plan = plan;
    this.#subscriber = subscriber;
    this.#report = (event) => subscriber.next(event as TurnEvent);
    this.#turnId = layer.runtime.id();
    this.#timeoutMs = options.timeoutMs ?? TURN_TIMEOUT_MS;
    this.#site = {
      // This turn's own deadline timer holds the process; the timers of its calls do not, so that those of detached ones never do.
      runtime: layer.runtime.background ?? layer.runtime,
      turnId: this.#turnId,
      deadlineMs: layer.runtime.now() + this.#timeoutMs,
      report: this.#report,
    };
    this.#concurrency = options.concurrency ?? Infinity;
    this.#results = nodes.map(() => undefined);
    this.#failures = nodes.map(() => undefined);
    this.#usedDefault = nodes.map(() => false);
    this.#running = nodes.map(() => undefined);
    this.#waiting = needs.map(({ length }) => length);
    this.#ready = needs.flatMap(({ length }, place) => (length === 0 ? [place] : []));
    this.#unsettled = nodes.length;
  }

  begin({ signal }: TurnOptions): void {
    const { nodes } = this.#plan;
    this.#emit({
      type: 'turn_started',
      timeoutMs: this.#timeoutMs,
      nodes: nodes.map((node) => ({ id: node.id, toolName: nameOf(node), needs: node.needs ?? [] })),
    });
    const cancel = (): void => this.#cutShort('canceled');
    if (signal?.aborted === true) return cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    this.#subscriber.add(() => signal?.removeEventListener('abort', cancel));
    this.#drain();
    if (this.#over) return;
    const leftMs = this.#site.deadlineMs - this.#layer.runtime.now();
    this.#deadline = expireAfter(Math.max(0, leftMs), this.#layer.runtime, () => this.#cutShort('timed_out'));
  }

  /** The turn's subscriber has gone: everything stops at once. */
  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#over = true;
    this.#deadline?.cancel();
    this.#pause?.unsubscribe();
    for (const call of this.#takeRunning()) call?.abandon();
    // Its own stream is closed by now.
    if (this.#layer.trace.observed) this.#layer.trace.publish({ ...STAMP, source: 'turn', turnId: this.#turnId, type: 'abandoned' });
  }

  /** The calls that have not settled, which are this turn's no longer. */
  #takeRunning(): ReadonlyArray<GuardedCall | undefined> {
    const running = this.#running;
    this.#running = [];
    this.#runningCount = 0;
    return running;
  }

  #emit(event: WithoutHeader<OwnEvent>): void {
    if (this.#subscriber.closed) return;
    this.#layer.trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId: this.#turnId, ...event }, this.#report);
  }

  /** Starts what is ready while there are places. Not recursive: what settles meanwhile joins the queue. */
  #drain(): void {
    if (this.#draining || this.#pause !== undefined) return;
    this.#draining = true;
    const most = Math.min(this.#concurrency, this.#runningCount + BURST);
    while (!this.#over && this.#readyHead < this.#ready.length && this.#runningCount < most) {
      const place = this.#ready[this.#readyHead++];
      if (place !== undefined) this.#arrive(place);
    }
    this.#draining = false;
    if (this.#over) return;
    if (this.#unsettled === 0) this.#finish();
    else if (this.#readyHead < this.#ready.length && this.#runningCount < this.#concurrency) this.#pauseStarting();
  }

  #pauseStarting(): void {
    this.#pause = this.#site.runtime.after(0).subscribe(() => {
      this.#pause = undefined;
      this.#drain();
    });
  }

  /** All needs of a node have settled: it runs, or what its needs lack decides. */
  #arrive(place: number): void {
    const node = nodeAt(this.#plan, place);
    const lacking = (this.#plan.needs[place] ?? []).filter((need) => !hasValue(this.#results[need]?.state));
    if (lacking.length === 0) return this.#start(place, node);
    const cascade = decideCascade({ hasDefault: node.default !== undefined, optional: node.optional === true });
    if (cascade === 'use_default') return this.#start(place, node, `Used default value for ${node.id}`);
    const lackingIds = lacking.map((need) => nodeAt(this.#plan, need).id);
    const reason = `needs ${lackingIds.join(', ')}`;
    if (cascade === 'skip') return this.#settle(place, { state: 'skipped', reason: `Optional tool skipped: it ${reason}` });
    const message = 'Required tool skipped due to dependency failure';
    this.#settle(place, { state: 'skipped', reason: `${message}: it ${reason}` }, message);
    this.#emit({ type: 'escalated', nodeId: node.id, toolName: nameOf(node), message, lacking: lackingIds, choices: ['provide_the_value', 'continue_without', 'cancel'] });
  }

  #start(place: number, node: PlanNode, message?: string): void {
    const { runtime, registry } = this.#layer;
    // What became ready at the deadline itself stays as it is: results of that instant still count, and nothing new starts.
    if (runtime.now() >= this.#site.deadlineMs) return;
    this.#usedDefault[place] = message !== undefined;
    this.#emit({ type: 'node_started', nodeId: node.id, toolName: nameOf(node), ...(message === undefined ? undefined : { message }) });
    // Whoever heard that may have ended the turn.
    if (this.#over) return;
    let input: unknown;
    try {
      input = inputOf(this.#plan, place, this.#results);
    } catch (error) {
      this.#failures[place] = 'invalid_parameters';
      const reason = `The input of ${node.id} could not be made: ${toToolExecutionError(error).message}`;
      return this.#settle(place, { state: 'failed', reason }, reason);
    }
    const call: Call = {
      callId: runtime.id(),
      toolName: nameOf(node),
      input,
      nodeId: node.id,
      required: node.optional !== true && !canDoWithout(this.#plan, place),
      dedupeMode: node.idempotencyKey === undefined ? 'disabled' : 'enforced',
      deadlineMs: Infinity,
      ...this.#identity,
      ...(node.toolCallId === undefined ? undefined : { toolCallId: node.toolCallId }),
      ...(node.idempotencyKey === undefined ? undefined : { idempotencyKey: node.idempotencyKey }),
    };
    const guarded = new GuardedCall(this.#layer, this.#site, call, (outcome, { executed }) => {
      // Detached calls end here too, after the turn has settled.
      if (this.#running[place] === undefined) return;
      this.#running[place] = undefined;
      this.#runningCount--;
      this.#conclude(place, outcome, executed);
    });
    this.#running[place] = guarded;
    this.#runningCount++;
    guarded.begin(typeof node.tool === 'string' ? undefined : registry.of(node.tool));
  }

  #conclude(place: number, { result, error }: CallOutcome, executed: boolean): void {
    if (executed) this.#executedTools++;
    if (result.fromCache) this.#replayed++;
    if (error === undefined) {
      const { id } = nodeAt(this.#plan, place);
      return this.#settle(place, this.#usedDefault[place] === true ? { state: 'defaulted', result, reason: `Used default value for ${id}` } : { state: 'succeeded', result });
    }
    if (error.kind !== 'canceled') this.#failures[place] = error.kind;
    this.#settle(place, { state: error.kind === 'canceled' ? 'canceled' : 'failed', result, reason: error.message });
  }

  #settle(place: number, how: Omit<NodeResult, 'id' | 'toolName'>, message?: string): void {
    const node = nodeAt(this.#plan, place);
    const result: NodeResult = { id: node.id, toolName: nameOf(node), ...how };
    this.#results[place] = result;
    this.#unsettled--;
    this.#emit({ type: 'node_settled', nodeId: node.id, toolName: result.toolName, state: how.state, ...(message === undefined ? undefined : { message }) });
    for (const dependent of this.#plan.dependents[place] ?? []) {
      const left = (this.#waiting[dependent] ?? 0) - 1;
      this.#waiting[dependent] = left;
      if (left === 0) this.#ready.push(dependent);
    }
    this.#drain();
  }

  /** The deadline or the caller ends the turn: what has settled is kept, the rest is `state`. */
  #cutShort(state: 'timed_out' | 'canceled'): void {
    if (this.#over) return;
    this.#over = true;
    const unfinished = this.#plan.nodes.flatMap((node, place) => (this.#results[place] === undefined ? [{ node, place }] : []));
    const onDeadline = this.#plan.options.onDeadline ?? 'detach';
    if (state === 'timed_out') this.#emit({ type: 'deadline', unfinished: unfinished.map(({ node }) => node.id), onDeadline });
    const running = this.#takeRunning();
    for (const call of running) {
      if (call === undefined) continue;
      if (call.executed) this.#executedTools++;
      if (state === 'canceled') call.cancel();
      else if (onDeadline === 'abort') call.expire();
      else call.detach();
    }
    const end = state === 'timed_out' ? 'the turn ended' : 'the turn was canceled';
    for (const { node, place } of unfinished) {
      const reason = running[place] !== undefined ? `It was running when ${end}` : `It had not started when ${end}`;
      this.#results[place] = { id: node.id, toolName: nameOf(node), state, reason };
      this.#emit({ type: 'node_settled', nodeId: node.id, toolName: nameOf(node), state });
    }
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#deadline?.cancel();
    this.#pause?.unsubscribe();
    this.#ended = true;
    this.#emit({ type: 'settled', result: turnResult(this.#plan, this.#results, this.#failures, this.#usedDefault, this.#executedTools, this.#replayed) });
    this.#subscriber.complete();
  }
}

/**
 * Runs a plan: nodes start as soon as their needs have settled, results are kept whatever else fails, and at its deadline the turn settles
 * with what it has. Emits the turn's events and those of its calls; the last one is `settled`. Unsubscribing cancels everything.
 */
export function runTurn(layer: Layer, plan: Plan, options: TurnOptions = {}): Observable<TurnEvent> {
  return new Observable((subscriber) => {
    // A tool that the plan brings along is checked as a registered one is: before anything runs.
    for (const { tool } of plan.nodes) if (typeof tool !== 'string') layer.registry.of(tool);
    const run = new TurnRun(layer, plan, subscriber, options);
    subscriber.add(() => run.abandon());
    run.begin(options);
  });
}
