// Was: with hooks, a call that was ended by whoever heard that its breaker is half-open kept the probe's permit for a
// minute. Now: it is given back at once.
import { createSpillway, tool, ToolExecutionError } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

it('R-3.6 a call with hooks that is canceled when the trace tells of its admission gives its permit back', async () => {
  const runtime = virtualRuntime();
  let isDown = true;
  const search = tool({
    name: 'search',
    policy: {
      effects: 'read',
      retry: { maxAttempts: 1 },
      breaker: { failureThreshold: 1, successThreshold: 1, cooldownMs: 1_000 },
    },
    execute: () => {
      if (isDown) throw new ToolExecutionError('execution_error', 'busy', { status: 503 });
      return 'found';
    },
  });
  const spillway = createSpillway({ runtime, tools: [search], hooks: { beforeToolCall: () => undefined } });
  await spillway.execute({ toolName: 'search' });
  isDown = false;
  runtime.stall(1_000);
  const caller = new AbortController();
  spillway.trace$.subscribe(({ type }) => type === 'breaker_changed' && caller.abort());
  expect((await spillway.execute({ toolName: 'search' }, { signal: caller.signal })).error).toMatchObject({
    code: 'canceled',
  });
  expect(await spillway.execute({ toolName: 'search' })).toMatchObject({ status: 'success' });
  expect(spillway.breakers.get('search').state.type).toBe('closed');
});
