// Was: a framework's own tool timeout was told as the caller's cancel, neutral for the breaker, so 8 hung calls never
// opened it. Now: it is `timeout`, and counts.
import { Agent, run, tool as agentTool } from '@openai/agents-core';
import { dynamicTool, generateText, stepCountIs } from 'ai';
import { createSpillway, tool, type Spillway, type TraceEvent } from 'spillway';
import { guardTools } from 'spillway/adapters/ai-sdk';
import { guardTools as guardAgentTools } from 'spillway/adapters/openai-agents';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedModel } from '../adapters/frameworks/ai-sdk.ts';
import { nothingSeen } from '../adapters/frameworks/kit.ts';
import { scriptedModel as scriptedAgentModel } from '../adapters/frameworks/openai-agents.ts';
import { abortKind } from '../../src/errors/abort-kind.ts';

/** As `AbortSignal.timeout` makes it. */
const TIME_OVER = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
class ToolTimeoutError extends Error {
  override readonly name = 'ToolTimeoutError';
}
const hang = (): Promise<never> => new Promise(() => undefined);

const hungLayer = (
  mode: 'on' | 'shadow' = 'on',
): { spillway: Spillway; runtime: ReturnType<typeof virtualRuntime>; events: TraceEvent[] } => {
  const runtime = virtualRuntime();
  const spillway = createSpillway({
    runtime,
    mode,
    tools: [tool({ name: 'slow', policy: { effects: 'read' }, execute: hang })],
  });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => events.push(event));
  return { spillway, runtime, events };
};

describe('what an abort means', () => {
  it.each<[unknown, string]>([
    [TIME_OVER, 'timeout'],
    [new ToolTimeoutError('too long'), 'timeout'],
    [AbortSignal.abort().reason, 'canceled'],
    [new Error('TimeoutError', { cause: TIME_OVER }), 'canceled'],
    ['TimeoutError', 'canceled'],
    [undefined, 'canceled'],
    [null, 'canceled'],
    [
      Object.defineProperty({}, 'name', {
        get: () => {
          throw new Error('no');
        },
      }),
      'canceled',
    ],
  ])('R-4.2 %s: %s', (reason, kind) => {
    expect(abortKind(reason)).toBe(kind);
  });
});

