import { AI_SDK, storedPart } from './prompt.ts';
import type { ProviderData } from '../message.ts';
import type { ModelEvent, ModelUsage, StopReason } from '../model.ts';
import { readWireInput } from '../wire/input.ts';
import type { WireNames } from '../wire/names.ts';

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** `interrupted` and `error` are no reasons: the answer is not whole. */
const STOPS: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  length: 'max_tokens',
  'content-filter': 'refusal',
  'tool-calls': 'tool_calls',
  other: 'other',
};

const usageOf = (value: unknown): ModelEvent[] => {
  const { inputTokens, outputTokens } = fieldsOf(value);
  const counts = {
    inputTokens: fieldsOf(inputTokens)['total'],
    outputTokens: fieldsOf(outputTokens)['total'],
    cacheReadTokens: fieldsOf(inputTokens)['cacheRead'],
    cacheWriteTokens: fieldsOf(inputTokens)['cacheWrite'],
  };
  const usage: ModelUsage = Object.fromEntries(Object.entries(counts).filter(([, count]) => typeof count === 'number'));
  return Object.keys(usage).length === 0 ? [] : [{ type: 'usage', usage }];
};

const dataOf = (metadata: unknown): { readonly data?: ProviderData } =>
  metadata === undefined ? {} : { data: { provider: AI_SDK, value: metadata } };
const block = (value: unknown): ModelEvent[] => [{ type: 'block', provider: AI_SDK, value }];

/** Reads the stream of a language model of the AI SDK, part by part. */
export class AiSdkReader {
  readonly #names: WireNames;
  /** Texts and thoughts while they come, by their id. */
  readonly #open = new Map<unknown, { text: string; metadata: unknown }>();

  /** A call without input that came last: whether the answer was cut off there is only said at its end. */
  #held: Extract<ModelEvent, { type: 'tool_call' }> | undefined;

  constructor(names: WireNames) {
    this.#names = names;
  }

  /** @throws the error that a part of the stream holds */
  read(part: unknown): ModelEvent[] {
    const held = this.#held;
    const events = this.#read(part);
    const isReplaced = this.#held !== held;
    if (held === undefined || (events.length === 0 && !isReplaced)) return events;
    if (!isReplaced) this.#held = undefined;
    const { input, ...call } = held;
    const isCut = events.some((event) => event.type === 'stop' && event.reason === 'max_tokens');
    return [{ ...call, ...(isCut ? { unparsed: '' } : { input }) }, ...events];
  }

  #read(part: unknown): ModelEvent[] {
    const { type, id, ...rest } = fieldsOf(part);
    switch (type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open.set(id, { text: '', metadata: rest['providerMetadata'] });
        return [];
      case 'text-delta':
        this.#grow(id, rest);
        return [{ type: 'text', text: textOf(rest['delta']) }];
      case 'reasoning-delta':
        this.#grow(id, rest);
        return [{ type: 'thinking', text: textOf(rest['delta']) }];
      case 'text-end':
        return [{ type: 'text_end', ...dataOf(this.#close(id, rest).metadata) }];
      case 'reasoning-end': {
        const { text, metadata } = this.#close(id, rest);
        return block(storedPart({ type: 'reasoning', text, providerMetadata: metadata }));
      }
      case 'tool-call':
        return this.#call(rest);
      case 'tool-result':
        return this.#result(rest);
      case 'file':
      case 'reasoning-file':
      case 'custom':
        return block(storedPart({ type, ...rest }));
      case 'finish': {
        const reason = STOPS[textOf(fieldsOf(rest['finishReason'])['unified'])];
        return [...usageOf(rest['usage']), ...(reason === undefined ? [] : [{ type: 'stop' as const, reason }])];
      }
      case 'error':
        throw rest['error'];
      default:
        return [];
    }
  }

  #grow(id: unknown, { delta, providerMetadata }: Fields): void {
    const open = this.#open.get(id) ?? { text: '', metadata: undefined };
    this.#open.set(id, { text: open.text + textOf(delta), metadata: providerMetadata ?? open.metadata });
  }

  #close(id: unknown, rest: Fields): { readonly text: string; readonly metadata: unknown } {
    this.#grow(id, { ...rest, delta: '' });
    const closed = this.#open.get(id) ?? { text: '', metadata: undefined };
    this.#open.delete(id);
    return closed;
  }

  #call({ toolCallId, toolName, input, providerExecuted, providerMetadata }: Fields): ModelEvent[] {
    const json = textOf(input);
    const said = json === '' ? { input: {} } : readWireInput(json);
    const own = { toolCallId, toolName, input: said.input ?? {} };
    if (providerExecuted === true)
      return block(storedPart({ type: 'tool-call', ...own, providerExecuted, providerMetadata }));
    const call = {
      type: 'tool_call',
      id: textOf(toolCallId),
      name: this.#names.own(textOf(toolName)),
      ...said,
      ...dataOf(providerMetadata),
    } as const;
    if (json !== '' && json !== '{}') return [call];
    this.#held = call;
    return [];
  }

  /** Of a tool that the provider ran itself. */
  #result({ toolCallId, toolName, result, isError, preliminary, providerMetadata }: Fields): ModelEvent[] {
    if (preliminary === true) return [];
    const output = { type: isError === true ? 'error-json' : 'json', value: result ?? null };
    return block(storedPart({ type: 'tool-result', toolCallId, toolName, output, providerMetadata }));
  }
}
