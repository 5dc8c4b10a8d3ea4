import type { Observable } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { QuietSource, QuietStream } from '../operators/work/quiet-stream.ts';
import { redactorOf, type Redactor } from '../policy/redact/values.ts';
import { liveRuntime } from '../runtime.ts';

type Writable<E> = E extends TraceEvent ? Omit<E, 'seq' | 'atMs'> & { seq: number; atMs: number } : never;
/** An event before it has its number and its time: begin it with `STAMP`, which holds their places, so that it is made once and not copied. */
export type Unstamped = Writable<TraceEvent>;
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
  /** Whether the ids that the layer makes need no look: nothing was named that could be in them, and they are of the live runtime. */
  readonly trustsIds: boolean;
  /**
   * Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown.
   * @param atMs now, from one who has just read the clock
   * @param safe whether it is known that all of it may be shown
   */
  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs?: number, safe?: boolean): void;
  close(): void;
}

export function createTrace(runtime: Runtime, redactor: Redactor = redactorOf()): Trace {
  return new LayerTrace(runtime, redactor);
}

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
  #delivering = false;

  constructor(runtime: Runtime, redactor: Redactor) {
    this.#runtime = runtime;
    this.redactor = redactor;
    this.trustsIds = redactor.trustsIds && runtime === liveRuntime;
    this.events$ = new QuietStream<TraceEvent>((subscriber) => this.#source.add(subscriber), () => this.#dropped++);
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
      this.#pending.push({ event: safe && own !== undefined ? { ...stamped } : stamped, safe });
      own?.(stamped);
      return this.#deliver();
    }
    // No event waits before it and no caller gets it first, so it needs no queue unless a subscriber causes one.
    this.#delivering = true;
    this.#source.next(safe ? stamped : this.redactor.show(stamped));
    this.#delivering = false;
    if (this.#pending.length > 0) this.#deliver();
  }

  close(): void {
    this.#source.complete();
  }

  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    // Grows while it is walked: an event that a subscriber causes comes after this one, for all subscribers.
    for (const { event, safe } of this.#pending) this.#source.next(safe ? event : this.redactor.show(event));
    this.#pending.length = 0;
    this.#delivering = false;
  }
}
