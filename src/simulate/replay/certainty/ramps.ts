import type { TraceEvent } from '../../../contract/event.ts';
import type { Span, Trouble } from './spans.ts';

/** When a breaker closed again, and let through a growing share for a while. */
const rampsIn = (events: readonly TraceEvent[], breaker: string, rampMs: number): Span[] =>
  events.flatMap((event) =>
    event.type === 'breaker_changed' && event.to === 'closed' && `${event.toolName}\n${event.scope}` === breaker
      ? [{ fromMs: event.atMs, toMs: event.atMs + rampMs }]
      : [],
  );

/** Instants that only the last digit of a sum tells apart are one. */
const instant = (atMs: number): number => Math.round(atMs * 1_000);

/** From when on it recovered, and who asked for admission meanwhile, and when. */
const asked = (events: readonly TraceEvent[], tools: ReadonlySet<string>, { fromMs, toMs }: Span): string => {
  const asks = events
    .filter((event) => event.source === 'call')
    .filter(({ type }) => type === 'attempt_started' || type === 'rejected')
    .filter(({ toolName, atMs }) => tools.has(toolName) && atMs >= fromMs && atMs < toMs);
  return JSON.stringify([instant(fromMs), ...asks.map(({ callId, atMs }) => [callId, instant(atMs)])]);
};

/** A breaker, by its key and scope, and the tools behind it. */
interface Ramping {
  readonly breaker: string;
  readonly tools: ReadonlySet<string>;
  /** How long it let through a growing share when it was recorded, and under the other policy. */
  readonly before: number;
  readonly after: number;
}

/**
 * Whom a recovering breaker lets through is chance. Where it recovered in the same way and the same calls asked, they
 * are those that it let through; else nobody knows whom.
 */
export const rampTroubles = (
  recorded: readonly TraceEvent[],
  run: readonly TraceEvent[],
  { breaker, tools, before, after }: Ramping,
): Trouble[] => {
  if (after === 0) return [];
  const known = new Set(
    before === after ? rampsIn(recorded, breaker, before).map((ramp) => asked(recorded, tools, ramp)) : [],
  );
  return rampsIn(run, breaker, after)
    .filter((ramp) => !known.has(asked(run, tools, ramp)))
    .map((ramp) => ({ ...ramp, begins: true }));
};
