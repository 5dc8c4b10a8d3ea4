import { describe, expect, it } from 'vitest';
import { createSpillway, liveRuntime, tool, type ToolCallEnvelope, type TraceEvent } from 'spillway';
import { adminHandler } from 'spillway/gateway/admin';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { PATH, TOKEN, layerOf, withToken } from './kit.ts';

describe('R-3.8 orders to breakers stand', () => {
  it('R-3.8 also for one that made room and came back', () => {
    const spillway = layerOf({ maxBreakers: 2 });
    void spillway.orderBreakers('force_open', { tool: 'search' });
    for (const tenant of ['a', 'b', 'c'])
      expect(spillway.breakers.get('search', tenant).state.type).toBe('forced_open');
    expect(spillway.breakers.get('search', 'a').state.type).toBe('forced_open');
  });

  it('R-3.8 and are told in the trace as any change is', async () => {
    const spillway = layerOf();
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    await spillway.orderBreakers('force_open', { tool: 'search' });
    await spillway.orderBreakers('reset', { tool: 'search' });
    expect(events).toMatchObject([
      { type: 'layer_started' },
      { type: 'breaker_changed', toolName: 'search', to: 'forced_open' },
      { type: 'breaker_changed', toolName: 'search', to: 'closed' },
    ]);
  });

  it.each(['global', 'dependency', 'tool'] as const)(
    'R-3.8 and hold for a call that asks for another breaker: %s',
    async (circuitBreakerHint) => {
      const spillway = layerOf();
      const hinted = async (): Promise<string> => {
        const envelope: ToolCallEnvelope = {
          contractVersion: '1.1',
          requestId: liveRuntime.id(),
          toolName: 'read',
          toolNamespace: 'native',
          target: { sessionKey: 'ada', actorId: 'ada' },
          payload: { version: '1.0', params: {} },
          transport: {
            dedupeMode: 'disabled',
            circuitBreakerHint,
            retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 },
          },
          control: {},
          trace: {},
        };
        return (await spillway.execute(envelope)).status;
      };
      expect(await hinted()).toBe('success');
      await spillway.orderBreakers('force_open', { tool: 'read' });
      expect(await hinted()).toBe('circuit_open');
      await spillway.orderBreakers('reset', { tool: 'read' });
      expect(await hinted()).toBe('success');
    },
  );

  it('R-3.8 a name without a tool, a tool without a breaker and an order that is none are refused, and nothing is changed', async () => {
    const spillway = layerOf();
    await expect(spillway.orderBreakers('force_open', { tool: 'nothing' })).rejects.toThrow(
      'there is no tool "nothing" and no breaker of that name',
    );
    await expect(spillway.orderBreakers('force_open', { tool: 'bare' })).rejects.toThrow(
      'tool bare has no breaker (policy.breaker is false)',
    );
    await expect(spillway.orderBreakers('open' as never, { all: true })).rejects.toThrow(
      'order must be one of force_open, reset, disable',
    );
    expect(spillway.breakers.list()).toEqual([]);
  });
});

describe('R-3.10 orders to shared breakers', () => {
  const cluster = () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const flaky = { up: false };
    const layerOf = () =>
      createSpillway({
        tools: [
          tool({
            name: 'flaky',
            policy: { retry: { maxAttempts: 1 } },
            execute: async () => (flaky.up ? 'ok' : Promise.reject(new Error('ECONNRESET'))),
          }),
        ],
        store,
        runtime,
        shareBreakers: true,
      });
    const layers = [layerOf(), layerOf()] as const;
    const call = async (place: 0 | 1): Promise<string> => {
      const result = layers[place].execute({ toolName: 'flaky' });
      await runtime.advance(0);
      return (await result).status;
    };
    return { layers, call, flaky, runtime, store };
  };

  it('R-3.10 a reset at one process closes what another one opened, for all', async () => {
    const { layers, call, flaky, runtime } = cluster();
    for (let failure = 0; failure < 5; failure++) await call(0);
    expect([await call(0), await call(1)]).toEqual(['circuit_open', 'circuit_open']);
    flaky.up = true;
    const reset = layers[1].orderBreakers('reset', { tool: 'flaky' });
    await runtime.advance(0);
    await reset;
    expect([await call(1), await call(0)]).toEqual(['success', 'success']);
  });

  it('R-3.10 a reset says when the shared ones could not be reached', async () => {
    const { layers, runtime, store } = cluster();
    store.byTool = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) });
    const admin = adminHandler(layers[0], { token: TOKEN });
    const response = admin.fetch(
      new Request(`http://localhost${PATH}`, {
        method: 'POST',
        headers: { ...withToken, 'content-type': 'application/json' },
        body: '{"action":"reset","all":true}',
      }),
    );
    await runtime.advance(5_000);
    await runtime.advance(0);
    expect((await response).status).toBe(503);
  });

  it('R-11.3 a store that does not answer keeps nobody from seeing the breakers', async () => {
    const { layers, runtime, store } = cluster();
    store.report = () => new Promise(() => undefined);
    const report = layers[0].inspect();
    await runtime.advance(5_000);
    expect(await report).not.toHaveProperty('store');
  });
});
