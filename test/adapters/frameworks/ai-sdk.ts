import { dynamicTool, generateText, stepCountIs, tool, type ModelMessage, type ToolSet } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { guardTools, resumeMessages } from 'spillway/adapters/ai-sdk';
import { z } from 'zod';
import { ANSWER, BEHAVIOUR, TIMEOUT_MS, behave, defaultsOf, type Framework, type Script, type Seen } from './kit.ts';

type DoGenerate = MockLanguageModelV4['doGenerate'];
type Generated = Awaited<ReturnType<DoGenerate>>;
type Prompt = Parameters<DoGenerate>[0]['prompt'];

const usage: Generated['usage'] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

const note = (prompt: Prompt, seen: Seen): void => {
  const results = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  seen.shown += JSON.stringify(results);
  for (const part of results)
    if (part.type === 'tool-result')
      seen.told.set(part.toolCallId, 'value' in part.output ? JSON.stringify(part.output.value) : part.output.type);
};

/** A model that makes the script's calls, then answers. */
export function scriptedModel({ calls, steps = 1 }: Script, seen: Seen): MockLanguageModelV4 {
  let step = 0;
  return new MockLanguageModelV4({
    doGenerate: ({ prompt, abortSignal }) => {
      abortSignal?.throwIfAborted();
      if (step++ >= steps || calls.length === 0) {
        note(prompt, seen);
        return Promise.resolve({
          content: [{ type: 'text', text: 'done' }],
          finishReason: { unified: 'stop', raw: undefined },
          usage,
          warnings: [],
        });
      }
      const content = calls.map(({ id, name, input }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        toolName: name,
        input: JSON.stringify(input),
      }));
      return Promise.resolve({ content, finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] });
    },
  });
}

export function toolSet(seen: Seen): ToolSet {
  const dynamic = Object.keys(BEHAVIOUR).map((name) => [
    name,
    dynamicTool({
      inputSchema: z.object({}).loose(),
      execute: (_input, { abortSignal }) => behave(name, seen, abortSignal),
    }),
  ]);
  return {
    ...(Object.fromEntries(dynamic) as ToolSet),
    strict: tool({
      inputSchema: z.object({ n: z.number() }),
      execute: (_input, { abortSignal }) => behave('strict', seen, abortSignal),
    }),
  };
}

export const aiSdk: Framework = {
  name: 'AI SDK 7 `generateText`',
  entry: 'ai-sdk: guardTools(tools)',
  run: (script, seen) => {
    const tools = script.guarded ? guardTools(toolSet(seen), { defaults: defaultsOf(script) }) : toolSet(seen);
    return generateText({
      model: scriptedModel(script, seen),
      tools,
      prompt: 'go',
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      // Its own timeout, where it is on its own.
      ...(script.guarded ? {} : { timeout: { toolMs: script.timeoutMs ?? TIMEOUT_MS } }),
      ...(script.signal === undefined ? {} : { abortSignal: script.signal }),
    });
  },
  resume: async (seen, harvest) => {
    const messages = await resumeMessages<ModelMessage>(harvest, [{ role: 'user', content: 'go' }]);
    return generateText({ model: scriptedModel(ANSWER, seen), messages, tools: toolSet(seen) });
  },
};
