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
  /** `v3` (AI SDK 6) or `v4` (AI SDK 7); any other is refused. */
  readonly specificationVersion: string;
  /** Asks the model. Rejects, or errors the stream, with whatever the provider throws. */
  doStream(call: AiSdkCall): PromiseLike<{
    /** The parts of the answer, as the model's specification has them. */
    readonly stream: ReadableStream<unknown>;
  }>;
}

/**
 * What goes into each call, with the names and defaults of the AI SDK's `LanguageModelV4CallOptions`. What is left out
 * is not sent, and the provider's own default holds.
 */
export interface AiSdkSettings {
  /** The most tokens that one answer may have. An answer cut off by it ends the run with the reason `output_tokens`. */
  readonly maxOutputTokens?: number;
  /** How random the answer is; each provider has its own range. */
  readonly temperature?: number;
  /** Texts at which the model stops. Providers limit how many there may be. */
  readonly stopSequences?: readonly string[];
  /** Nucleus sampling: only the most likely tokens that together have this probability are drawn from. */
  readonly topP?: number;
  /** Only this many of the most likely tokens are drawn from. */
  readonly topK?: number;
  /** How strongly the model avoids what the prompt already has. */
  readonly presencePenalty?: number;
  /** How strongly the model avoids using the same words again. */
  readonly frequencyPenalty?: number;
  /** An integer; a provider that supports it then answers the same each time. */
  readonly seed?: number;
  /** Which tools the model may or must call. Default: `auto`, the specification's. */
  readonly toolChoice?:
    | {
        /** `auto`: the model decides; `none`: it calls no tool; `required`: it calls one at least. */
        readonly type: 'auto' | 'none' | 'required';
      }
    | {
        /** The model calls the named tool. */
        readonly type: 'tool';
        /** The tool's name as the provider sees it: `files.read` is `files_read` there. */
        readonly toolName: string;
      };
  /** HTTP headers added to each request; `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Options of one provider, by its name: `{ anthropic: { thinking: { type: 'enabled', budgetTokens: 4_096 } } }`. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** How much the model reasons before it answers, such as `low` or `high`. Default: the provider's. */
  readonly reasoning?: string;
  /** `{ type: 'text' }`, or `{ type: 'json', schema?, name?, description? }`. Default: text. */
  readonly responseFormat?: unknown;
}

const SETTINGS = [
  'maxOutputTokens',
  'temperature',
  'stopSequences',
  'topP',
  'topK',
  'presencePenalty',
  'frequencyPenalty',
  'seed',
  'toolChoice',
  'headers',
  'providerOptions',
  'reasoning',
  'responseFormat',
];
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
 * Reasoning, files and what a provider runs itself are kept in the messages and given back untouched, with their
 * provider's metadata. A stream that ends as `interrupted` or holds an error counts as broken off. Names of tools that
 * providers would refuse are changed on the wire and back.
 *
 * @param model the language model itself, not its name
 * @param settings what each call shall have: `maxOutputTokens`, `temperature`, `providerOptions` ...
 * @throws RangeError for what is no language model, or a setting that does not exist
 *
 * @example const languageModel: AiSdkModelLike = { specificationVersion: 'v4', doStream: () => Promise.reject(new
 * Error('offline')) }; const model = aiSdkModel(languageModel, { maxOutputTokens: 4_096 });
 */
export function aiSdkModel(model: AiSdkModelLike, settings: AiSdkSettings = {}): AgentModel {
  if (typeof model?.doStream !== 'function')
    throw new RangeError(
      'model must be a language model of the AI SDK, as its providers make them; a name alone is none',
    );
  if (!VERSIONS.includes(model.specificationVersion))
    throw new RangeError(`model must be of specification ${VERSIONS.join(' or ')}, not ${model.specificationVersion}`);
  checkKeys('aiSdkModel', settings, SETTINGS);
  return (messages, tools, { signal, system }) =>
    defer(() => {
      const names = new WireNames(TOOL_NAME_MAX);
      const wireTools = tools.map((tool) => functionTool(tool, names));
      // The shapes of its own types: they are checked in the tests, against the real package.
      const call = {
        ...settings,
        prompt: toPrompt(messages, system, names, new WireIds()) as never[],
        ...(wireTools.length === 0 ? {} : { tools: wireTools as never[] }),
        abortSignal: signal,
      };
      const reader = new AiSdkReader(names);
      return from(model.doStream(call)).pipe(
        switchMap(({ stream }) => parts(stream)),
        concatMap((part) => reader.read(part)),
      );
    });
}
