import { guardTools, resumeMessages } from 'spillway/adapters/langchain';
import { z } from 'zod';
import {
  ANSWER,
  defaultsOf,
  nothingSeen,
  type Framework,
  type PayingFramework,
  type Script,
  type Seen,
} from './kit.ts';
import { langChainTools, loadLangChain, scriptedModel, type LangChain } from './langchain.ts';

/** A graph of one's own: a model, LangGraph's `ToolNode`, and back. */
export function graphOf(
  lc: LangChain,
  script: Script,
  seen: Seen,
  tools: readonly object[],
  options: { readonly node?: object; readonly compile?: object } = {},
): ReturnType<LangChain['createAgent']> {
  const model = scriptedModel(lc, script, seen) as { invoke(messages: unknown): Promise<unknown> };
  const ask = async ({ messages }: { messages: unknown }): Promise<object> => ({
    messages: [await model.invoke(messages)],
  });
  return new lc.StateGraph(lc.MessagesAnnotation)
    .addNode('agent', ask)
    .addNode('tools', new lc.ToolNode(tools, options.node))
    .addEdge('__start__', 'agent')
    .addConditionalEdges('agent', lc.toolsCondition)
    .addEdge('tools', 'agent')
    .compile(options.compile);
}

const GO = [{ role: 'user', content: 'go' }];

export function toolNodeWith(lc: LangChain): Framework {
  return {
    name: 'LangGraph 1.7 `ToolNode`',
    entry: 'langchain: guardTools(tools, { ToolMessage })',
    run: (script, seen) => {
      const own = langChainTools(lc, seen);
      const tools = script.guarded
        ? guardTools(own, { ToolMessage: lc.ToolMessage, defaults: defaultsOf(script) })
        : own;
      return graphOf(lc, script, seen, tools).invoke(
        { messages: GO },
        script.signal === undefined ? {} : { signal: script.signal },
      );
    },
    resume: (seen, harvest) =>
      graphOf(lc, ANSWER, seen, langChainTools(lc, seen)).invoke({ messages: resumeMessages<unknown>(harvest, GO) }),
  };
}

/** With and without the class for answers. */
export const toolNodePaying = (messages: boolean): PayingFramework => ({
  name: `LangGraph ToolNode, ${messages ? 'with' : 'without'} ToolMessage`,
  pay: async (execute, options) => {
    const lc = await loadLangChain();
    const own = lc.tool(execute, { name: 'pay', description: 'pays', schema: z.object({}) });
    const tools = guardTools([own], { ...(messages ? { ToolMessage: lc.ToolMessage } : {}), ...options });
    const script: Script = { calls: [{ id: 'c1', name: 'pay', input: {} }], guarded: true };
    return graphOf(lc, script, nothingSeen(), tools).invoke({ messages: GO });
  },
});
