// Was: an attempt that gave a value and failed, and a retry that was left before it began: the probe's permit ended as
// a success, since a value had come, and the breaker closed. Now: it is given back, for nothing was asked.
import { NEVER, concat, of, throwError } from 'rxjs';
import { createSpillway, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

it('R-3.6 a retry that is left while a hook is asked about it: the breaker stays half-open', async () => {
  const runtime = virtualRuntime();
  let attempts = 0;
  const talks = tool({
    name: 'talks',
    policy: {
      effects: 'read',
      retry: { strategy: 'constant', initialDelayMs: 100, jitterPercent: 0, maxAttempts: 2, maxTotalTimeMs: 10_000 },
      breaker: { failureThreshold: 2, cooldownMs: 100, successThreshold: 1, probes: 1 },
    },
    execute: () => {
      attempts++;
      return concat(
        of('some'),
        throwError(() => Object.assign(new Error('limited'), { status: 429 })),
      );
    },
  });
  const beforeToolCall = ({ attempt }: { readonly attempt: number }) => (attempt === 1 ? undefined : NEVER);
  const layer = createSpillway({ runtime, retryBudget: false, hooks: { beforeToolCall }, tools: [talks] });
  const breaker = layer.breakers.get('talks');
  const first = layer.call({ toolName: 'talks' }).subscribe();
  // The second failure opens the breaker, while the first call waits for its retry.
  layer.call({ toolName: 'talks' }).subscribe();
  await runtime.advance(0);
  expect([attempts, breaker.state.type]).toEqual([2, 'open']);
  await runtime.advance(150);
  first.unsubscribe();
  expect([attempts, breaker.state.type]).toEqual([2, 'half_open']);
});
