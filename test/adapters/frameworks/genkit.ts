import { spillwayMiddleware, type SpillwayGenkitOptions } from 'spillway/adapters/genkit';
import { sideInstall } from '../../side-install.ts';
import { PACKAGES } from './packages.ts';
import {
  BEHAVIOUR,
  PAY_SCRIPT,
  behave,
  defaultsOf,
  nothingSeen,
  once,
  type Framework,
  type PayingFramework,
  type Script,
  type Seen,
} from './kit.ts';

/** As much of Genkit's types as is used here: it is not in the main install. */
interface Part {
  readonly toolRequest?: { readonly name: string; readonly ref?: string; readonly input?: unknown };
  readonly toolResponse?: { readonly name: string; readonly ref?: string; readonly output?: unknown };
  readonly text?: string;
  readonly metadata?: object;
}
interface Message {
  readonly role: string;
  readonly content: readonly Part[];
}
export interface GenkitContext {
  readonly abortSignal?: AbortSignal;
  readonly resumed?: unknown;
  interrupt(metadata?: object): never;
}
export interface GenkitResponse {
  readonly text: string;
  readonly messages: readonly Message[];
  readonly interrupts: readonly Part[];
}
export interface Ai {
  defineModel(options: object, fn: (request: { readonly messages: readonly Message[] }) => Promise<object>): object;
  defineTool(config: object, fn: (input: never, context: GenkitContext) => Promise<unknown>): object;
  generate(options: object): Promise<GenkitResponse>;
}
export interface Genkit {
  genkit(options?: object): Ai;
  readonly z: {
    object(shape: object): unknown;
    number(): unknown;
    string(): unknown;
    any(): unknown;
  };
  readonly generateMiddleware: SpillwayGenkitOptions<() => object>['generateMiddleware'];
}

export const loadGenkit: () => Promise<Genkit> = once(async () => {
  const load = await sideInstall(...PACKAGES.genkit);
  // Interrupts are in its beta.
  return Object.assign({}, (await load('genkit')) as object, (await load('genkit/beta')) as object) as Genkit;
});

const note = (messages: readonly Message[], seen: Seen): void => {
  const results = messages.flatMap(({ content }) => content).flatMap(({ toolResponse }) => toolResponse ?? []);
  seen.shown += JSON.stringify(results);
  for (const { ref = '', output } of results) seen.told.set(ref, JSON.stringify(output));
};

/** An app with a model that makes the script's calls, then answers. */
export function scriptedAi(
  { genkit }: Genkit,
  { calls, steps = 1 }: Script,
  seen: Seen,
): Ai & { readonly model: object } {
  const ai = genkit();
  let step = 0;
  const model = ai.defineModel({ name: 'scripted', supports: { tools: true } }, ({ messages }) => {
    const asks = step++ < steps && calls.length > 0;
    if (!asks) note(messages, seen);
    const content = asks
      ? calls.map(({ id, name, input }) => ({ toolRequest: { name, ref: id, input } }))
      : [{ text: 'done' }];
    return Promise.resolve({ message: { role: 'model', content }, finishReason: 'stop' });
  });
  return Object.assign(ai, { model });
}

const toolsOf = (ai: Ai, { z }: Genkit, seen: Seen): object[] =>
  Object.keys(BEHAVIOUR).map((name) =>
    ai.defineTool(
      { name, description: 'a tool of the test', inputSchema: z.object(name === 'strict' ? { n: z.number() } : {}) },
      (_input, { abortSignal }) => behave(name, seen, abortSignal),
    ),
  );

export function genkitWith(genkit: Genkit): Framework {
  const { generateMiddleware } = genkit;
  return {
    name: 'Genkit 1.42 `ai.generate`',
    entry: 'genkit: spillwayMiddleware({ generateMiddleware })',
    unknownEnds: true,
    run: async (script, seen) => {
      const ai = scriptedAi(genkit, script, seen);
      const use = script.guarded ? [spillwayMiddleware({ generateMiddleware, defaults: defaultsOf(script) })()] : [];
      const own = script.signal === undefined ? {} : { abortSignal: script.signal };
      await ai.generate({ model: ai.model, prompt: 'go', tools: toolsOf(ai, genkit, seen), use, ...own });
      script.signal?.throwIfAborted();
    },
  };
}

export const genkitPaying: PayingFramework = {
  name: 'Genkit',
  pay: async (execute, options) => {
    const genkit = await loadGenkit();
    const { generateMiddleware, z } = genkit;
    const ai = scriptedAi(genkit, PAY_SCRIPT, nothingSeen());
    const pay = ai.defineTool({ name: 'pay', description: 'pays', inputSchema: z.object({}) }, execute);
    const guard = spillwayMiddleware({ generateMiddleware, ...options });
    return ai.generate({ model: ai.model, prompt: 'go', tools: [pay], use: [guard()] });
  },
};
