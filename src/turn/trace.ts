import { Subject, type Observable } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { QuietStream } from '../operators/quiet-stream.ts';
import { createRedactor } from '../policy/redact.ts';

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
  /**
   * Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown.
   * @param atMs now, from one who has just read the clock
   */
  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs?: number): void;
  close(): void;
}

/** @param discreet what a trace may show of an event: inputs, outputs and messages can hold secrets, which stay with the caller */
export function createTrace(runtime: Runtime, discreet: (event: TraceEvent) => TraceEvent = createRedactor()): Trace {
  const events$ = new Subject<TraceEvent>();
  let dropped = 0;
  const stream$ = new QuietStream<TraceEvent>((subscriber) => events$.subscribe(subscriber), () => dropped++);
  let seq = 0;
  let lastAtMs = 0;
  const untold: TraceEvent[] = [];
  let telling = false;
  const tell = (first?: TraceEvent): void => {
    if (telling) return;
    telling = true;
    if (first !== undefined) events$.next(discreet(first));
    if (untold.length > 0) {
      // Grows while it is walked: what a subscriber causes by what it hears comes after it, for all of them.
      for (const event of untold) events$.next(discreet(event));
      untold.length = 0;
    }
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
    publish: (event, own, atMs = runtime.now()) => {
      event.seq = ++seq;
      // Times do not go back, whoever read the clock first.
      event.atMs = lastAtMs = Math.max(lastAtMs, atMs);
      // The union of the stamped events, member by member.
      const stamped = event as TraceEvent;
      // Nothing is before it and nobody hears it first: it is told at once, and makes no queue.
      if (own === undefined && !telling && untold.length === 0) {
        if (events$.observed) tell(stamped);
        return;
      }
      if (events$.observed) untold.push(stamped);
      own?.(stamped);
      if (untold.length > 0) tell();
    },
    close: () => events$.complete(),
  };
}
