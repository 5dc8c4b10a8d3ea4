// Was: a retry that a slow hook had held up started after maxTotalTimeMs. Now: its time is looked at once more after
// the hook has answered.
import { createSpillway, tool, ToolExecutionError } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

describe('a hook that takes long', () => {
  it.each([
    ['in time', 500, 2],
    ['at maxTotalTimeMs', 900, 1],
    ['after it', 5_000, 1],
  ])('R-2.3 lets a retry start %s only if the time allows it', async (_when, hookMs, attempts) => {
    const runtime = virtualRuntime();
    const startsMs: number[] = [];
    const beginMs = runtime.now();
    const retry = {
      strategy: 'constant',
      initialDelayMs: 100,
      maxDelayMs: 100,
      jitterPercent: 0,
      maxAttempts: 2,
      maxTotalTimeMs: 1_000,
    } as const;
    const flaky = tool({
      name: 'flaky',
      policy: { effects: 'read', retry },
      execute: () => {
        startsMs.push(runtime.now() - beginMs);
        throw new ToolExecutionError('execution_error', 'busy', { status: 503 });
      },
    });
    const beforeToolCall = async ({ attempt }: { readonly attempt: number }): Promise<undefined> => {
      if (attempt === 2) await firstValueFrom(runtime.after(hookMs));
    };
    const spillway = createSpillway({ tools: [flaky], runtime, hooks: { beforeToolCall } });
    const result = spillway.execute({ toolName: 'flaky' });
    await runtime.run();
    expect(startsMs).toEqual(attempts === 1 ? [0] : [0, 100 + hookMs]);
    expect(await result).toMatchObject({ attempts, status: attempts === 1 ? 'retriable_error' : 'retry_exhausted' });
    expect(spillway.breakers.get('flaky').state.type).toBe('closed');
  });
});
