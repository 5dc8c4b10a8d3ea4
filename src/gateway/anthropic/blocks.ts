import { readWireInput } from '../../agent/wire/input.ts';
import type { SseEvent } from '../wire/sse.ts';

export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** A block of an answer: what it says, and its JSON as it goes back upstream. */
export interface Block {
  readonly value: Fields;
  readonly json: string;
  /** Of a `tool_use`: what the model wrote, when that was no JSON. */
  readonly unparsed?: string;
}

/** A block while it comes. */
interface OpenBlock {
  readonly fields: Record<string, unknown>;
  /** Pieces of JSON, of a block that has an input. */
  json: string;
  /** What came of it last, not yet read: most blocks are never asked for. */
  readonly deltas: SseEvent[];
}

const grow = (fields: Record<string, unknown>, name: string, piece: unknown): void => {
  const before = fields[name];
  if (typeof piece === 'string' && typeof before === 'string') fields[name] = before + piece;
  else fields[name] = piece;
};

/** An escaped surrogate: it may be a lone one, which no provider takes back. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

const finished = ({ fields, json }: OpenBlock): Block => {
  if (json === '') return { value: fields, json: JSON.stringify(fields) };
  const { input, unparsed } = readWireInput(json);
  const isObject = unparsed === undefined && typeof input === 'object' && input !== null && !Array.isArray(input);
  // The API takes back objects only; what the model wrote instead stays visible to it.
  if (!isObject)
    return {
      value: { ...fields, input: {} },
      json: JSON.stringify({ ...fields, input: { $unparsed: json.toWellFormed() } }),
      unparsed: json,
    };
  const { input: _, ...rest } = fields;
  const written = ESCAPED_SURROGATE.test(json) ? JSON.stringify(input) : json;
  // As the model wrote it: numbers keep all their digits.
  return { value: { ...rest, input }, json: `${JSON.stringify(rest).slice(0, -1)},"input":${written}}` };
};

const readDelta = (block: OpenBlock, event: SseEvent): void => {
  const { type, partial_json: json, citation, ...rest } = fieldsOf(fieldsOf(event.value)['delta']);
  const { fields } = block;
  if (type === 'input_json_delta') block.json += typeof json === 'string' ? json : '';
  else if (type === 'citations_delta')
    fields['citations'] = [...(Array.isArray(fields['citations']) ? (fields['citations'] as unknown[]) : []), citation];
  else for (const [name, piece] of Object.entries(rest)) grow(fields, name, piece);
};

/**
 * Deltas that are kept unread: as they come they take ten times what they say, and a long answer has tens of thousands.
 */
const UNREAD_MAX = 256;

const readDeltas = (block: OpenBlock): void => {
  for (const event of block.deltas.splice(0)) readDelta(block, event);
};

/**
 * Puts the blocks of a streamed answer together. Kinds of blocks and deltas that are not known are kept by their
 * fields.
 */
export class BlockAssembler {
  readonly #open = new Map<unknown, OpenBlock>();
  #finished: readonly Block[] | undefined;
  #hasCalls = false;

  start(index: unknown, block: Fields): void {
    this.#open.set(index, { fields: { ...block }, json: '', deltas: [] });
    this.#hasCalls ||= block['type'] === 'tool_use';
  }

  grow(index: unknown, event: SseEvent): void {
    const block = this.#open.get(index);
    if (block !== undefined && block.deltas.push(event) >= UNREAD_MAX) readDeltas(block);
  }

  isToolUse(index: unknown): boolean {
    return this.#open.get(index)?.fields['type'] === 'tool_use';
  }

  get hasCalls(): boolean {
    return this.#hasCalls;
  }

  /** All blocks, in the order in which they began. For when all have come. */
  get blocks(): readonly Block[] {
    return (this.#finished ??= [...this.#open.values()].map((block) => {
      readDeltas(block);
      return finished(block);
    }));
  }
}

/** The sum of two usages: numbers are added, at any depth; of anything else the later one counts. */
export function addUsage(a: Fields, b: Fields): Fields {
  const sum: Record<string, unknown> = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const before = sum[name];
    if (typeof value === 'number' && typeof before === 'number') sum[name] = before + value;
    else if (typeof value === 'object' && value !== null && !Array.isArray(value))
      sum[name] = addUsage(fieldsOf(before), fieldsOf(value));
    else if (value !== null || before === undefined) sum[name] = value;
  }
  return sum;
}

/** The usage of one step: what its end says replaces what its beginning said. */
export function latestUsage(begun: Fields, ended: Fields): Fields {
  return {
    ...begun,
    ...Object.fromEntries(Object.entries(ended).filter(([, value]) => value !== null && value !== undefined)),
  };
}

const isBlankText = ({ value }: Block): boolean => value['type'] === 'text' && !/\S/.test(String(value['text']));

/** The content of an answer as it goes back upstream: the API takes no text without text. */
export const contentJson = (blocks: readonly Block[]): string =>
  `[${blocks
    .filter((block) => !isBlankText(block))
    .map(({ json }) => json)
    .join(',')}]`;
