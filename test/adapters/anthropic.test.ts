import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { runRunnableTool } from '@anthropic-ai/sdk/lib/tools/BetaRunnableTool';
import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';
import { ToolFailure, createHarvest, guardTools, resumeMessages } from 'spillway/adapters/anthropic';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { anthropic } from './frameworks/anthropic.ts';
import { CANARY, nothingSeen } from './frameworks/kit.ts';

type Context = Parameters<ReturnType<typeof betaTool>['run']>[1];
const contextWith = (signal: AbortSignal): NonNullable<Context> =>
  ({ toolUse: { id: 'toolu_1' }, toolUseBlock: { id: 'toolu_1' }, signal }) as unknown as NonNullable<Context>;
const weather = (run: (args: object, context?: Context) => string | Promise<string>): ReturnType<typeof betaTool> =>
  betaTool({ name: 'weather', description: 'weather', inputSchema: { type: 'object' }, run });

describe('guardTools for Anthropic’s tool runner', () => {
  it('R-12.4 other members stay as they are, and what has no `run` is the same object', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const own = weather(() => '21 °C');
    const [guarded, server] = guardTools<object>([own, search]);
    expect(server).toBe(search);
    expect({ ...guarded, run: undefined }).toEqual({ ...own, run: undefined });
    expect(Object.getOwnPropertySymbols(guarded ?? {})).toEqual(Object.getOwnPropertySymbols(own));
  });

  it('R-12.4 a failure is a result with `is_error` and a text that is not empty; a safe message is passed on', async () => {
    const seen = nothingSeen();
    await anthropic.run(
      {
        guarded: true,
        calls: [
          { id: 'c1', name: 'bad', input: {} },
          { id: 'c2', name: 'worded', input: {} },
          { id: 'c3', name: 'good', input: {} },
        ],
      },
      seen,
    );
    expect(JSON.parse(seen.shown)).toEqual([
      {
        type: 'tool_result',
        tool_use_id: 'c1',
        content:
          'Error: The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
        is_error: true,
      },
      { type: 'tool_result', tool_use_id: 'c2', content: 'Error: No city is called Atlantis.', is_error: true },
      { type: 'tool_result', tool_use_id: 'c3', content: 'fine' },
    ]);
    expect(seen.shown).not.toContain(CANARY);
  });

  const content = [
    { type: 'text', text: 'Row 7: the feed is behind' },
    { type: 'image', source: { type: 'url', url: 'https://example.com/row-7.png' } },
  ] as const;

  it('R-12.4 a `ToolError` is made for the model: the runner is given it, with its content', async () => {
    for (const given of ['Row 7: the feed is behind', [...content]]) {
      const thrown = new ToolError(given);
      const [guarded] = guardTools([weather(() => Promise.reject(thrown))], {
        defaults: { retry: { maxAttempts: 1 } },
      });
      expect(await runRunnableTool(guarded as never, {}, contextWith(new AbortController().signal) as never)).toEqual({
        content: given,
        isError: true,
      });
    }
  });

  it('R-12.4 R-2.5 a `ToolError` is a failure like any other: tried again where that is allowed, and in doubt where not', async () => {
    for (const [effects, runs] of [
      ['read', 3],
      ['mutating', 1],
    ] as const) {
      let ran = 0;
      const own = weather(() => {
        ran++;
        return Promise.reject(new ToolError([...content]));
      });
      const [guarded] = guardTools([own], { defaults: { effects, retry: { maxAttempts: 3, initialDelayMs: 0 } } });
      expect(await Promise.resolve(guarded?.run({})).catch((error: unknown) => error)).toBeInstanceOf(ToolError);
      expect(ran).toBe(runs);
    }
  });

  it('R-12.4 one that says nothing is none, nor is what another attempt threw, nor what only looks like one', async () => {
    const ended = async (...thrown: readonly unknown[]): Promise<unknown> => {
      let ran = 0;
      const [guarded] = guardTools([weather(() => Promise.reject(thrown[ran++]))], {
        defaults: { effects: 'read', retry: { maxAttempts: 2, initialDelayMs: 0 } },
      });
      return Promise.resolve(guarded?.run({})).catch((error: unknown) => error);
    };
    const worded = new ToolError('Row 7');
    expect(await ended(worded, new ToolError(' '))).toBeInstanceOf(ToolFailure);
    expect(await ended(worded, new Error(CANARY))).toMatchObject({
      name: 'ToolFailure',
      message: expect.not.stringContaining('Row 7') as string,
    });
    expect(await ended(new Error('lost'), worded)).toBe(worded);
    expect(
      await ended({ name: 'ToolError', content: CANARY, message: CANARY }, { name: 'ToolError', content: CANARY }),
    ).toBeInstanceOf(ToolFailure);
  });

  it('R-12.3 R-12.4 a run that broke off goes on with what a `ToolError` said', async () => {
    const harvest = createHarvest();
    const [guarded] = guardTools([weather(() => Promise.reject(new ToolError([...content])))], {
      defaults: { retry: { maxAttempts: 1 } },
    });
    await harvest.run(() =>
      Promise.resolve(guarded?.run({}, contextWith(new AbortController().signal))).catch(() => undefined),
    );
    const asked = [{ role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }] }];
    expect(resumeMessages(harvest, asked).at(-1)).toEqual({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content, is_error: true }],
    });
  });

  it('R-4.1 R-4.2 the tool keeps its context but for the signal, which is aborted at the timeout', async () => {
    const runtime = virtualRuntime();
    const contexts: Context[] = [];
    const own = weather((_args, context) => {
      contexts.push(context);
      return new Promise<never>(() => undefined);
    });
    const [guarded] = guardTools([own], { runtime, policies: { weather: { timeoutMs: 5_000 } } });
    const { signal } = new AbortController();
    const failed = Promise.resolve(guarded?.run({}, contextWith(signal))).catch((error: unknown) => error);
    await runtime.advance(5_000);
    expect(await failed).toMatchObject({ kind: 'timeout' });
    expect(contexts).toMatchObject([{ toolUse: { id: 'toolu_1' }, signal: { aborted: true } }]);
    expect(signal.aborted).toBe(false);
  });

  it('R-2.9 a policy for a tool that is not there is refused', () => {
    expect(() => guardTools([weather(() => '')], { policies: { u: {} } })).toThrow(
      /policies has no option "u"; it takes weather/,
    );
  });
});
