import { guardTool } from 'spillway/adapters/llamaindex';
import { z } from 'zod';
import { sideInstall } from '../../side-install.ts';
import { PACKAGES } from './packages.ts';
import {
  BEHAVIOUR,
  PAY_SCRIPT,
  behave,
  defaultsOf,
  nothingSeen,
  onePolicy,
  once,
  type Framework,
  type PayingFramework,
  type Script,
  type Seen,
} from './kit.ts';

/** As much of LlamaIndex' types as is used here: it is not in the main install. */
interface Message {
  readonly content: unknown;
  readonly options?: { readonly toolResult?: { readonly id: string; readonly result: unknown } };
}
export interface LlamaTool {
  readonly metadata: { readonly name: string };
  call(input: unknown): unknown;
  bind(additional: object): LlamaTool;
}
export interface LlamaIndex {
  agent(options: object): { run(input: string): Promise<{ readonly data: { readonly result: unknown } }> };
  readonly FunctionTool: { from: LlamaIndex['tool'] };
  tool(definition: {
    readonly name: string;
    readonly description: string;
    readonly parameters?: unknown;
    readonly execute: (input: unknown, additional?: object) => unknown;
  }): LlamaTool;
  tool(fn: (input: unknown, additional?: object) => unknown, metadata: object): LlamaTool;
}

export const loadLlamaIndex: () => Promise<LlamaIndex> = once(async () => {
  const load = await sideInstall(...PACKAGES.llamaIndex);
  const modules = await Promise.all([load('@llamaindex/workflow'), load('@llamaindex/core/tools')]);
  return Object.assign({}, ...(modules as object[])) as LlamaIndex;
});

const note = (messages: readonly Message[], seen: Seen): void => {
  const results = messages.flatMap(({ options }) => options?.toolResult ?? []);
  seen.shown += JSON.stringify(results);
  for (const { id, result } of results) seen.told.set(id, JSON.stringify(result));
};

/** A model that makes the script's calls, then answers. */
export function scriptedLlama({ calls, steps = 1 }: Script, seen: Seen): object {
  let step = 0;
  return {
    supportToolCall: true,
    metadata: { model: 'scripted', contextWindow: 100_000, temperature: 0, topP: 1, tokenizer: undefined },
    async *chat({ messages }: { readonly messages: readonly Message[] }): AsyncGenerator<object> {
      const asks = step++ < steps && calls.length > 0;
      if (!asks) note(messages, seen);
      const toolCall = calls.map(({ id, name, input }) => ({ id, name, input }));
      yield await Promise.resolve({ delta: asks ? '' : 'done', raw: {}, options: asks ? { toolCall } : {} });
    },
  };
}

const toolsOf = (make: LlamaIndex['tool'], seen: Seen): LlamaTool[] =>
  Object.keys(BEHAVIOUR).map((name) =>
    make({
      name,
      description: 'a tool of the test',
      parameters: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
      execute: () => behave(name, seen, undefined),
    }),
  );

export function llamaIndexWith(llama: LlamaIndex): Framework {
  return {
    name: 'LlamaIndex 0.6 `agent`',
    entry: 'llamaindex: guardTool(tool)',
    sequential: true,
    unchecked: true,
    told: { 'an unknown tool': '**ends the process**, by an unhandled rejection' },
    run: async (script, seen) => {
      const { signal } = script;
      const options = { defaults: defaultsOf(script), ...(signal === undefined ? {} : { signalOf: () => signal }) };
      const make = script.guarded ? guardTool(llama.tool, options) : llama.tool;
      await llama.agent({ llm: scriptedLlama(script, seen), tools: toolsOf(make, seen) }).run('go');
      signal?.throwIfAborted();
    },
  };
}

export const llamaIndexPaying: PayingFramework = {
  name: 'LlamaIndex',
  pay: async (execute, options) => {
    const llama = await loadLlamaIndex();
    const make = guardTool(llama.tool, onePolicy(options, 'pay'));
    const pay = make({ name: 'pay', description: 'pays', parameters: z.object({}), execute });
    return llama.agent({ llm: scriptedLlama(PAY_SCRIPT, nothingSeen()), tools: [pay] }).run('go');
  },
};
