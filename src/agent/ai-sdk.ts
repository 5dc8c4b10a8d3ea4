import { Observable, concatMap, defer, from, switchMap } from 'rxjs';
import { checkKeys } from '../policy/check.ts';
import { toPrompt } from './ai-sdk/prompt.ts';
import { AiSdkReader } from './ai-sdk/stream.ts';
import type { AgentModel, ModelTool } from './model.ts';
import { WireIds, WireNames } from './wire/names.ts';

/** The narrowest limit among the providers of the AI SDK. */
const TOOL_NAME_MAX = 64;

interface AiSdkCall {
  readonly prompt: never[];
  readonly tools?: never[];
  readonly abortSignal?: AbortSignal;
}

/** What is used of a language model of AI SDK 6 and 7: `anthropic('...')`, `openai('...')`, a mock of `ai/test`. */
export interface AiSdkModelLike {
  readonly specificationVersion: string;
  doStream(call: AiSdkCall): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** What goes into each call, as the language model takes it. */
export interface AiSdkSettings {
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly topP?: number;
  readonly topK?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly seed?: number;
  readonly toolChoice?: { readonly type: 'auto' | 'none' | 'required' } | { readonly type: 'tool'; readonly toolName: string };
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly reasoning?: string;
  readonly responseFormat?: unknown;
}

const SETTINGS = ['maxOutputTokens', 'temperature', 'stopSequences', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed', 'toolChoice', 'headers', 'providerOptions', 'reasoning', 'responseFormat'];
const VERSIONS = ['v3', 'v4'];

/** Reads a stream of the web; unsubscribing cancels it. */
const parts = (stream: ReadableStream<unknown>): Observable<unknown> =>
  new Observable((subscriber) => {
    const reader = stream.getReader();
    const pull = (): void => {
      reader.read().then(
        ({ done, value }) => {
          if (subscriber.closed) return;
          if (done) return subscriber.complete();
          subscriber.next(value);
          if (!subscriber.closed) pull();
        },
        (error: unknown) => subscriber.error(error),
      );
    };
    pull();
    // Nobody waits for it: one that has ended refuses, or takes it for done.
    return () => void reader.cancel().then(undefined, () => undefined);
  });

const functionTool = ({ name, description, inputSchema }: ModelTool, names: WireNames): unknown => ({
  type: 'function',
  name: names.wire(name),
  ...(description === undefined ? {} : { description }),
  inputSchema,
});

/**
 * Any language model of the AI SDK (6 and 7: specifications v3 and v4), streaming.
 *
 * Reasoning, files and what a provider runs itself are kept in the messages and given back untouched, with their provider's metadata. A stream
 * that ends as `interrupted` or tells an error counts as broken off. Names of tools that providers would refuse are changed on the wire and back.
 *
 * @param model the language model itself, not its name
 * @param settings what each call shall have: `maxOutputTokens`, `temperature`, `providerOptions` ...
 * @throws RangeError for what is no language model, or a setting that does not exist
 *
 * @example
 * const languageModel: AiSdkModelLike = { specificationVersion: 'v4', doStream: () => Promise.reject(new Error('offline')) };
 * const model = aiSdkModel(languageModel, { maxOutputTokens: 4_096 });
 */
export function aiSdkModel(model: AiSdkModelLike, settings: AiSdkSettings = {}): AgentModel {
  if (typeof model?.doStream !== 'function') throw new RangeError('model must be a language model of the AI SDK, as its providers make them; a name alone is none');
  if (!VERSIONS.includes(model.specificationVersion)) throw new RangeError(`model must be of specification ${VERSIONS.join(' or ')}, not ${model.specificationVersion}`);
  checkKeys('aiSdkModel', settings, SETTINGS);
  return (messages, tools, { signal, system }) =>
    defer(() => {
      const names = new WireNames(TOOL_NAME_MAX);
      const wireTools = tools.map((tool) => functionTool(tool, names));
      // The shapes of its own types: they are checked in the tests, against the real package.
      const call = { ...settings, prompt: toPrompt(messages, system, names, new WireIds()) as never[], ...(wireTools.length === 0 ? {} : { tools: wireTools as never[] }), abortSignal: signal };
      const reader = new AiSdkReader(names);
      return from(model.doStream(call)).pipe(
        switchMap(({ stream }) => parts(stream)),
        concatMap((part) => reader.read(part)),
      );
    });
}
