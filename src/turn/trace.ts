import type { Observable } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { QuietSource, QuietStream } from '../operators/quiet-stream.ts';
import { createDiscretion, type Discretion } from '../policy/redact.ts';

type Writable<E> = E extends TraceEvent ? Omit<E, 'seq' | 'atMs'> & { seq: number; atMs: number } : never;
/** An event before it has its number and its time: begin it with `STAMP`, which holds their places, so that it is made once and not copied. */
export type Unstamped = Writable<TraceEvent>;
export const STAMP = { seq: 0, atMs: 0 } as const;

/** What of an event may be shown: the event itself, where all of it may. */
export type Shown = (event: TraceEvent) => TraceEvent;

/** Where a layer tells what happens. */
export interface Trace {
  readonly events$: Observable<TraceEvent>;
  /** Whether anyone listens: if not, events need not be made. */
  readonly observed: boolean;
  /** Events that a subscriber lost by throwing. */
  readonly dropped: number;
  /** Inputs, outputs and messages can hold secrets, which stay with the caller. */
  readonly discretion: Discretion;
  /**
   * Numbers and times an event, gives all of it to `own`, and publishes what of it may be shown.
   * @param atMs now, from one who has just read the clock
   * @param shown for an event that is known to need no look, or less of one
   */
  publish(event: Unstamped, own?: (event: TraceEvent) => void, atMs?: number, shown?: Shown): void;
  close(): void;
}

export function createTrace(runtime: Runtime, discretion: Discretion = createDiscretion()): Trace {
  const events$ = new QuietSource<TraceEvent>();
  let dropped = 0;
  const stream$ = new QuietStream<TraceEvent>((subscriber) => events$.add(subscriber), () => dropped++);
  let seq = 0;
  let lastAtMs = 0;
  const untold: Array<{ readonly event: TraceEvent; readonly shown: Shown }> = [];
  let telling = false;
  const tell = (): void => {
    if (telling) return;
    telling = true;
    // Grows while it is walked: what a subscriber causes by what it hears comes after it, for all of them.
    for (const { event, shown } of untold) events$.next(shown(event));
    untold.length = 0;
    telling = false;
  };
  return {
    events$: stream$,
    discretion,
    get observed() {
      return events$.observed;
    },
    get dropped() {
      return dropped;
    },
    publish: (event, own, atMs = runtime.now(), shown = discretion.show) => {
      event.seq = ++seq;
      // Times do not go back, whoever read the clock first.
      if (atMs > lastAtMs) lastAtMs = atMs;
      event.atMs = lastAtMs;
      // The union of the stamped events, member by member.
      const stamped = event as TraceEvent;
      if (!events$.observed) return own?.(stamped);
      if (own !== undefined || telling || untold.length > 0) {
        untold.push({ event: stamped, shown });
        own?.(stamped);
        return tell();
      }
      // Nothing is before it and nobody hears it first: it makes no queue, unless a subscriber causes one.
      telling = true;
      events$.next(shown(stamped));
      telling = false;
      if (untold.length > 0) tell();
    },
    close: () => events$.complete(),
  };
}
