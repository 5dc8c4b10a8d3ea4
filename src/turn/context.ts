import { filter, map, type Observable, type Subscriber } from 'rxjs';
import type { ToolEvent, TraceEvent, TurnEvent } from '../contract/event.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { Plan, TurnResult } from '../contract/turn.ts';
import { expiry } from '../operators/timing/expiry.ts';
import { TURN_TIMEOUT_MS } from '../policy/profile.ts';
import type { CallContext, CallSite } from '../call/context.ts';
import type { CallingLayer } from '../call/pipe.ts';
import type { SettledNode } from './harvest.ts';
import { nodeAt } from './plan-node.ts';
import type { Call } from '../call/request.ts';
import type { CallOutcome } from '../call/result.ts';
import type { TurnBody } from '../layer/trace.ts';
import type { TurnOptions } from './run.ts';
import { isCovered } from './result.ts';
import { tracePartOf, type TracePart } from '../policy/trace-part.ts';
import { Saga } from '../saga/saga.ts';
import { withoutKeys } from '../saga/shown.ts';
import { given } from '../policy/check.ts';

/** What the nodes of one turn share: whose it is, how long it may take, what runs, and its events. */
export class TurnContext {
  readonly layer: CallingLayer;
  readonly plan: Plan;
  readonly turnId: string;
  readonly timeoutMs: number;
  readonly site: CallSite;
  /** Of a turn that outlives this process. */
  readonly journal: TurnJournal | undefined;
  /** What it did that may have to be undone, with `onFailure: 'compensate'`. */
  readonly saga: Saga | undefined;
  readonly identity: Pick<Call, 'session' | 'actor' | 'tenant'>;
  /** The trace that it is part of, with all its calls. */
  readonly trace: TracePart;
  /** By index: whether a node ran with its default. */
  readonly usedDefault: boolean[];
  /** By index: nodes that have settled and are being journalled. */
  readonly unjournalled: Map<number, SettledNode> = new Map();
  /** Nothing starts any more. */
  isOver = false;
  /** Its result was emitted, or its subscriber has gone. */
  isSettled = false;
  /** It goes on in another process. */
  isLeft = false;
  readonly #subscriber: Subscriber<TurnEvent>;
  readonly #report: (event: TraceEvent) => void;
  /** By index: the calls that have not settled. Not a Map, for the reason that `RunningCalls` gives. */
  #running: Array<CallContext | undefined> = [];

  constructor(layer: CallingLayer, plan: Plan, subscriber: Subscriber<TurnEvent>, options: TurnOptions) {
    const { session, actor, tenant, journal, turnId = journal?.turnId } = options;
    const { runtime } = layer;
    this.layer = layer;
    this.plan = plan;
    this.identity = given({ session, actor, tenant });
    this.trace = tracePartOf(options.traceContext);
    this.journal = journal;
    this.turnId = turnId ?? runtime.id();
    this.timeoutMs = plan.options.timeoutMs ?? TURN_TIMEOUT_MS;
    this.usedDefault = plan.nodes.map(() => false);
    this.#subscriber = subscriber;
    this.#report =
      journal === undefined
        ? (event) => subscriber.next(event as TurnEvent)
        : (event) => {
            journal.tell(layer.trace.redactor.show(event));
            subscriber.next(event as TurnEvent);
          };
    this.saga = plan.options.onFailure === 'compensate' ? this.#begunSaga() : undefined;
    const deadlineMs = runtime.now() + (journal?.remainingMs ?? this.timeoutMs);
    // This turn's own deadline timer holds the process; the timers of its calls do not, so that those of detached ones
    // never do.
    this.site = {
      runtime: runtime.background ?? runtime,
      turnId: this.turnId,
      // A turn that has moved keeps its end.
      deadlineMs,
      // Such an end is a moment of the wall clock; others move while a person is waited for.
      time: journal === undefined ? layer.gates?.turnTime(deadlineMs) : undefined,
      report: this.#report,
      ...given({ journal, undoLog: this.saga }),
    };
  }

  #begunSaga(): Saga {
    const { layer, plan, journal, turnId, identity } = this;
    return new Saga(layer, plan, { turnId, ...identity }, journal);
  }

  /** Emits when its time is over. */
  get over$(): Observable<0> {
    const { time, deadlineMs } = this.site;
    const { runtime } = this.layer;
    const leftMs = Math.max(0, deadlineMs - runtime.now());
    return time?.due$ ?? expiry(leftMs, runtime);
  }

  emit(event: TurnBody): void {
    if (this.#subscriber.closed) return;
    const { trace } = this.layer;
    const own = { seq: 0, atMs: 0, source: 'turn', turnId: this.turnId } as const;
    const entries = this.saga?.record.journal.entries;
    const shown = entries === undefined ? event : withoutKeys(event, entries);
    if (shown === event) return trace.publish({ ...own, ...event }, this.#report);
    // Keys are for the caller alone.
    trace.publish({ ...own, ...shown }, ({ seq, atMs }) => this.#report({ ...own, ...event, seq, atMs }));
  }

  /** Whether it lacks something that was canceled, by whomever: the layer's end, a tool, or an earlier call. */
  lacksCanceled({ status, nodes }: Pick<TurnResult, 'status' | 'nodes'>): boolean {
    if (status === 'completed') return false;
    if (this.layer.closed) return true;
    return nodes.some(
      ({ state }, place) =>
        state === 'canceled' &&
        this.plan.nodes[place]?.optional !== true &&
        !isCovered(this.plan, this.usedDefault, place),
    );
  }

  /** Emits what happens also when its subscriber has gone: then the trace alone gets it. */
  emitAlways(event: TurnBody): void {
    if (this.#subscriber.closed) this.tellTrace(event);
    else this.emit(event);
  }

  /** Tells the trace alone. */
  tellTrace(event: TurnBody): void {
    const { trace } = this.layer;
    if (!trace.observed) return;
    const shown = withoutKeys(event, this.saga?.record.journal.entries ?? []);
    trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId: this.turnId, ...shown });
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
    const guarded = typeof tool === 'string' ? undefined : this.layer.registry.of(tool);
    const { context, outcome$ } = this.layer.makeCall(this.site, request, guarded);
    this.#running[index] = context;
    return outcome$.pipe(
      filter(() => this.#running[index] === context),
      map((outcome) => {
        this.#running[index] = undefined;
        return { outcome, executed: context.executed };
      }),
    );
  }

  /** Whether any of its calls is so. */
  someRuns(so: (call: CallContext) => boolean): boolean {
    return this.#running.some((call) => call !== undefined && so(call));
  }

  /** Takes back the calls that have not settled, by index. */
  takeRunning(): ReadonlyArray<CallContext | undefined> {
    const running = this.#running;
    this.#running = [];
    return running;
  }
}
