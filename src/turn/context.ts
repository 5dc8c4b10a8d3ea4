import { filter, map, type Observable, type Subscriber } from 'rxjs';
import type { ToolEvent, TraceEvent, TurnEvent } from '../contract/event.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import { TURN_TIMEOUT_MS } from '../policy/profile.ts';
import { callOutcome } from '../call/pipe.ts';
import { CallContext, type CallSite } from '../call/context.ts';
import type { Layer } from '../layer/services.ts';
import type { SettledNode } from './harvest.ts';
import type { Plan } from './plan.ts';
import { nodeAt } from './plan-node.ts';
import type { Call } from '../call/request.ts';
import type { CallOutcome } from '../call/result.ts';
import type { Unstamped } from '../layer/trace.ts';
import type { TurnOptions } from './run.ts';
import { Saga } from './saga/saga.ts';

type OwnEvent = Extract<Unstamped, { source: 'turn' }>;
/** An event of a turn without the fields that say whose it is. */
export type TurnBody = WithoutHeader<OwnEvent>;
type WithoutHeader<E> = E extends OwnEvent ? Omit<E, 'source' | 'turnId' | 'seq' | 'atMs'> : never;

/** What the nodes of one turn share: whose it is, how long it may take, what runs, and its events. */
export class TurnContext {
  readonly layer: Layer;
  readonly plan: Plan;
  readonly turnId: string;
  readonly timeoutMs: number;
  readonly site: CallSite;
  /** Of a turn that outlives this process. */
  readonly journal: TurnJournal | undefined;
  /** What it did that may have to be undone, with `onFailure: 'compensate'`. */
  readonly saga: Saga | undefined;
  readonly identity: Pick<Call, 'session' | 'actor' | 'tenant'>;
  /** By index: whether a node ran with its default. */
  readonly usedDefault: boolean[];
  /** By index: nodes that have settled and are being journalled. */
  readonly unjournalled: Map<number, SettledNode> = new Map();
  /** Nothing starts any more. */
  isOver = false;
  /** Its result was emitted, or its subscriber has gone. */
  isSettled = false;
  readonly #subscriber: Subscriber<TurnEvent>;
  readonly #report: (event: TraceEvent) => void;
  /** By index: the calls that have not settled. Not a Map, for the reason that `RunningCalls` gives. */
  #running: Array<CallContext | undefined> = [];

  constructor(layer: Layer, plan: Plan, subscriber: Subscriber<TurnEvent>, options: TurnOptions) {
    const { session, actor, tenant, journal, turnId = journal?.turnId } = options;
    const { runtime } = layer;
    this.layer = layer;
    this.plan = plan;
    this.identity = {
      ...(session === undefined ? {} : { session }),
      ...(actor === undefined ? {} : { actor }),
      ...(tenant === undefined ? {} : { tenant }),
    };
    this.journal = journal;
    this.turnId = turnId ?? runtime.id();
    this.timeoutMs = plan.options.timeoutMs ?? TURN_TIMEOUT_MS;
    this.usedDefault = plan.nodes.map(() => false);
    this.#subscriber = subscriber;
    this.#report = (event) => subscriber.next(event as TurnEvent);
    this.saga =
      plan.options.onFailure === 'compensate'
        ? new Saga(layer, plan, { turnId: this.turnId, ...this.identity })
        : undefined;
    // This turn's own deadline timer holds the process; the timers of its calls do not, so that those of detached ones
    // never do.
    this.site = {
      runtime: runtime.background ?? runtime,
      turnId: this.turnId,
      // A turn that has moved keeps its end.
      deadlineMs: runtime.now() + (journal?.remainingMs ?? this.timeoutMs),
      report: this.#report,
      ...(journal === undefined ? {} : { journal }),
      ...(this.saga === undefined ? {} : { undoLog: this.saga }),
    };
  }

  emit(event: TurnBody): void {
    if (this.#subscriber.closed) return;
    this.layer.trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId: this.turnId, ...event }, this.#report);
  }

  /** Emits what happens also when its subscriber has gone: then the trace alone gets it. */
  emitAlways(event: TurnBody): void {
    if (!this.#subscriber.closed) return this.emit(event);
    const { trace } = this.layer;
    if (trace.observed) trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId: this.turnId, ...event });
  }

  /** Takes the events of its calls. */
  get report(): (event: ToolEvent) => void {
    return this.#report;
  }

  /**
   * A node's call. It is this turn's until the turn takes its calls back: one that settles after that tells nobody
   * here.
   */
  call(index: number, request: Call): Observable<{ readonly outcome: CallOutcome; readonly executed: boolean }> {
    const { tool } = nodeAt(this.plan, index);
    const context = new CallContext(this.layer, this.site, request);
    this.#running[index] = context;
    return callOutcome(context, typeof tool === 'string' ? undefined : this.layer.registry.of(tool)).pipe(
      filter(() => this.#running[index] === context),
      map((outcome) => {
        this.#running[index] = undefined;
        return { outcome, executed: context.executed };
      }),
    );
  }

  /** Takes back the calls that have not settled, by index. */
  takeRunning(): ReadonlyArray<CallContext | undefined> {
    const running = this.#running;
    this.#running = [];
    return running;
  }
}
