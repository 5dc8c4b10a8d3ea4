import { describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, tool, type TraceEvent } from '../../src/index.ts';

const failing = (name: string, dependency?: string): ReturnType<typeof tool<never, string>> =>
  tool({
    name,
    ...(dependency === undefined ? {} : { dependency }),
    policy: { breaker: { failureThreshold: 1 }, retry: { maxAttempts: 1 } },
    execute: (): never => {
      throw new ToolExecutionError('transport_error', 'down');
    },
  });

describe('R-3.7 the scope of a breaker', () => {
  it('R-3.7 is the tool by default', async () => {
    const spillway = createSpillway({ tools: [failing('a', 'server'), failing('b', 'server')] });
    await spillway.execute({ toolName: 'a' });
    expect((await spillway.execute({ toolName: 'a' })).status).toBe('circuit_open');
    expect((await spillway.execute({ toolName: 'b' })).status).toBe('retriable_error');
  });

  it('R-3.7 a key function groups the tools of one server', async () => {
    const spillway = createSpillway({ tools: [failing('a', 'server'), failing('b', 'server'), failing('c')], breakerKey: ({ dependency, name }) => dependency ?? name });
    await spillway.execute({ toolName: 'a' });
    expect((await spillway.execute({ toolName: 'b' })).status).toBe('circuit_open');
    expect((await spillway.execute({ toolName: 'c' })).status).toBe('retriable_error');
    expect(spillway.breakers.get('server').state.type).toBe('open');
  });

  it('R-3.7 one tenant’s failures do not stop another', async () => {
    const spillway = createSpillway({ tools: [failing('a')] });
    await spillway.execute({ toolName: 'a', tenant: 'one' });
    expect((await spillway.execute({ toolName: 'a', tenant: 'two' })).status).toBe('retriable_error');
    expect((await spillway.execute({ toolName: 'a', tenant: 'one' })).status).toBe('circuit_open');
  });

  it('R-3.7 the registry is bounded and says what it evicted', async () => {
    const spillway = createSpillway({ tools: [failing('a')], maxBreakers: 2 });
    const evicted: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => event.type === 'breaker_evicted' && evicted.push(event));
    for (const tenant of ['one', 'two', 'one', 'three']) await spillway.execute({ toolName: 'a', tenant });
    expect(evicted).toMatchObject([{ toolName: 'a', scope: 'two' }]);
    expect(() => createSpillway({ maxBreakers: 0 })).toThrow(/maxBreakers must be an integer from 1 to 1000000, not 0/);
  });
});
