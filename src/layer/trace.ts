import type { Observable, Subscriber } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { QuietSource, QuietStream } from '../operators/work/quiet-stream.ts';
import { createDiscretion, type Discretion } from '../policy/redact/values.ts';
import { liveRuntime } from '../runtime.ts';

type Writable<E> = E extends TraceEvent ? Omit<E, 'seq' | 'atMs'> & { seq: number; atMs: number } : never;
/** An event before it has its number and its time: begin it with `STAMP`, which holds their places, so that it is made once and not copied. */
export type Unstamped = Writable<TraceEvent>;
export const STAMP = { seq: 0, atMs: 0 } as const;

/** Where a layer tells what happens. */
export interface Trace {
  readonly events$: Observable<TraceEvent>;
  /** Whether anyone listens: if not, events need not be made. */
  readonly observed: boolean;
  /** Events that a subscriber lost by throwing. */
  readonly dropped: number;
  /** Inputs, outputs and messages can hold secrets, which stay with the caller. */
  readonly discretion: Discretion;
  /** Whether the ids that the layer makes need no look: nothing was named that could be in them, and they are of the live runtime. */
  readonly trustsIds: boolean;
  /**
   * Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown.
   * @param atMs now, from one who has just read the clock
   * @param innocent whether it is known that all of it may be shown
   */
  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs?: number, innocent?: boolean): void;
  close(): void;
}

/** @param greeting makes what each subscriber hears first */
export function createTrace(runtime: Runtime, discretion: Discretion = createDiscretion(), greeting?: () => Unstamped): Trace {
  return new LayerTrace(runtime, discretion, greeting);
}

/** A copy that who has the first one cannot change. Of what needs no look, only how a call's breaker stood is an object. */
const apart = (event: TraceEvent): TraceEvent =>
  event.type === 'call_started' && event.breaker !== undefined ? { ...event, breaker: { ...event.breaker } } : { ...event };

/** A class: functions of its own for each layer would not be compiled into those that call them. */
class LayerTrace implements Trace {
  readonly events$: Observable<TraceEvent>;
  readonly discretion: Discretion;
  readonly trustsIds: boolean;
  readonly #runtime: Runtime;
  readonly #source = new QuietSource<TraceEvent>();
  #dropped = 0;
  #seq = 0;
  #lastAtMs = 0;
  readonly #untold: Array<{ readonly event: TraceEvent; readonly innocent: boolean }> = [];
  /** The place of the first one that is not being told yet. */
  #next = 0;
  #telling = false;

  constructor(runtime: Runtime, discretion: Discretion, greeting: (() => Unstamped) | undefined) {
    this.#runtime = runtime;
    this.discretion = discretion;
    this.trustsIds = discretion.trustsIds && runtime === liveRuntime;
    const listen = (subscriber: Subscriber<TraceEvent>): void => {
      this.#source.add(subscriber);
      if (greeting !== undefined && !subscriber.closed) subscriber.next(this.#greet(greeting()));
    };
    this.events$ = new QuietStream<TraceEvent>(listen, () => this.#dropped++);
  }

  get observed(): boolean {
    return this.#source.observed;
  }

  get dropped(): number {
    return this.#dropped;
  }

  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs: number = this.#runtime.now(), innocent = false): void {
    event.seq = ++this.#seq;
    // Times do not go back, whoever read the clock first.
    if (atMs > this.#lastAtMs) this.#lastAtMs = atMs;
    event.atMs = this.#lastAtMs;
    // The union of the stamped events, member by member.
    const stamped = event as TraceEvent;
    if (!this.#source.observed) return own?.(stamped);
    if (own !== undefined || this.#telling || this.#untold.length > 0) {
      // Whoever has it first may do something to it: what needs no look is set apart before that.
      this.#untold.push({ event: innocent && own !== undefined ? apart(stamped) : stamped, innocent });
      own?.(stamped);
      return this.#tell();
    }
    // Nothing is before it and nobody hears it first: it makes no queue, unless a subscriber causes one.
    this.#telling = true;
    this.#source.next(innocent ? stamped : this.discretion.show(stamped));
    this.#telling = false;
    if (this.#untold.length > 0) this.#tell();
  }

  /** What a subscriber is told before anything else. It takes no number of its own: whoever listens already hears nothing of it. */
  #greet(greeting: Unstamped): TraceEvent {
    this.#lastAtMs = Math.max(this.#lastAtMs, this.#runtime.now());
    greeting.seq = (this.#untold[this.#next]?.event.seq ?? this.#seq + 1) - 1;
    greeting.atMs = this.#lastAtMs;
    return this.discretion.show(greeting);
  }

  close(): void {
    this.#source.complete();
  }

  #tell(): void {
    if (this.#telling) return;
    this.#telling = true;
    // Grows while it is walked: what a subscriber causes by what it hears comes after it, for all of them.
    for (const { event, innocent } of this.#untold) {
      this.#next++;
      this.#source.next(innocent ? event : this.discretion.show(event));
    }
    this.#untold.length = 0;
    this.#next = 0;
    this.#telling = false;
  }
}
