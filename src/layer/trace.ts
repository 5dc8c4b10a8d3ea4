import { given } from '../policy/check.ts';
import type { Observable, Subscriber } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { QuietSource, QuietStream } from '../operators/work/quiet-stream.ts';
import { redactorOf, type Redactor } from '../policy/redact/values.ts';
import { liveRuntime } from '../runtime.ts';

type Writable<E> = E extends TraceEvent ? Omit<E, 'seq' | 'atMs'> & { seq: number; atMs: number } : never;
/**
 * An event before it has its number and its time: begin it with `STAMP`, which holds their places, so that it is made
 * once and not copied.
 */
export type Unstamped = Writable<TraceEvent>;

type TurnTold = Extract<Unstamped, { source: 'turn' }>;
type WithoutHeader<E> = E extends TurnTold ? Omit<E, 'source' | 'turnId' | 'seq' | 'atMs'> : never;
/** An event of a turn without the fields that say whose it is. */
export type TurnBody = WithoutHeader<TurnTold>;
export const STAMP = { seq: 0, atMs: 0 } as const;

/** Where a layer publishes its events. */
export interface Trace {
  readonly events$: Observable<TraceEvent>;
  /** Whether anyone listens: if not, events need not be made. */
  readonly observed: boolean;
  /** Events that a subscriber lost by throwing. */
  readonly dropped: number;
  /** Inputs, outputs and messages can hold secrets, which stay with the caller. */
  readonly redactor: Redactor;
  /**
   * Whether the ids that the layer makes need no look: nothing was named that could be in them, and they are of the
   * live runtime.
   */
  readonly trustsIds: boolean;
  /**
   * Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown.
   * @param atMs now, from one who has just read the clock
   * @param safe whether it is known that all of it may be shown
   */
  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs?: number, safe?: boolean): void;
  close(): void;
}

/** @param greeting makes the event that each subscriber gets first */
export function createTrace(runtime: Runtime, redactor: Redactor = redactorOf(), greeting?: () => Unstamped): Trace {
  return new LayerTrace(runtime, redactor, greeting);
}

/**
 * A copy that who has the first one cannot change. Of what needs no look, only how a call's breaker stood, its terms
 * and what was used are objects.
 */
const apart = (event: TraceEvent): TraceEvent => {
  if (event.type === 'attempt_succeeded' && event.usage !== undefined) return { ...event, usage: { ...event.usage } };
  if (event.type !== 'call_started') return { ...event };
  const { breaker, terms } = event;
  return {
    ...event,
    ...given({ breaker: breaker && { ...breaker }, terms: terms && { ...terms } }),
  };
};

/** A class: functions of its own for each layer would not be compiled into those that call them. */
class LayerTrace implements Trace {
  readonly events$: Observable<TraceEvent>;
  readonly redactor: Redactor;
  readonly trustsIds: boolean;
  readonly #runtime: Runtime;
  readonly #source = new QuietSource<TraceEvent>();
  #dropped = 0;
  #seq = 0;
  #lastAtMs = 0;
  readonly #pending: Array<{ readonly event: TraceEvent; readonly safe: boolean }> = [];
  /** The place of the first pending event that is not being delivered yet. */
  #next = 0;
  #delivering = false;

  constructor(runtime: Runtime, redactor: Redactor, greeting: (() => Unstamped) | undefined) {
    this.#runtime = runtime;
    this.redactor = redactor;
    this.trustsIds = redactor.trustsIds && runtime === liveRuntime;
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

  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs: number = this.#runtime.now(), safe = false): void {
    event.seq = ++this.#seq;
    // Times do not go back, whoever read the clock first.
    if (atMs > this.#lastAtMs) this.#lastAtMs = atMs;
    event.atMs = this.#lastAtMs;
    // The union of the stamped events, member by member.
    const stamped = event as TraceEvent;
    if (!this.#source.observed) return own?.(stamped);
    if (own !== undefined || this.#delivering || this.#pending.length > 0) {
      // The caller gets the event first and may change it, so an event that skips the redactor is copied before that.
      this.#pending.push({ event: safe && own !== undefined ? apart(stamped) : stamped, safe });
      own?.(stamped);
      return this.#deliver();
    }
    // No event waits before it and no caller gets it first, so it needs no queue unless a subscriber causes one.
    this.#delivering = true;
    this.#source.next(safe ? stamped : this.redactor.show(stamped));
    this.#delivering = false;
    if (this.#pending.length > 0) this.#deliver();
  }

  /**
   * What a subscriber is told before anything else. It takes no number of its own: whoever listens already hears
   * nothing of it.
   */
  #greet(greeting: Unstamped): TraceEvent {
    this.#lastAtMs = Math.max(this.#lastAtMs, this.#runtime.now());
    greeting.seq = (this.#pending[this.#next]?.event.seq ?? this.#seq + 1) - 1;
    greeting.atMs = this.#lastAtMs;
    return this.redactor.show(greeting);
  }

  close(): void {
    this.#source.complete();
  }

  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    // Grows while it is walked: an event that a subscriber causes comes after this one, for all subscribers.
    for (const { event, safe } of this.#pending) {
      this.#next++;
      this.#source.next(safe ? event : this.redactor.show(event));
    }
    this.#pending.length = 0;
    this.#next = 0;
    this.#delivering = false;
  }
}
