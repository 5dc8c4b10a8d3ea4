interface Hearers {
  readonly all: Set<() => void>;
  readonly tell: () => void;
}

const hearersOf = new WeakMap<AbortSignal, Hearers>();

const forget = (signal: AbortSignal, tell: () => void): void => {
  hearersOf.delete(signal);
  signal.removeEventListener('abort', tell);
};

const listening = (signal: AbortSignal): Hearers => {
  const all = new Set<() => void>();
  const tell = (): void => {
    forget(signal, tell);
    // One that is told may take another away: that one is not told any more.
    for (const hear of all) {
      all.delete(hear);
      hear();
    }
  };
  signal.addEventListener('abort', tell);
  const hearers = { all, tell };
  hearersOf.set(signal, hearers);
  return hearers;
};

/**
 * Calls back once when a signal is aborted, which must not have happened yet. However many hear of one signal, it has
 * one listener: a signal searches its list for each that is removed, and thousands of calls that share one would each
 * search thousands.
 *
 * @returns takes the callback away again, and the listener with the last one
 */
export const onAbort = (signal: AbortSignal, hear: () => void): (() => void) => {
  const { all, tell } = hearersOf.get(signal) ?? listening(signal);
  all.add(hear);
  return () => {
    if (!all.delete(hear) || all.size > 0 || hearersOf.get(signal)?.tell !== tell) return;
    forget(signal, tell);
  };
};
