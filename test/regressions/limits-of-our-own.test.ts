// Was: `timeout_ms` of a `ToolTimeout` was read from the details of any error of kind timeout.
// Now: it is the layer's own limit, or not told.
import { describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, tool, type ToolPolicy, type TraceEvent } from 'spillway';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { virtualRuntime } from 'spillway/testing';

const traced = async (policy: ToolPolicy, execute: () => unknown): Promise<TraceEvent[]> => {
  const runtime = virtualRuntime();
  const slow = tool({ name: 'slow', policy: { effects: 'mutating', ...policy }, execute });
  const spillway = createSpillway({ tools: [slow], runtime });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => events.push(event));
  void spillway.execute({ toolName: 'slow' });
  await runtime.advance(60_000);
  return events;
};

const limits = (events: readonly TraceEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'attempt_failed' && 'timeoutMs' in event ? [event.timeoutMs] : []));
const timeouts = (events: readonly TraceEvent[]): unknown[] =>
  events.map(toTurnTrace).flatMap((entry) => (entry?.event_type === 'ToolTimeout' ? [entry.timeout_ms] : []));

describe('R-7.2 ToolTimeout entries carry the limit that passed', () => {
  it.each<readonly [string, ToolPolicy, number]>([
    ['the hard one', { timeoutMs: 700 }, 700],
    ['the idle one', { idleTimeoutMs: 300 }, 300],
  ])('R-7.2 %s', async (_what, policy, limitMs) => {
    const events = await traced(policy, () => new Promise(() => undefined));
    expect(limits(events)).toEqual([limitMs]);
    expect(timeouts(events)).toEqual([limitMs]);
  });

  it.each<readonly [string, unknown]>([
    ['a number', { timeoutMs: 5 }],
    ['a text', { timeoutMs: 'a secret' }],
    ['an object', { timeoutMs: { token: 'a secret' } }],
  ])('R-7.2 a tool’s own timeout is none of ours, whatever its details hold: %s', async (_what, details) => {
    const events = await traced({}, () => {
      throw new ToolExecutionError('timeout', 'my own', { details });
    });
    expect(events.some(({ type }) => type === 'attempt_failed')).toBe(true);
    expect(limits(events)).toEqual([]);
    expect(timeouts(events)).toEqual([]);
    expect(JSON.stringify(events)).not.toContain('a secret');
  });
});
