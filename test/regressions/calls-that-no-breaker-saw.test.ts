// Was: a call that was refused before its breaker was looked up said `breakerState: 'disabled'`, though nobody had
// disabled it. Now: it says no state.
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type FailureNotification, type ToolCallRequest, type TraceEvent } from 'spillway';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { z } from 'zod';

const tools = [
  tool({
    name: 'echo',
    input: z.object({ text: z.string() }),
    policy: { effects: 'read' },
    execute: ({ text }) => text,
  }),
];

describe('R-2.8 a result names the state of a breaker that saw the call', () => {
  it.each<readonly [string, ToolCallRequest, boolean, string]>([
    ['an unknown tool', { toolName: 'nope' }, false, 'unknown_tool'],
    ['input that does not fit', { toolName: 'echo', input: { text: 1 } }, false, 'invalid_parameters'],
    ['a call canceled beforehand', { toolName: 'echo', input: { text: 'x' } }, true, 'canceled'],
    ['a malformed request', { toolName: '' }, false, 'invalid_parameters'],
  ])(
    'R-2.8 of %s no state is told: in the result, the trace, the notification',
    async (_what, request, aborted, code) => {
      const spillway = createSpillway({ tools });
      const events: TraceEvent[] = [];
      const failures: FailureNotification[] = [];
      spillway.trace$.subscribe((event) => events.push(event));
      spillway.failures$.subscribe((failure) => failures.push(failure));
      const result = await spillway.execute(request, aborted ? { signal: AbortSignal.abort() } : {});
      expect(result.error).toMatchObject({ code });
      expect(result.error).not.toHaveProperty('breakerState');
      for (const event of events) expect(event).not.toHaveProperty('breakerState');
      for (const entry of events.map(toTurnTrace)) expect(entry ?? {}).not.toHaveProperty('circuit_breaker_state');
      expect(failures).toHaveLength(1);
      expect(failures[0]?.breakerState).toBeUndefined();
    },
  );

  it('R-2.8 a call that its breaker rejected, or let through, says how that stands', async () => {
    const broken = tool({
      name: 'broken',
      policy: { effects: 'read', breaker: { failureThreshold: 1 }, retry: { maxAttempts: 1 } },
      execute: () => {
        throw new Error('it broke');
      },
    });
    const spillway = createSpillway({ tools: [broken] });
    expect(await spillway.execute({ toolName: 'broken' })).toMatchObject({
      error: { code: 'execution_error', breakerState: 'open' },
    });
    expect(await spillway.execute({ toolName: 'broken' })).toMatchObject({
      status: 'circuit_open',
      error: { breakerState: 'open' },
    });
  });
});
