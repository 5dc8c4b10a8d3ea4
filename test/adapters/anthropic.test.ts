import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { guardTools } from 'spillway/adapters/anthropic';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { anthropic } from './frameworks/anthropic.ts';
import { CANARY, nothingSeen } from './frameworks/kit.ts';

type Context = Parameters<ReturnType<typeof betaTool>['run']>[1];
const contextWith = (signal: AbortSignal): NonNullable<Context> => ({ toolUse: { id: 'toolu_1' }, toolUseBlock: { id: 'toolu_1' }, signal }) as unknown as NonNullable<Context>;
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
    await anthropic.run({ guarded: true, calls: [{ id: 'c1', name: 'bad', input: {} }, { id: 'c2', name: 'worded', input: {} }, { id: 'c3', name: 'good', input: {} }] }, seen);
    expect(JSON.parse(seen.shown)).toEqual([
      { type: 'tool_result', tool_use_id: 'c1', content: 'Error: The tool ran and failed. It may have taken effect.', is_error: true },
      { type: 'tool_result', tool_use_id: 'c2', content: 'Error: No city is called Atlantis.', is_error: true },
      { type: 'tool_result', tool_use_id: 'c3', content: 'fine' },
    ]);
    expect(seen.shown).not.toContain(CANARY);
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
    expect(() => guardTools([weather(() => '')], { policies: { u: {} } })).toThrow(/policies has no option "u"; it takes weather/);
  });
});
