import {
  resumeMessages,
  spillwayMiddleware,
  type SpillwayMiddleware,
  type ToolMessageClass,
} from 'spillway/adapters/langchain';
import { z } from 'zod';
import { sideInstall } from '../../side-install.ts';
import { PACKAGES } from './packages.ts';
import { ANSWER, BEHAVIOUR, defaultsOf, behave, type Framework, type Script, type Seen } from './kit.ts';

/** As much of LangChain's types as is used here: it is not in the main install. */
interface Message {
  readonly content: unknown;
  getType(): string;
  readonly tool_call_id?: string;
  readonly status?: string;
}
interface ToolConfig {
  readonly signal?: AbortSignal;
}
export interface LangChain {
  readonly AIMessage: new (fields: object) => Message;
  readonly ToolMessage: ToolMessageClass<Message>;
  tool(execute: (input: object, config: ToolConfig) => unknown, fields: object): object;
  createMiddleware(middleware: SpillwayMiddleware<Message>): object;
  toolRetryMiddleware(options: object): object;
  createAgent(options: object): {
    invoke(input: object, config?: object): Promise<{ readonly messages: readonly Message[] }>;
  };
  readonly BaseChatModel: new (fields: object) => object;
  readonly ToolNode: new (tools: readonly object[], options?: object) => object;
  readonly toolsCondition: object;
  readonly MessagesAnnotation: object;
  readonly StateGraph: new (state: object) => Graph;
  readonly Command: new (fields: object) => object;
  readonly interrupt: (value: unknown) => unknown;
}

interface Graph {
  addNode(name: string, node: object): Graph;
  addEdge(from: string, to: string): Graph;
  addConditionalEdges(from: string, condition: object): Graph;
  compile(options?: object): ReturnType<LangChain['createAgent']>;
}

export async function loadLangChain(): Promise<LangChain> {
  const load = await sideInstall(...PACKAGES.langchain);
  const modules = await Promise.all([
    load('langchain'),
    load('@langchain/core/language_models/chat_models'),
    load('@langchain/langgraph'),
    load('@langchain/langgraph/prebuilt'),
  ]);
  return Object.assign({}, ...(modules as object[])) as LangChain;
}

const note = (messages: readonly Message[], seen: Seen): void => {
  const results = messages.filter((message) => message.getType() === 'tool');
  seen.shown += JSON.stringify(results);
  for (const { tool_call_id: id = '', content } of results) seen.told.set(id, JSON.stringify(content));
};

/** A model that makes the script's calls, then answers. */
export function scriptedModel(
  { AIMessage, BaseChatModel }: LangChain,
  { calls, steps = 1 }: Script,
  seen: Seen,
): object {
  let step = 0;
  return new (class extends BaseChatModel {
    _llmType(): string {
      return 'scripted';
    }
    bindTools(): object {
      return this;
    }
    _generate(messages: readonly Message[]): Promise<object> {
      if (step++ >= steps || calls.length === 0) note(messages, seen);
      const toolCalls =
        step <= steps ? calls.map(({ id, name, input }) => ({ id, name, args: input, type: 'tool_call' })) : [];
      const message = new AIMessage({ content: step <= steps ? '' : 'done', tool_calls: toolCalls });
      return Promise.resolve({ generations: [{ text: '', message }] });
    }
  })({});
}

export function langChainTools({ tool }: LangChain, seen: Seen): object[] {
  return Object.keys(BEHAVIOUR).map((name) =>
    tool((_input, config) => behave(name, seen, config.signal), {
      name,
      description: 'a tool of the test',
      schema: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
    }),
  );
}

const framework = (lc: LangChain, name: string, entry: string, own: () => readonly object[]): Framework => ({
  name,
  entry,
  run: (script, seen) => {
    const guard = script.guarded
      ? [lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage, defaults: defaultsOf(script) }))]
      : [];
    const agent = lc.createAgent({
      model: scriptedModel(lc, script, seen),
      tools: langChainTools(lc, seen),
      middleware: [...own(), ...guard],
    });
    return agent.invoke(
      { messages: [{ role: 'user', content: 'go' }] },
      script.signal === undefined ? {} : { signal: script.signal },
    );
  },
  resume: (seen, harvest) => {
    const messages = resumeMessages<unknown>(harvest, [{ role: 'user', content: 'go' }]);
    return lc
      .createAgent({ model: scriptedModel(lc, ANSWER, seen), tools: langChainTools(lc, seen) })
      .invoke({ messages });
  },
});

const ENTRY = 'langchain: spillwayMiddleware({ ToolMessage })';

export const langChainWith = (lc: LangChain): Framework =>
  framework(lc, 'LangChain 1.5 `createAgent`', ENTRY, () => []);

/** With LangChain's own retries of tools, on both sides. */
export const langChainRetrying = (lc: LangChain): Framework =>
  framework(lc, 'LangChain 1.5 `createAgent`, with `toolRetryMiddleware`', ENTRY, () => [
    lc.toolRetryMiddleware({ initialDelayMs: 1 }),
  ]);
