import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, stepCountIs, streamText, tool, type ToolSet } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { kit, type Kit } from '../kit.ts';
import { said, thought, use } from '../upstream.ts';

const clientTools: ToolSet = {
  weather: tool({
    description: 'Weather',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `sunny in ${city}`,
  }),
};

describe('R-13.1 the real AI SDK provider, unchanged', () => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit();
  });
  afterAll(() => gate.close());
  const common = (): {
    model: ReturnType<ReturnType<typeof createAnthropic>>;
    tools: ToolSet;
    stopWhen: ReturnType<typeof stepCountIs>;
    prompt: string;
    maxRetries: number;
  } => ({
    model: createAnthropic({ baseURL: `${gate.url}/v1`, apiKey: 'test-key' })('claude-sonnet-4-5'),
    tools: clientTools,
    stopWhen: stepCountIs(5),
    prompt: 'go',
    maxRetries: 0,
  });
  const ways: ReadonlyArray<readonly [string, () => Promise<string>]> = [
    ['generateText', async () => (await generateText(common())).text],
    [
      'streamText',
      async () => {
        const errors: unknown[] = [];
        const text = await streamText({ ...common(), onError: ({ error }) => void errors.push(error) }).text;
        expect(errors).toStrictEqual([]);
        return text;
      },
    ],
  ];

  it.each(ways)('R-13.1 %s: text, eight calls of the gateway, and a mixed step', async (_, run) => {
    const eight = Array.from({ length: 8 }, (_unused, n) =>
      use(`toolu_g${n}`, n === 7 ? 'fails' : 'math_add', { a: n, b: 1 }),
    );
    gate.upstream.answer((_asked, place) => {
      if (place === 0) return { blocks: [thought('hm'), said('Eight. '), ...eight], stop: 'tool_use' };
      if (place === 1)
        return {
          blocks: [
            said('Mixed. '),
            use('toolu_a', 'math_add', { a: 1, b: 2 }),
            use('toolu_b', 'weather', { city: 'Oulu' }),
          ],
          stop: 'tool_use',
        };
      return { blocks: [said('Done.')] };
    });
    expect(await run()).toBe('Done.');
    expect(gate.upstream.faults).toStrictEqual([]);
    expect(gate.upstream.asked).toHaveLength(3);
    expect(gate.upstream.asked[2]?.body.messages.at(-1)?.content).toMatchObject([
      { type: 'tool_result', tool_use_id: 'toolu_a', content: 'sum 3' },
      { type: 'tool_result', tool_use_id: 'toolu_b' },
    ]);
    expect(gate.upstream.asked[2]?.body.messages).toHaveLength(5);
  });

  it.each(ways)('R-13.1 %s: an upstream’s 529 is told as it is', async (_, run) => {
    gate.upstream.answer(() => ({
      status: 529,
      body: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    }));
    await expect(run()).rejects.toThrow(/Overloaded|No output/);
  });

  it('R-13.1 streamText: an error in the middle arrives as one', async () => {
    gate.upstream.answer((_asked, place) =>
      place === 0
        ? { blocks: [said('x'), use('toolu_g', 'math_add', { a: 1, b: 1 })], stop: 'tool_use' }
        : { breaksAfter: 3, error: { type: 'overloaded_error', message: 'Overloaded' } },
    );
    const errors: unknown[] = [];
    const result = streamText({ ...common(), onError: ({ error }) => void errors.push(error) });
    await result.consumeStream();
    expect(JSON.stringify(errors)).toContain('overloaded_error');
  });

  it('R-13.4 generateText: the warning of a lost state disturbs nothing', async () => {
    const lossy = await kit({
      state: { store: () => Promise.reject(new Error('down')), retrieve: () => new Map() },
      unknownCalls: 'pass',
      statePolicy: { store: { retry: { initialDelayMs: 1 } } },
    });
    lossy.upstream.answer((_asked, place) =>
      place === 0
        ? { blocks: [use('toolu_b', 'weather', { city: 'Oulu' })], stop: 'tool_use' }
        : { blocks: [said('Done.')] },
    );
    const model = createAnthropic({ baseURL: `${lossy.url}/v1`, apiKey: 'test-key' })('claude-sonnet-4-5');
    expect(await streamText({ ...common(), model }).text).toBe('Done.');
    await lossy.close();
  });
});
