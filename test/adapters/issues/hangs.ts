import { dynamicTool, generateText, stepCountIs } from 'ai';
import { guardTools } from 'spillway/adapters/ai-sdk';
import { guardTool as guardMastra } from 'spillway/adapters/mastra';
import { guardTool as guardStrands } from 'spillway/adapters/strands';
import { z } from 'zod';
import { scriptedModel } from '../frameworks/ai-sdk.ts';
import { nothingSeen, type Script } from '../frameworks/kit.ts';
import { loadMastra, settled } from '../frameworks/mastra.ts';
import { loadStrands, scriptedStrands } from '../frameworks/strands.ts';
import { endOf, never, type Issue } from './kit.ts';

const SEARCH: Script = { calls: [{ id: 'c1', name: 'search', input: {} }], guarded: false };
const described = { description: 'searches', inputSchema: z.object({}) };

/** Aborted once the tool has begun. */
const stopped = (): { readonly signal: AbortSignal; readonly search: () => Promise<string> } => {
  const controller = new AbortController();
  const search = (): Promise<string> => {
    controller.abort();
    return never();
  };
  return { signal: controller.signal, search };
};

/** Tools that do not end, and callers who want them to. */
export const HANGS: readonly Issue[] = [
  {
    id: 'vercel/ai#11975',
    title: 'Timeouts of single tools (answered by `toolMs`, #13365, which tells the tool and waits for it)',
    alone: 'hangs',
    solved: 'answers; the model is told',
    run: async (guarded) => {
      const seen = nothingSeen();
      let tools = { search: dynamicTool({ ...described, execute: never }) };
      if (guarded) {
        tools = guardTools(tools, { policies: { search: { timeoutMs: 200 } } });
      }
      const model = scriptedModel(SEARCH, seen);
      const timeout = guarded ? {} : { timeout: { toolMs: 200 } };
      const run = generateText({ model, tools, prompt: 'go', stopWhen: stepCountIs(3), maxRetries: 0, ...timeout });
      const end = await endOf(run, guarded);
      return seen.told.has('c1') ? `${end}; the model is told` : end;
    },
  },
  {
    id: 'mastra-ai/mastra#18594',
    title: 'Tool execution has no timeout - agents hang indefinitely on slow or stuck tools',
    alone: 'hangs',
    solved: 'answers; the model is told',
    run: async (guarded) => {
      const seen = nothingSeen();
      const mastra = await loadMastra();
      let { createTool } = mastra;
      if (guarded) {
        createTool = guardMastra(createTool, { policy: { timeoutMs: 200 } });
      }
      const search = createTool({ id: 'search', ...described, execute: never });
      const model = scriptedModel(SEARCH, seen);
      const agent = new mastra.Agent({ id: 'test', name: 'test', instructions: 'go', model, tools: { search } });
      const end = await endOf(settled(agent.generate('go', { maxSteps: 3 })), guarded);
      return seen.told.has('c1') ? `${end}; the model is told` : end;
    },
  },
  {
    id: 'mastra-ai/mastra#7137',
    title: 'Pipe abortcontroller to agent calls not working',
    alone: 'hangs',
    solved: 'throws',
    run: async (guarded) => {
      const mastra = await loadMastra();
      const { signal, search: execute } = stopped();
      let { createTool } = mastra;
      if (guarded) {
        createTool = guardMastra(createTool);
      }
      const search = createTool({ id: 'search', ...described, execute });
      const model = scriptedModel(SEARCH, nothingSeen());
      const agent = new mastra.Agent({ id: 'test', name: 'test', instructions: 'go', model, tools: { search } });
      return endOf(settled(agent.generate('go', { maxSteps: 3, abortSignal: signal }), signal), guarded);
    },
  },
  {
    id: 'strands-agents/sdk-typescript#769',
    title: 'Support agent cancellation signal',
    alone: 'hangs',
    solved: 'answers',
    run: async (guarded) => {
      const strands = await loadStrands();
      const { signal, search: callback } = stopped();
      let { tool } = strands;
      if (guarded) {
        tool = guardStrands(tool);
      }
      const search = tool({ name: 'search', ...described, callback });
      const model = scriptedStrands(strands, SEARCH, nothingSeen());
      const agent = new strands.Agent({ model, tools: [search], printer: false });
      return endOf(agent.invoke('go', { cancelSignal: signal }), guarded);
    },
  },
];
