import { guardTool, guardTools } from 'spillway/adapters/mastra';
import { z } from 'zod';
import { sideInstall } from '../../side-install.ts';
import { PACKAGES } from './packages.ts';
import { scriptedModel } from './ai-sdk.ts';
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
  type Seen,
} from './kit.ts';

/** As much of Mastra's types as is used here: it is not in the main install. */
export interface MastraContext {
  readonly abortSignal?: AbortSignal;
  readonly agent?: {
    readonly toolCallId: string;
    suspend(payload: unknown): Promise<void>;
    readonly resumeData?: unknown;
  };
}
export interface MastraTool {
  readonly id: string;
  execute?(input: unknown, context?: MastraContext): Promise<unknown>;
}
interface Output {
  readonly error?: unknown;
  readonly finishReason?: unknown;
}
export interface MastraAgent {
  generate(messages: string, options?: object): Promise<Output & { readonly runId: string }>;
  approveToolCallGenerate(options: object): Promise<Output>;
  resumeGenerate(resumeData: unknown, options: object): Promise<Output>;
}
export interface Mastra {
  readonly Agent: new (options: object) => MastraAgent;
  readonly Mastra: new (options: object) => { getAgent(name: string): MastraAgent };
  readonly InMemoryStore: new (options: object) => object;
  readonly Tool: new (definition: object) => MastraTool;
  createTool(definition: {
    readonly id: string;
    readonly description: string;
    readonly inputSchema?: unknown;
    readonly requireApproval?: unknown;
    readonly execute?: (input: unknown, context: MastraContext) => unknown;
  }): MastraTool;
}

export const loadMastra: () => Promise<Mastra> = once(async () => {
  const load = await sideInstall(...PACKAGES.mastra);
  const modules = await Promise.all(
    ['agent', 'tools', 'mastra', 'storage'].map((name) => load(`@mastra/core/${name}`)),
  );
  return Object.assign({}, ...(modules as object[])) as Mastra;
});

const toolsOf = (make: Mastra['createTool'], seen: Seen): Record<string, MastraTool> =>
  Object.fromEntries(
    Object.keys(BEHAVIOUR).map((name) => [
      name,
      make({
        id: name,
        description: 'a tool of the test',
        inputSchema: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
        execute: (_input, context) => behave(name, seen, context.abortSignal),
      }),
    ]),
  );

/** Rejects as the run does, which Mastra tells in a field. */
export const settled = async (run: Promise<Output>, signal?: AbortSignal): Promise<Output> => {
  const output = await run;
  signal?.throwIfAborted();
  if (output.error !== undefined) throw output.error;
  return output;
};

export function mastraWith(mastra: Mastra): Framework {
  return {
    name: 'Mastra 1.71 `agent.generate`',
    entry: 'mastra: guardTool(createTool)',
    run: (script, seen) => {
      const make = script.guarded ? guardTool(mastra.createTool, { defaults: defaultsOf(script) }) : mastra.createTool;
      const agent = new mastra.Agent({
        id: 'test',
        name: 'test',
        instructions: 'go',
        model: scriptedModel(script, seen),
        tools: toolsOf(make, seen),
      });
      return settled(
        agent.generate('go', { maxSteps: 3, ...(script.signal === undefined ? {} : { abortSignal: script.signal }) }),
        script.signal,
      );
    },
  };
}

export const mastraPaying: PayingFramework = {
  name: 'Mastra',
  pay: async (execute, options) => {
    const mastra = await loadMastra();
    const make = guardTool(mastra.createTool, onePolicy(options, 'pay'));
    const pay = make({ id: 'pay', description: 'pays', inputSchema: z.object({}), execute });
    const model = scriptedModel(PAY_SCRIPT, nothingSeen());
    const agent = new mastra.Agent({ id: 'test', name: 'test', instructions: 'go', model, tools: { pay } });
    return settled(agent.generate('go', { maxSteps: 3 }));
  },
};

/** With tools that were made elsewhere. */
export const mastraFinishedPaying: PayingFramework = {
  name: 'Mastra, finished tools',
  pay: async (execute, options) => {
    const mastra = await loadMastra();
    const own = mastra.createTool({ id: 'pay', description: 'pays', inputSchema: z.object({}), execute });
    const tools = guardTools({ pay: own }, options);
    const model = scriptedModel(PAY_SCRIPT, nothingSeen());
    const agent = new mastra.Agent({ id: 'test', name: 'test', instructions: 'go', model, tools });
    return settled(agent.generate('go', { maxSteps: 3 }));
  },
};
