import type { Classification } from '../contract/error-kind.ts';
import type { TraceEvent } from '../contract/event.ts';

/** What is counted of one tool. */
export interface ToolMetrics {
  /** Failed attempts, and calls that were rejected before an attempt. */
  readonly error_count: number;
  /** Those of them whose error was transient. */
  readonly transient_error_count: number;
  /** Those of them whose error was permanent. */
  readonly permanent_error_count: number;
  /** How often a retry was decided on. */
  readonly retry_count: number;
  /** Share of the retries that have ended and succeeded, 0 to 1; 0 before any has ended. */
  readonly retry_success_rate: number;
  /** How often the tool's breaker opened. */
  readonly circuit_breaker_opens: number;
  /** Failures of the kind `timeout`. */
  readonly timeout_count: number;
}

type Counters = { -readonly [K in Exclude<keyof ToolMetrics, 'retry_success_rate'>]: number } & {
  retries_succeeded: number;
  retries_failed: number;
};

const NOTHING: Readonly<Counters> = {
  error_count: 0,
  transient_error_count: 0,
  permanent_error_count: 0,
  retry_count: 0,
  circuit_breaker_opens: 0,
  timeout_count: 0,
  retries_succeeded: 0,
  retries_failed: 0,
};

/** Tool names come from models and servers: beyond these, all count as one. */
const TOOLS_MAX = 1000;
const OTHER = '__other__';

const classCount = (classification: Classification): Partial<Counters> =>
  classification === 'transient' ? { transient_error_count: 1 } : { permanent_error_count: 1 };

/** Metrics per tool: a subscriber of a trace, and what it has counted so far. */
export interface ToolMetricsSink {
  /** Counts one event. */
  next(event: TraceEvent): void;
  /** The counts of one tool so far; all 0 for one that nothing was seen of. */
  get(toolName: string): ToolMetrics;
  /**
   * The counts of all tools that something was counted of, by name; beyond 1,000 tools the others are summed as
   * `__other__`.
   */
  all(): Readonly<Record<string, ToolMetrics>>;
}

/**
 * Counts, for each tool, the errors, retries, timeouts and breaker openings of a trace.
 *
 * @example
 * const metrics = toolMetrics();
 * spillway.trace$.subscribe(metrics);
 * metrics.get('flight_search').timeout_count;
 */
export function toolMetrics(): ToolMetricsSink {
  const tools = new Map<string, Counters>();
  /** Calls whose next or present attempt is a retry. */
  const retrying = new Set<string>();

  const counted = (event: TraceEvent): Partial<Counters> => {
    if (event.source === 'layer')
      return event.type === 'breaker_changed' && event.to === 'open' ? { circuit_breaker_opens: 1 } : {};
    if (event.source !== 'call') return {};
    switch (event.type) {
      case 'attempt_failed':
      case 'rejected':
        return {
          error_count: 1,
          ...classCount(event.classification),
          ...(event.error.kind === 'timeout' ? { timeout_count: 1 } : {}),
          ...(retrying.delete(event.callId) ? { retries_failed: 1 } : {}),
        };
      case 'decision':
        if (event.strategy !== 'retry') return {};
        retrying.add(event.callId);
        return { retry_count: 1 };
      case 'attempt_succeeded':
        return retrying.delete(event.callId) ? { retries_succeeded: 1 } : {};
      case 'attempt_canceled':
      case 'abandoned':
      case 'settled':
        retrying.delete(event.callId);
        return {};
      default:
        return {};
    }
  };
  const shown = ({ retries_succeeded, retries_failed, ...counters }: Counters): ToolMetrics => {
    const ended = retries_succeeded + retries_failed;
    return { ...counters, retry_success_rate: ended === 0 ? 0 : retries_succeeded / ended };
  };
  return {
    next: (event) => {
      const entries = Object.entries(counted(event)) as ReadonlyArray<readonly [keyof Counters, number]>;
      if (entries.length === 0 || !('toolName' in event)) return;
      const name = tools.has(event.toolName) || tools.size < TOOLS_MAX ? event.toolName : OTHER;
      const counters = { ...(tools.get(name) ?? NOTHING) };
      for (const [key, value] of entries) counters[key] += value;
      tools.set(name, counters);
    },
    get: (toolName) => shown(tools.get(toolName) ?? NOTHING),
    all: () => Object.fromEntries([...tools].map(([name, counters]) => [name, shown(counters)])),
  };
}
