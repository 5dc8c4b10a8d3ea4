import { guardTool } from 'spillway/adapters/google-adk';
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

/** As much of ADK's types as is used here: it is not in the main install. */
export interface AdkContext {
  readonly functionCallId?: string;
  readonly abortSignal?: AbortSignal;
  readonly state: { get(name: string): unknown; set(name: string, value: unknown): void };
}
interface Part {
  readonly text?: string;
  readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: unknown };
  readonly functionResponse?: { readonly id?: string; readonly name: string; readonly response: unknown };
}
interface Content {
  readonly role?: string;
  readonly parts?: readonly Part[];
}
export interface AdkEvent {
  readonly content?: Content;
  readonly errorMessage?: string;
}
export interface AdkRunner {
  readonly appName: string;
  readonly sessionService: {
    createSession(options: object): Promise<{ readonly id: string }>;
    getSession(options: object): Promise<{ readonly state: Readonly<Record<string, unknown>> } | undefined>;
  };
  runAsync(options: object): AsyncIterable<AdkEvent>;
}
export interface Adk {
  readonly Context: new (options: never) => object;
  readonly BaseLlm: new (options: { readonly model: string }) => object;
  readonly LlmAgent: new (options: object) => object;
  readonly InMemoryRunner: new (options: object) => AdkRunner;
  readonly FunctionTool: new (options: {
    readonly name: string;
    readonly description: string;
    readonly parameters?: unknown;
    readonly requireConfirmation?: unknown;
    readonly execute: (input: unknown, context: AdkContext) => unknown;
  }) => object;
  setLogLevel?(level: number): void;
}

export const loadAdk: () => Promise<Adk> = once(async () => {
  const load = await sideInstall(...PACKAGES.adk);
  const adk = (await load('@google/adk')) as Adk;
  adk.setLogLevel?.(3);
  return adk;
});

const note = (contents: readonly Content[], seen: Seen, ids: ReadonlyMap<string, string>): void => {
  const results = contents.flatMap(({ parts = [] }) => parts).flatMap(({ functionResponse }) => functionResponse ?? []);
  seen.shown += JSON.stringify(results);
  // Ids that are not its own ADK keeps from the model.
  for (const { id, name, response } of results) seen.told.set(id ?? ids.get(name) ?? '', JSON.stringify(response));
};

/** A model that makes the script's calls, then answers. */
export function scriptedLlm({ BaseLlm }: Adk, { calls, steps = 1 }: Script, seen: Seen): object {
  let step = 0;
  const ids = new Map(calls.map(({ id, name }) => [name, id]));
  return new (class extends BaseLlm {
    async *generateContentAsync({ contents }: { readonly contents: readonly Content[] }): AsyncGenerator<object> {
      const asks = step++ < steps && calls.length > 0;
      if (!asks) note(contents, seen, ids);
      const parts = asks
        ? calls.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }))
        : [{ text: 'done' }];
      yield await Promise.resolve({ content: { role: 'model', parts } });
    }
  })({ model: 'scripted' });
}

/** Runs an agent of these tools to its end. */
export const runAdk = async (
  { LlmAgent, InMemoryRunner }: Adk,
  model: object,
  tools: readonly object[],
  abortSignal?: AbortSignal,
): Promise<{ readonly events: readonly AdkEvent[]; readonly runner: AdkRunner; readonly sessionId: string }> => {
  const agent = new LlmAgent({ name: 'test', model, tools, instruction: 'go' });
  const runner = new InMemoryRunner({ agent, appName: 'test' });
  const { id: sessionId } = await runner.sessionService.createSession({ appName: runner.appName, userId: 'u' });
  const events: AdkEvent[] = [];
  const newMessage = { role: 'user', parts: [{ text: 'go' }] };
  const given = abortSignal === undefined ? {} : { abortSignal };
  for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage, ...given })) events.push(event);
  const failed = events.find(({ errorMessage }) => errorMessage !== undefined);
  if (failed !== undefined) throw new Error(failed.errorMessage);
  return { events, runner, sessionId };
};

const toolsOf = (FunctionTool: Adk['FunctionTool'], seen: Seen): object[] =>
  Object.keys(BEHAVIOUR).map(
    (name) =>
      new FunctionTool({
        name,
        description: 'a tool of the test',
        parameters: name === 'strict' ? z.object({ n: z.number() }) : z.object({}),
        execute: (_input, { abortSignal }) => behave(name, seen, abortSignal),
      }),
  );

export function adkWith(adk: Adk): Framework {
  return {
    name: 'Google `@google/adk` 2.0 `Runner`',
    entry: 'google-adk: guardTool(FunctionTool)',
    sequential: true,
    unknownEnds: true,
    run: async (script, seen) => {
      const FunctionTool = script.guarded
        ? guardTool(adk.FunctionTool, { defaults: defaultsOf(script) })
        : adk.FunctionTool;
      await runAdk(adk, scriptedLlm(adk, script, seen), toolsOf(FunctionTool, seen), script.signal);
      script.signal?.throwIfAborted();
    },
  };
}

export const adkPaying: PayingFramework = {
  name: 'Google ADK',
  pay: async (execute, options) => {
    const adk = await loadAdk();
    const FunctionTool = guardTool(adk.FunctionTool, onePolicy(options, 'pay'));
    const pay = new FunctionTool({ name: 'pay', description: 'pays', parameters: z.object({}), execute });
    return runAdk(adk, scriptedLlm(adk, PAY_SCRIPT, nothingSeen()), [pay]);
  },
};
