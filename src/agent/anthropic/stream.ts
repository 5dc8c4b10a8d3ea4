import { ANTHROPIC } from './messages.ts';
import type { ModelEvent, ModelUsage, StopReason } from '../model.ts';
import { readWireInput } from '../wire/input.ts';
import type { WireNames } from '../wire/names.ts';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const STOPS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'tool_calls',
  max_tokens: 'max_tokens',
  pause_turn: 'pause',
  refusal: 'refusal',
  model_context_window_exceeded: 'context_full',
};

const USAGE = [
  ['input_tokens', 'inputTokens'],
  ['output_tokens', 'outputTokens'],
  ['cache_read_input_tokens', 'cacheReadTokens'],
  ['cache_creation_input_tokens', 'cacheWriteTokens'],
] as const;

const usageOf = (value: unknown): ModelEvent[] => {
  const usage: ModelUsage = Object.fromEntries(
    USAGE.filter(([wire]) => typeof fieldsOf(value)[wire] === 'number').map(([wire, name]) => [
      name,
      fieldsOf(value)[wire],
    ]),
  );
  return Object.keys(usage).length === 0 ? [] : [{ type: 'usage', usage }];
};

/** A block while it comes. */
interface OpenBlock {
  readonly fields: Record<string, unknown>;
  /** Pieces of JSON. */
  json: string;
}

/**
 * The fields of a block that we do not hold ourselves: kept for the provider. `null` says nothing and need not go back.
 */
const others = (
  fields: Fields,
  held: readonly string[],
): { readonly data?: { readonly provider: string; readonly value: unknown } } => {
  const rest = Object.entries(fields).filter(
    ([key, value]) => !held.includes(key) && value !== null && value !== undefined,
  );
  return rest.length === 0 ? {} : { data: { provider: ANTHROPIC, value: Object.fromEntries(rest) } };
};

/**
 * Reads the stream of the Messages API, raw event by raw event. Kinds of blocks that it does not know are kept whole.
 */
export class AnthropicReader {
  readonly #names: WireNames;
  readonly #open = new Map<unknown, OpenBlock>();
  /** A call whose block has ended: whether it was cut off there is only said afterwards. */
  #held: OpenBlock | undefined;
  #stop: StopReason | undefined;

  constructor(names: WireNames) {
    this.#names = names;
  }

  read(event: unknown): ModelEvent[] {
    const { type, index, ...rest } = fieldsOf(event);
    switch (type) {
      case 'message_start':
        return usageOf(fieldsOf(rest['message'])['usage']);
      case 'content_block_start':
        return [...this.#release(), ...this.#start(index, fieldsOf(rest['content_block']))];
      case 'content_block_delta':
        return this.#grow(this.#open.get(index), fieldsOf(rest['delta']));
      case 'content_block_stop':
        return this.#end(index);
      case 'message_delta': {
        const reason = fieldsOf(rest['delta'])['stop_reason'];
        if (typeof reason === 'string') this.#stop = STOPS[reason] ?? 'other';
        return [...usageOf(rest['usage']), ...this.#release()];
      }
      case 'message_stop':
        return [...this.#release(), { type: 'stop', reason: this.#stop ?? 'other' }];
      default:
        return [];
    }
  }

  #start(index: unknown, block: Fields): ModelEvent[] {
    this.#open.set(index, { fields: { ...block }, json: '' });
    const text = textOf(block['text']);
    return block['type'] === 'text' && text !== '' ? [{ type: 'text', text }] : [];
  }

  #grow(block: OpenBlock | undefined, delta: Fields): ModelEvent[] {
    if (block === undefined) return [];
    const { fields } = block;
    const append = (key: string, piece: unknown): string => {
      const text = textOf(piece);
      fields[key] = `${textOf(fields[key])}${text}`;
      return text;
    };
    switch (delta['type']) {
      case 'text_delta':
        return [{ type: 'text', text: append('text', delta['text']) }];
      case 'thinking_delta':
        return [{ type: 'thinking', text: append('thinking', delta['thinking']) }];
      case 'input_json_delta':
        block.json += textOf(delta['partial_json']);
        return [];
      case 'signature_delta':
        fields['signature'] = delta['signature'];
        return [];
      case 'citations_delta':
        fields['citations'] = [
          ...(Array.isArray(fields['citations']) ? (fields['citations'] as unknown[]) : []),
          delta['citation'],
        ];
        return [];
      default: {
        // A kind of piece from after this was written: texts grow, all else is as it last was.
        for (const [key, value] of Object.entries(delta)) {
          if (key === 'type') continue;
          if (typeof value === 'string') append(key, value);
          else fields[key] = value;
        }
        return [];
      }
    }
  }

  #end(index: unknown): ModelEvent[] {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block === undefined) return [];
    const { fields, json } = block;
    if (fields['type'] === 'text') return [{ type: 'text_end', ...others(fields, ['type', 'text']) }];
    if (fields['type'] === 'tool_use') {
      this.#held = block;
      return [];
    }
    // A server's own tool: its input comes in pieces as well.
    const value = json === '' ? fields : { ...fields, input: readWireInput(json).input ?? {} };
    return [{ type: 'block', provider: ANTHROPIC, value }];
  }

  #release(): ModelEvent[] {
    const block = this.#held;
    this.#held = undefined;
    if (block === undefined) return [];
    const { fields, json } = block;
    const call = {
      type: 'tool_call',
      id: textOf(fields['id']),
      name: this.#names.own(textOf(fields['name'])),
      ...others(fields, ['type', 'id', 'name', 'input']),
    } as const;
    // No input at all means an empty one, unless the answer was cut off right there.
    if (json === '')
      return [
        {
          ...call,
          ...(this.#stop === 'max_tokens' || this.#stop === 'context_full'
            ? { unparsed: '' }
            : { input: fields['input'] ?? {} }),
        },
      ];
    return [{ ...call, ...readWireInput(json) }];
  }
}
