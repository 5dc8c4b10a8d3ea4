import { guardTool } from 'spillway/adapters/strands';
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

/** As much of Strands' types as is used here: it is not in the main install. */
export interface StrandsContext {
  readonly toolUse: { readonly toolUseId: string };
  readonly cancelSignal: AbortSignal;
  interrupt(params: { readonly name: string; readonly reason?: unknown }): unknown;
}
interface Block {
  readonly type: string;
  readonly toolUseId?: string;
  readonly content?: unknown;
}
interface Message {
  readonly content: readonly Block[];
}
export interface Strands {
  readonly Agent: new (options: object) => {
    invoke(
      input: unknown,
      options?: object,
    ): Promise<{ readonly stopReason: string; readonly interrupts?: readonly { readonly id: string }[] }>;
    stream(input: unknown): AsyncIterable<{ readonly type: string; readonly event?: { readonly data?: unknown } }>;
  };
  readonly Model: new () => object;
  readonly FunctionTool: new (definition: object) => object;
  tool(definition: {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: unknown;
    readonly callback: (input: unknown, context: StrandsContext) => unknown;
  }): object;
}

export const loadStrands: () => Promise<Strands> = once(async () => {
  const load = await sideInstall(...PACKAGES.strands);
  return (await load('@strands-agents/sdk')) as Strands;
});

const note = (messages: readonly Message[], seen: Seen): void => {
  const results = messages.flatMap(({ content }) => content).filter(({ type }) => type === 'toolResultBlock');
  seen.shown += JSON.stringify(results);
  for (const { toolUseId = '', content } of results) seen.told.set(toolUseId, JSON.stringify(content));
};

/** A model that makes the script's calls, then answers. */
export function scriptedStrands({ Model }: Strands, { calls, steps = 1 }: Script, seen: Seen): object {
  let step = 0;
  return new (class extends Model {
    getConfig(): object {
      return { modelId: 'scripted' };
    }
    updateConfig(): void {}
    async *stream(messages: readonly Message[]): AsyncGenerator<object> {
      const asks = step++ < steps && calls.length > 0;
      if (!asks) note(messages, seen);
      yield await Promise.resolve({ type: 'modelMessageStartEvent', role: 'assistant' });
      for (const { id, name, input } of asks ? calls : []) {
        yield { type: 'modelContentBlockStartEvent', start: { type: 'toolUseStart', name, toolUseId: id } };
        yield {
          type: 'modelContentBlockDeltaEvent',
          delta: { type: 'toolUseInputDelta', input: JSON.stringify(input) },
        };
        yield { type: 'modelContentBlockStopEvent' };
      }
      if (!asks) {
        yield { type: 'modelContentBlockStartEvent' };
        yield { type: 'modelContentBlockDeltaEvent', delta: { type: 'textDelta', text: 'done' } };
        yield { type: 'modelContentBlockStopEvent' };
      }
      yield { type: 'modelMessageStopEvent', stopReason: asks ? 'toolUse' : 'endTurn' };
    }
  })();
}

const toolsOf = (make: Strands['tool'], seen: Seen): object[] =>
  Object.keys(BEHAVIOUR).map((name) =>
    make({
      name,
      description: 'a tool of the test',
      inputSchema: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
      callback: (_input, { cancelSignal }) => behave(name, seen, cancelSignal),
    }),
  );

export function strandsWith(strands: Strands): Framework {
  return {
    name: 'Strands 1.19 `agent.invoke`',
    entry: 'strands: guardTool(tool)',
    run: async (script, seen) => {
      const make = script.guarded ? guardTool(strands.tool, { defaults: defaultsOf(script) }) : strands.tool;
      const model = scriptedStrands(strands, script, seen);
      const agent = new strands.Agent({ model, tools: toolsOf(make, seen), printer: false });
      await agent.invoke('go', script.signal === undefined ? {} : { cancelSignal: script.signal });
      script.signal?.throwIfAborted();
    },
  };
}

export const strandsPaying: PayingFramework = {
  name: 'Strands',
  pay: async (execute, options) => {
    const strands = await loadStrands();
    const make = guardTool(strands.tool, onePolicy(options, 'pay'));
    const pay = make({ name: 'pay', description: 'pays', inputSchema: z.object({}), callback: execute });
    const model = scriptedStrands(strands, PAY_SCRIPT, nothingSeen());
    return new strands.Agent({ model, tools: [pay], printer: false }).invoke('go');
  },
};
