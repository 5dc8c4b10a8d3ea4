import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import type { BetaRunnableTool } from '@anthropic-ai/sdk/lib/tools/BetaRunnableTool';
import { guardTools, resumeMessages } from 'spillway/adapters/anthropic';
import { z } from 'zod';
import { ANSWER, BEHAVIOUR, defaultsOf, behave, type Framework, type Script, type Seen } from './kit.ts';

interface Request {
  readonly messages: ReadonlyArray<{
    readonly content:
      | string
      | ReadonlyArray<{ readonly type: string; readonly tool_use_id?: string; readonly content?: unknown }>;
  }>;
}

const note = (body: string, seen: Seen): void => {
  const { messages } = JSON.parse(body) as Request;
  const results = messages
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'tool_result');
  seen.shown += JSON.stringify(results);
  for (const { tool_use_id: id = '', content } of results) seen.told.set(id, JSON.stringify(content));
};

/** The real client, with a transport that answers with the script's calls, then with text. */
export function scriptedClient({ calls, steps = 1 }: Script, seen: Seen): Anthropic {
  let step = 0;
  const message = (content: readonly object[], stop_reason: string): Response =>
    Response.json({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      content,
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  return new Anthropic({
    apiKey: 'none',
    maxRetries: 0,
    fetch: (_url, init) => {
      init?.signal?.throwIfAborted();
      if (step++ < steps && calls.length > 0)
        return Promise.resolve(
          message(
            calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
            'tool_use',
          ),
        );
      note(typeof init?.body === 'string' ? init.body : '{"messages":[]}', seen);
      return Promise.resolve(message([{ type: 'text', text: 'done' }], 'end_turn'));
    },
  });
}

export function runnableTools(seen: Seen): BetaRunnableTool[] {
  return Object.keys(BEHAVIOUR).map((name) =>
    betaZodTool({
      name,
      description: 'a tool of the test',
      inputSchema: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
      run: (_input, context) => behave(name, seen, context?.signal),
    }),
  );
}

export const anthropic: Framework = {
  name: 'Anthropic SDK 1.13 `toolRunner`',
  entry: 'anthropic: guardTools(tools)',
  run: (script, seen) => {
    const tools = script.guarded
      ? guardTools(runnableTools(seen), { defaults: defaultsOf(script) })
      : runnableTools(seen);
    const runner = scriptedClient(script, seen).beta.messages.toolRunner(
      { model: 'scripted', max_tokens: 10, thread: false, messages: [{ role: 'user', content: 'go' }], tools },
      script.signal === undefined ? {} : { signal: script.signal },
    );
    return runner.runUntilDone();
  },
  resume: (seen, harvest) => {
    const messages = resumeMessages<Anthropic.Beta.BetaMessageParam>(harvest, [{ role: 'user', content: 'go' }]);
    return scriptedClient(ANSWER, seen)
      .beta.messages.toolRunner({
        model: 'scripted',
        max_tokens: 10,
        thread: false,
        messages,
        tools: runnableTools(seen),
      })
      .runUntilDone();
  },
};
