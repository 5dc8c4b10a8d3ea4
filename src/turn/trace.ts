import { Observable, Subject, type Observer, type Operator, type Subscriber, type Subscription } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { TurnResult } from '../contract/turn.ts';

type WithoutStamp<E> = E extends TraceEvent ? Omit<E, 'seq' | 'atMs'> : never;
/** An event before it has its number and its time. */
export type Unstamped = WithoutStamp<TraceEvent>;

const withoutOutput = ({ output: _, ...result }: ToolResultEnvelope): ToolResultEnvelope => result;

const withoutOutputs = (result: TurnResult): TurnResult => ({
  ...result,
  values: {},
  nodes: result.nodes.map((node) => (node.result === undefined ? node : { ...node, result: withoutOutput(node.result) })),
});

/** What a trace may show: inputs and outputs can hold secrets, so they stay with the caller. */
const discreet = (event: TraceEvent): TraceEvent => {
  if (event.source === 'call' && event.type === 'settled') return { ...event, result: withoutOutput(event.result) };
  if (event.source === 'turn' && event.type === 'settled') return { ...event, result: withoutOutputs(event.result) };
  return event;
};

/**
 * The stream of a trace, and what is piped from it. A subscriber that throws loses that event and nothing else happens: RxJS would throw it
 * again on a timer, and so end the process that the trace only watches.
 */
class TraceStream<T> extends Observable<T> {
  readonly #drop: () => void;

  constructor(subscribe: (subscriber: Subscriber<T>) => Subscription, drop: () => void) {
    super(subscribe);
    this.#drop = drop;
  }

  // What RxJS 7 applies every operator with; there is no other place to follow a pipe.
  // oxlint-disable-next-line typescript/no-deprecated
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    // oxlint-disable-next-line typescript/no-deprecated
    const lifted = super.lift(operator);
    return new TraceStream<R>((subscriber) => lifted.subscribe(subscriber), this.#drop);
  }

  override subscribe(observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null, error?: ((error: unknown) => void) | null, complete?: (() => void) | null): Subscription {
    // RxJS's own subscribers, of a pipe, handle what their consumers throw.
    if (typeof observerOrNext === 'object' && observerOrNext !== null && 'isStopped' in observerOrNext) return super.subscribe(observerOrNext);
    const observer = typeof observerOrNext === 'object' && observerOrNext !== null ? observerOrNext : { next: observerOrNext, error, complete };
    const guarded = (tell: () => void): void => {
      try {
        tell();
      } catch {
        this.#drop();
      }
    };
    return super.subscribe({
      next: (event) => guarded(() => observer.next?.(event)),
      error: (thrown: unknown) =>
        guarded(() => {
          if (typeof observer.error !== 'function') throw thrown;
          observer.error(thrown);
        }),
      complete: () => guarded(() => observer.complete?.()),
    });
  }
}

/** Where a layer tells what happens. */
export interface Trace {
  readonly events$: Observable<TraceEvent>;
  /** Whether anyone listens: if not, events need not be made. */
  readonly observed: boolean;
  /** Events that a subscriber lost by throwing. */
  readonly dropped: number;
  /** Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown. */
  publish(event: Unstamped, own?: (event: TraceEvent) => void): void;
  close(): void;
}

export function createTrace(runtime: Runtime): Trace {
  const events$ = new Subject<TraceEvent>();
  let dropped = 0;
  const stream$ = new TraceStream<TraceEvent>((subscriber) => events$.subscribe(subscriber), () => dropped++);
  let seq = 0;
  const untold: TraceEvent[] = [];
  let telling = false;
  const tell = (): void => {
    if (telling) return;
    telling = true;
    // Grows while it is walked: what a subscriber causes by what it hears comes after it, for all of them.
    for (const event of untold) events$.next(discreet(event));
    untold.length = 0;
    telling = false;
  };
  return {
    events$: stream$,
    get observed() {
      return events$.observed;
    },
    get dropped() {
      return dropped;
    },
    publish: (event, own) => {
      // The union of the stamped events, member by member, which the compiler cannot see through a spread.
      const stamped = { seq: ++seq, atMs: runtime.now(), ...event } as TraceEvent;
      if (events$.observed) untold.push(stamped);
      own?.(stamped);
      if (untold.length > 0) tell();
    },
    close: () => events$.complete(),
  };
}
