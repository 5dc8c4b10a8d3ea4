// Was: of two calls under one id in a trace, what was known of the one was told of the other. Now: where they differ,
// the evidence says that the call may have run.
import { createSpillway, tool, type TraceEvent } from 'spillway';
import { evidenceFromTrace } from 'spillway/agent';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

describe('R-12.3 two calls of one trace under the same id', () => {
  it('of which one runs: the other is not said to have been refused, nor to have run', async () => {
    const pay = tool({
      name: 'pay',
      input: z.object({ sum: z.number() }),
      execute: () => new Promise(() => undefined),
    });
    const ask = tool({ name: 'ask', execute: () => 'answer' });
    const spillway = createSpillway({ tools: [pay, ask] });
    const trace: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => trace.push(event));
    const running = spillway.call({ toolName: 'pay', input: { sum: 20 }, toolCallId: 'call_1' }).subscribe();
    await spillway.execute({ toolName: 'pay', input: { sum: 'all' }, toolCallId: 'call_1' });
    await spillway.execute({ toolName: 'ask', toolCallId: 'call_2' });
    await spillway.execute({ toolName: 'ask', toolCallId: 'call_2' });
    await spillway.execute({ toolName: 'ask', toolCallId: 'call_3' });
    await spillway.execute({ toolName: 'pay', toolCallId: 'call_3' });
    expect([...evidenceFromTrace(trace)]).toEqual([
      ['call_1', 'may_have_run'],
      ['call_2', 'ran'],
      ['call_3', 'may_have_run'],
    ]);
    running.unsubscribe();
  });
});
