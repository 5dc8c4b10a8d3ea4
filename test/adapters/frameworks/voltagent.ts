import type { ModelMessage } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { guardTool } from 'spillway/adapters/voltagent';
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
  type Script,
  type Seen,
} from './kit.ts';

/** As much of VoltAgent's types as is used here: it is not in the main install. */
export interface VoltOptions {
  readonly toolContext?: { readonly callId: string; readonly abortSignal?: AbortSignal };
  readonly abortController?: AbortController;
}
export interface VoltTool {
  readonly id: string;
  readonly name: string;
}
export interface VoltAgent {
  readonly Agent: new (options: object) => {
    generateText(
      input: unknown,
      options?: object,
    ): Promise<{
      readonly text: string;
      readonly content: readonly { readonly type: string }[];
      readonly response: { readonly messages: ModelMessage[] };
    }>;
  };
  readonly Tool: new (definition: object) => VoltTool;
  createTool(definition: {
    readonly name: string;
    readonly description: string;
    readonly parameters: unknown;
    readonly needsApproval?: unknown;
    readonly execute?: (input: unknown, options: VoltOptions) => unknown;
  }): VoltTool;
}

export const loadVoltAgent: () => Promise<VoltAgent> = once(async () => {
  const load = await sideInstall(...PACKAGES.voltAgent);
  // Anywhere else it asks the network for a list of models while it is loaded.
  const environment = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = 'production';
  try {
    return (await load('@voltagent/core')) as VoltAgent;
  } finally {
    process.env['NODE_ENV'] = environment;
  }
});

/** The scripted model, as the AI SDK that VoltAgent stands on takes it. */
export const olderModel = (script: Script, seen: Seen): MockLanguageModelV3 => {
  const model = scriptedModel(script, seen);
  return new MockLanguageModelV3({
    doGenerate: async (options) => (await model.doGenerate(options as never)) as never,
  });
};

const toolsOf = (make: VoltAgent['createTool'], seen: Seen): VoltTool[] =>
  Object.keys(BEHAVIOUR).map((name) =>
    make({
      name,
      description: 'a tool of the test',
      parameters: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
      execute: (_input, { toolContext }) => behave(name, seen, toolContext?.abortSignal),
    }),
  );

export const agentOf = (
  { Agent }: VoltAgent,
  model: object,
  tools: readonly VoltTool[],
): InstanceType<VoltAgent['Agent']> =>
  new Agent({ name: 'test', instructions: 'go', model, tools, memory: false, maxRetries: 0 });

export function voltAgentWith(volt: VoltAgent): Framework {
  return {
    name: 'VoltAgent 2.10 `generateText`',
    entry: 'voltagent: guardTool(createTool)',
    run: (script, seen) => {
      const make = script.guarded ? guardTool(volt.createTool, { defaults: defaultsOf(script) }) : volt.createTool;
      return agentOf(volt, olderModel(script, seen), toolsOf(make, seen)).generateText(
        'go',
        script.signal === undefined ? {} : { abortSignal: script.signal },
      );
    },
  };
}

export const voltAgentPaying: PayingFramework = {
  name: 'VoltAgent',
  pay: async (execute, options) => {
    const volt = await loadVoltAgent();
    const make = guardTool(volt.createTool, onePolicy(options, 'pay'));
    const pay = make({ name: 'pay', description: 'pays', parameters: z.object({}), execute });
    return agentOf(volt, olderModel(PAY_SCRIPT, nothingSeen()), [pay]).generateText('go');
  },
};
