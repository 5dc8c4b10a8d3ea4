import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import type { TraceSink } from './sink.ts';

export type { TraceSink } from './sink.ts';

/** How many events may wait, and how they are handed on. */
export interface BufferedSinkOptions {
  /** How many events may wait, 1 to 10,000,000; the oldest makes room and is counted in `dropped`. Default 10,000. */
  readonly maxEvents?: number;
  /** How many events are handed on in one go, before timers and answers get their turn. Default 100. */
  readonly batch?: number;
  /** The timers between two batches. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** A sink with a queue in front. */
export interface BufferedSink extends TraceSink {
  /** How many events were lost because there were too many, or because the sink threw. */
  readonly dropped: number;
  /** Hands on everything that waits, at once. */
  flush(): void;
}

/**
 * A sink that takes its time, moved out of the way of the calls it watches: events wait in a queue and are handed on
 * when nothing else is due. Not for `openTelemetrySink`, which looks for the caller's span while an event is emitted.
 *
 * @param sink gets every event that is not dropped, in order
 * @throws RangeError for an option out of range
 *
 * @example
 * const seen: string[] = [];
 * const buffered = bufferedSink({ next: (event) => seen.push(event.type) });
 * spillway.trace$.subscribe(buffered);
 */
export function bufferedSink(sink: TraceSink, options: BufferedSinkOptions = {}): BufferedSink {
  checkKeys('bufferedSink', options, ['maxEvents', 'batch', 'runtime']);
  const { maxEvents = 10_000, batch = 100, runtime = liveRuntime } = options;
  checkNumber('maxEvents', maxEvents, integer(1, 10_000_000));
  checkNumber('batch', batch, integer(1, 10_000_000));
  /** A ring: the place of the oldest, and how many there are. */
  const ring: Array<TraceEvent | undefined> = [];
  let oldest = 0;
  let waiting = 0;
  let dropped = 0;
  let scheduled = false;

  const handOn = (most: number): void => {
    for (let handed = 0; handed < most && waiting > 0; handed++) {
      const event = ring[oldest];
      ring[oldest] = undefined;
      oldest = (oldest + 1) % maxEvents;
      waiting--;
      try {
        if (event !== undefined) sink.next(event);
      } catch {
        dropped++;
      }
    }
  };
  const schedule = (): void => {
    if (scheduled || waiting === 0) return;
    scheduled = true;
    runtime.after(0).subscribe(() => {
      scheduled = false;
      handOn(batch);
      schedule();
    });
  };
  return {
    next: (event) => {
      if (waiting === maxEvents) {
        oldest = (oldest + 1) % maxEvents;
        waiting--;
        dropped++;
      }
      ring[(oldest + waiting) % maxEvents] = event;
      waiting++;
      schedule();
    },
    get dropped() {
      return dropped;
    },
    flush: () => handOn(Infinity),
  };
}
