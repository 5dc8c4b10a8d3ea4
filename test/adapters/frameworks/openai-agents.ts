import {
  Agent,
  Usage,
  run,
  setTracingDisabled,
  tool,
  type AgentInputItem,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type Tool,
} from '@openai/agents-core';
import { guardTools, resumeMessages } from 'spillway/adapters/openai-agents';
import { z } from 'zod';
import { ANSWER, BEHAVIOUR, TIMEOUT_MS, behave, defaultsOf, type Framework, type Script, type Seen } from './kit.ts';

setTracingDisabled(true);

const note = ({ input }: ModelRequest, seen: Seen): void => {
  if (typeof input === 'string') return;
  const results = input.filter((item) => item.type === 'function_call_result');
  seen.shown += JSON.stringify(results);
  for (const { callId, output } of results) seen.told.set(callId, JSON.stringify(output));
};

/** A model that makes the script's calls, then answers. */
export function scriptedModel({ calls, steps = 1 }: Script, seen: Seen): Model {
  let step = 0;
  const respond = (output: ModelResponse['output']): ModelResponse => ({ usage: new Usage(), output });
  return {
    getResponse: (request) => {
      request.signal?.throwIfAborted();
      if (step++ >= steps || calls.length === 0) {
        note(request, seen);
        return Promise.resolve(
          respond([
            {
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: 'done' }],
            },
          ]),
        );
      }
      return Promise.resolve(
        respond(
          calls.map(({ id, name, input }) => ({
            type: 'function_call',
            callId: id,
            name,
            arguments: typeof input === 'string' ? input : JSON.stringify(input),
          })),
        ),
      );
    },
    getStreamedResponse: () => {
      throw new Error('not streamed');
    },
  };
}

interface ToolOptions {
  readonly errorFunction?: null;
  readonly timeoutMs?: number;
}

export function agentTools(seen: Seen, options: ToolOptions = {}): Tool[] {
  const described = { description: 'a tool of the test', ...options };
  return Object.keys(BEHAVIOUR).map((name) => {
    const parameters = name === 'strict' ? z.object({ n: z.number() }) : z.object({});
    return tool({
      ...described,
      name,
      parameters,
      execute: (_input, _context, details) => behave(name, seen, details?.signal),
    });
  });
}

const runWith = (script: Script, seen: Seen, tools: Tool[]): Promise<unknown> => {
  const agent = new Agent({ name: 'test', tools, model: scriptedModel(script, seen) });
  // Without it an unknown tool ends the run before any tool is asked, guarded or not.
  const notFound = script.guarded ? { toolNotFoundBehavior: 'return_error_to_model' as const } : {};
  return run(agent, 'go', { ...notFound, ...(script.signal === undefined ? {} : { signal: script.signal }) });
};

const resume: Framework['resume'] = (seen, harvest) =>
  run(
    new Agent({ name: 'test', tools: agentTools(seen), model: scriptedModel(ANSWER, seen) }),
    resumeMessages<AgentInputItem>(harvest, 'go'),
  );

export const openaiAgents: Framework = {
  name: 'OpenAI Agents 0.20 `run`',
  entry: 'openai-agents: guardTools(tools)',
  run: (script, seen) =>
    runWith(
      script,
      seen,
      script.guarded
        ? guardTools(agentTools(seen, { errorFunction: null }), { defaults: defaultsOf(script) })
        : agentTools(seen, { timeoutMs: script.timeoutMs ?? TIMEOUT_MS }),
    ),
  resume,
};

/** Tools made as most are: with the error function that says the same of everything. */
export const openaiAgentsDefault: Framework = {
  name: 'OpenAI Agents 0.20 `run`, tools made without `errorFunction: null`',
  entry: 'openai-agents: guardTools(tools)',
  run: (script, seen) =>
    runWith(
      script,
      seen,
      script.guarded ? guardTools(agentTools(seen), { defaults: defaultsOf(script) }) : agentTools(seen),
    ),
  resume,
};
