/** The latest durations of a tool, and a quantile of them: what a hedge waits for. */
export interface LatencyWindow {
  record(durationMs: number): void;
  /** The duration that `share` of the latest did not exceed; `undefined` while fewer than `minimum` are known. */
  quantile(share: number, minimum: number): number | undefined;
}

/** @param size how many of the latest durations are kept */
export function latencyWindow(size: number): LatencyWindow {
  const durations: number[] = [];
  let next = 0;
  return {
    record: (durationMs) => {
      durations[next] = durationMs;
      next = (next + 1) % size;
    },
    quantile: (share, minimum) => {
      if (durations.length < minimum) return undefined;
      const sorted = durations.toSorted((a, b) => a - b);
      return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
    },
  };
}