describe('a signal whose reason is a timeout', () => {
  it('R-4.2 is `timeout`, uncertain, tried once, and counts for the breaker; the reason is the cause', async () => {
    const { spillway, runtime, events } = hungLayer();
    const causes: unknown[] = [];
    spillway.failures$.subscribe(({ error }) => causes.push(error.cause));
    for (let call = 0; call < 5; call++) {
      const controller = new AbortController();
      const result = spillway.execute({ toolName: 'slow' }, { signal: controller.signal });
      await runtime.advance(100);
      controller.abort(TIME_OVER);
      expect(await result).toMatchObject({
        status: 'timeout',
        attempts: 1,
        error: { code: 'timeout', uncertain: true, terminal: false },
      });
    }
    expect(causes).toEqual(Array.from({ length: 5 }, () => TIME_OVER));
    expect(spillway.breakers.get('slow')?.state.type).toBe('open');
    expect(events.filter(({ type }) => type === 'attempt_failed').length).toBe(5);
    expect(events.filter(({ type }) => type === 'attempt_canceled').length).toBe(0);
    expect(await spillway.execute({ toolName: 'slow' })).toMatchObject({ status: 'circuit_open' });
    expect(runtime.pending).toBe(0);
  });

  it('R-4.2 any other reason stays `canceled`, neutral, and is the cause', async () => {
    const { spillway, runtime } = hungLayer();
    const causes: unknown[] = [];
    spillway.failures$.subscribe(({ error }) => causes.push(error.cause));
    const reason = new Error('the user left');
    for (let call = 0; call < 8; call++) {
      const controller = new AbortController();
      const result = spillway.execute({ toolName: 'slow' }, { signal: controller.signal });
      await runtime.advance(100);
      controller.abort(reason);
      expect(await result).toMatchObject({ status: 'error', error: { code: 'canceled' } });
    }
    expect(causes[0]).toBe(reason);
    expect(spillway.breakers.get('slow')?.state).toMatchObject({ type: 'closed', consecutiveFailures: 0 });
  });

  it('R-4.2 before the call began it is `timeout`, too: nothing ran, and the breaker hears nothing', async () => {
    const { spillway } = hungLayer();
    const result = await spillway.execute({ toolName: 'slow' }, { signal: AbortSignal.abort(TIME_OVER) });
    expect(result).toMatchObject({ attempts: 0, error: { code: 'timeout' } });
    expect(result.error?.uncertain).toBeUndefined();
    expect(spillway.breakers.get('slow')?.state.consecutiveFailures ?? 0).toBe(0);
  });

  it('R-4.2 in a backoff only the failures that there were count', async () => {
    const runtime = virtualRuntime();
    const failing = tool({
      name: 'failing',
      policy: { effects: 'read' },
      execute: () => Promise.reject(Object.assign(new Error('busy'), { status: 503 })),
    });
    const spillway = createSpillway({ runtime, tools: [failing] });
    const controller = new AbortController();
    const result = spillway.execute({ toolName: 'failing' }, { signal: controller.signal });
    await runtime.advance(50);
    controller.abort(TIME_OVER);
    expect(await result).toMatchObject({ attempts: 1, error: { code: 'timeout' } });
    expect(spillway.breakers.get('failing')?.state.consecutiveFailures).toBe(1);
  });

  it('R-9.6 who waits for the same key is not ended by another caller’s time', async () => {
    const runtime = virtualRuntime();
    const slow = tool({
      name: 'slow',
      policy: { effects: 'read' },
      execute: () =>
        new Promise((resolve) => {
          runtime.after(1_000).subscribe(() => resolve('done'));
        }),
    });
    const spillway = createSpillway({ runtime, tools: [slow] });
    const controller = new AbortController();
    const request = { toolName: 'slow', idempotencyKey: 'k', tenant: 't' };
    const first = spillway.execute(request, { signal: controller.signal });
    const second = spillway.execute(request);
    await runtime.advance(100);
    controller.abort(TIME_OVER);
    expect(await first).toMatchObject({ error: { code: 'timeout' } });
    await runtime.advance(2_000);
    expect(await second).toMatchObject({ status: 'success', output: { content: 'done' } });
    expect(spillway.breakers.get('slow')?.state.consecutiveFailures).toBe(0);
  });

  it('R-11.2 in shadow mode it counts for the breaker that only watches', async () => {
    const { spillway, runtime } = hungLayer('shadow');
    const controller = new AbortController();
    const result = spillway.execute({ toolName: 'slow' }, { signal: controller.signal });
    await runtime.advance(100);
    controller.abort(TIME_OVER);
    expect(await result).toMatchObject({ error: { code: 'timeout' } });
    expect(spillway.breakers.get('slow')?.state.consecutiveFailures).toBe(1);
  });
});

const CALL = { id: 'c1', name: 'slow', input: {} };
const TOOL_MS = 20;
const HUNG_CALLS = 8;

describe('a framework that gives a tool a time of its own', () => {
  it('R-4.2 AI SDK `timeout: { toolMs }`: 8 hung calls open the breaker', async () => {
    const spillway = createSpillway();
    let ran = 0;
    const execute = (): Promise<never> => {
      ran++;
      return hang();
    };
    const tools = guardTools({ slow: dynamicTool({ inputSchema: z.object({}), execute }) }, { spillway });
    const kinds: unknown[] = [];
    spillway.failures$.subscribe(({ error }) => kinds.push(error.kind));
    for (let call = 0; call < HUNG_CALLS; call++) {
      await generateText({
        model: scriptedModel({ calls: [CALL], guarded: true }, nothingSeen()),
        tools,
        prompt: 'go',
        stopWhen: stepCountIs(3),
        timeout: { toolMs: TOOL_MS },
      });
    }
    expect([ran, spillway.breakers.get('slow')?.state.type]).toEqual([5, 'open']);
    expect(kinds).toEqual([
      ...Array.from({ length: 5 }, () => 'timeout'),
      ...Array.from({ length: 3 }, () => 'circuit_open'),
    ]);
  });

  it('R-4.2 OpenAI Agents `timeoutMs`: 8 hung calls open the breaker', async () => {
    const spillway = createSpillway();
    let ran = 0;
    const execute = (): Promise<never> => {
      ran++;
      return hang();
    };
    const slow = agentTool({
      name: 'slow',
      description: 'a tool of the test',
      parameters: z.object({}),
      timeoutMs: TOOL_MS,
      execute,
    });
    const tools = guardAgentTools([slow], { spillway });
    const seen = nothingSeen();
    for (let call = 0; call < HUNG_CALLS; call++)
      await run(
        new Agent({ name: 'test', tools, model: scriptedAgentModel({ calls: [CALL], guarded: true }, seen) }),
        'go',
      );
    expect([ran, spillway.breakers.get('slow')?.state.type]).toEqual([5, 'open']);
  });
});
