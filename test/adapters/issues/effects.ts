import { Agent, run as runAgents, tool as agentTool, type Tool } from '@openai/agents-core';
import { dynamicTool, generateText, stepCountIs } from 'ai';
import { ToolExecutionError } from 'spillway';
import { guardTools } from 'spillway/adapters/ai-sdk';
import { spillwayMiddleware as genkitMiddleware } from 'spillway/adapters/genkit';
import { createHarvest, resumeMessages, spillwayMiddleware } from 'spillway/adapters/langchain';
import { guardTools as guardAgents } from 'spillway/adapters/openai-agents';
import { z } from 'zod';
import { scriptedModel } from '../frameworks/ai-sdk.ts';
import { loadGenkit, scriptedAi } from '../frameworks/genkit.ts';
import { nothingSeen, type Script } from '../frameworks/kit.ts';
import { loadLangChain, scriptedModel as langChainModel } from '../frameworks/langchain.ts';
import { scriptedModel as agentsModel } from '../frameworks/openai-agents.ts';
import { endOf, never, type Issue } from './kit.ts';

const calling = (...names: readonly string[]): Script => ({
  calls: names.map((name, place) => ({ id: `c${place + 1}`, name, input: {} })),
  guarded: false,
});
const MESSAGES = [{ role: 'user', content: 'go' }];
const schema = z.object({});

/** What runs twice, and what is lost. */
export const EFFECTS: readonly Issue[] = [
  {
    id: 'vercel/ai#3953',
    title: 'Wrongly reading model stream answer resulting in a duplication of tool-calls with same tool id',
    alone: 'pays 2 times',
    solved: 'pays 1 times',
    run: async (guarded) => {
      let paid = 0;
      let tools = { pay: dynamicTool({ inputSchema: schema, execute: async () => `paid ${++paid}` }) };
      if (guarded) {
        tools = guardTools(tools);
      }
      const call = { id: 'c1', name: 'pay', input: {} };
      const model = scriptedModel({ calls: [call, call], guarded }, nothingSeen());
      await generateText({ model, tools, prompt: 'go', stopWhen: stepCountIs(3), maxRetries: 0 });
      return `pays ${paid} times`;
    },
  },
  {
    id: 'langchain-ai/langchain#40688',
    title:
      'ToolRetryMiddleware: default settings retry non-idempotent tools on ambiguous transport errors ' +
      '(LangChain.js has the same)',
    alone: 'pays 3 times',
    solved: 'pays 1 times',
    run: async (guarded) => {
      let paid = 0;
      const lc = await loadLangChain();
      const pay = lc.tool(
        () => {
          paid++;
          throw Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' });
        },
        { name: 'pay', description: 'pays', schema },
      );
      const middleware = [lc.toolRetryMiddleware({ initialDelayMs: 1 })];
      if (guarded) {
        middleware.push(lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage })));
      }
      const model = langChainModel(lc, calling('pay'), nothingSeen());
      await lc.createAgent({ model, tools: [pay], middleware }).invoke({ messages: MESSAGES });
      return `pays ${paid} times`;
    },
  },
  {
    id: 'langchain-ai/langgraph#5672',
    title: 'Run cancellation causes loss of state not yet persisted (so do agents of LangChain.js)',
    alone: 'throws; of 2 calls 0 are answered',
    solved: 'throws; of 2 calls 2 are answered',
    run: async (guarded) => {
      const lc = await loadLangChain();
      const controller = new AbortController();
      const { signal } = controller;
      const stop = (): Promise<string> => {
        setTimeout(() => controller.abort(), 50);
        return never();
      };
      const tools = [
        lc.tool(() => 'found', { name: 'search', description: 'searches', schema }),
        lc.tool(stop, { name: 'slow', description: 'never ends', schema }),
      ];
      const model = langChainModel(lc, calling('search', 'slow'), nothingSeen());
      const middleware: object[] = [];
      let around = <T>(work: () => T): T => work();
      let resumed = (): readonly object[] => MESSAGES;
      if (guarded) {
        const harvest = createHarvest();
        middleware.push(lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage })));
        around = (work) => harvest.run(work);
        resumed = () => resumeMessages<object>(harvest, MESSAGES);
      }
      const end = await endOf(
        around(() => lc.createAgent({ model, tools, middleware }).invoke({ messages: MESSAGES }, { signal })),
        guarded,
      );
      const answers = resumed().filter((message) => 'tool_call_id' in message);
      return `${end}; of 2 calls ${answers.length} are answered`;
    },
  },
  {
    id: 'openai/openai-agents-js#665',
    title: 'How to re-run when there was an error (No tool output found for function call)',
    alone: 'throws',
    solved: 'answers; both calls have an output',
    run: async (guarded) => {
      const seen = nothingSeen();
      const described = { description: 'a tool', parameters: schema, errorFunction: null };
      let tools: Tool[] = [
        agentTool({ ...described, name: 'search', execute: () => 'found' }),
        agentTool({ ...described, name: 'fails', execute: () => Promise.reject(new Error('boom')) }),
      ];
      if (guarded) {
        tools = guardAgents(tools);
      }
      const agent = new Agent({ name: 'test', tools, model: agentsModel(calling('search', 'fails'), seen) });
      const end = await endOf(runAgents(agent, 'go'), guarded);
      return seen.told.size === 2 ? `${end}; both calls have an output` : end;
    },
  },
  {
    id: 'genkit-ai/genkit#1413',
    title: 'Add ability to throw LLM-visible errors from tools',
    alone: 'throws',
    solved: 'answers; the model reads: 10 is the max',
    run: async (guarded) => {
      const seen = nothingSeen();
      const genkit = await loadGenkit();
      const { generateMiddleware } = genkit;
      const ai = scriptedAi(genkit, calling('count'), seen);
      let refusal: Error = new Error('10 is the max');
      const use: object[] = [];
      if (guarded) {
        const safeMessage = '10 is the max';
        refusal = new ToolExecutionError('execution_error', 'over 10', { safeMessage, executed: false });
        use.push(genkitMiddleware({ generateMiddleware, policies: { count: { retry: { maxAttempts: 1 } } } })());
      }
      const config = { name: 'count', description: 'counts', inputSchema: genkit.z.object({}) };
      const count = ai.defineTool(config, () => Promise.reject(refusal));
      const end = await endOf(ai.generate({ model: ai.model, prompt: 'go', tools: [count], use }), guarded);
      const [told] = seen.told.values();
      return told === undefined ? end : `${end}; the model reads: ${(JSON.parse(told) as { error: string }).error}`;
    },
  },
];
