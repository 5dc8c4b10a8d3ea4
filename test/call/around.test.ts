import { AsyncLocalStorage } from 'node:async_hooks';
import { firstValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool } from 'spillway';

describe('R-7.6 surroundings of an attempt', () => {
  it('R-7.6 a tool runs in what the host puts around it, each attempt in its own', async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: Array<string | undefined> = [];
    const flaky = tool({
      name: 't',
      policy: { retry: { initialDelayMs: 0, jitterPercent: 0 } },
      execute: async () => {
        await Promise.resolve();
        seen.push(context.getStore());
        if (seen.length < 3) throw new Error('ECONNRESET');
        return 'ok';
      },
    });
    const layer = createSpillway({
      tools: [flaky],
      around: (_, attempt, run) => context.run(`attempt ${attempt}`, run),
    });
    expect((await layer.execute({ toolName: 't' })).output?.content).toBe('ok');
    expect(seen).toEqual(['attempt 1', 'attempt 2', 'attempt 3']);
  });

  it('R-7.6 surroundings that throw are a failure of the attempt', async () => {
    const layer = createSpillway({
      tools: [tool({ name: 't', policy: { retry: { maxAttempts: 1 } }, execute: () => 1 })],
      around: () => {
        throw new Error('the context broke');
      },
    });
    expect((await layer.execute({ toolName: 't' })).status).toBe('retriable_error');
  });
});

describe('R-11.4 capture', () => {
  it('R-11.4 only what is listed of an input is in the trace', async () => {
    const pay = tool({ name: 'pay', execute: ({ amount }: { amount: number; card: string }) => amount });
    const layer = createSpillway({ tools: [pay], capture: { pay: { input: ['amount'] } } });
    const events = firstValueFrom(layer.trace$.pipe(toArray()));
    await layer.execute({ toolName: 'pay', input: { amount: 20, card: '4111-1111' } });
    await layer.close();
    expect((await events)[1]).toMatchObject({ type: 'call_started', input: { amount: 20 } });
    expect(JSON.stringify(await events)).not.toContain('4111');
  });
});
