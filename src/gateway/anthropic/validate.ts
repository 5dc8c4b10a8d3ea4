import { misshapen } from './shapes.ts';

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTyped = (value: unknown): value is Fields => isObject(value) && isFilled(value['type']);

/** As the API has it. */
const USE_ID = /^[a-zA-Z0-9_-]+$/;
const ROLES: readonly unknown[] = ['user', 'assistant', 'system'];

/** Options of the API whose type is known. What is not here passes. */
const OPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  metadata: isObject,
  thinking: isObject,
  output_config: isObject,
  context_management: isObject,
  // JSON can hold numbers that are read as infinite.
  temperature: Number.isFinite,
  top_p: Number.isFinite,
  top_k: Number.isSafeInteger,
  service_tier: (value) => typeof value === 'string',
  stop_sequences: (value) => Array.isArray(value) && value.every((text) => typeof text === 'string'),
  betas: (value) => Array.isArray(value) && value.every((text) => typeof text === 'string'),
  mcp_servers: (value) => Array.isArray(value) && value.every(isObject),
};

/** What a request is checked against. */
export interface ShapeLimits {
  /** Blocks in one list. */
  readonly maxBlocks: number;
}

const checkTools = (tools: unknown): void => {
  if (tools === undefined || tools === null) return;
  if (!Array.isArray(tools)) throw misshapen('tools', 'tools');
  const names = new Set<string>();
  tools.forEach((tool: unknown, place) => {
    const at = `tools.${place}`;
    if (!isObject(tool)) throw misshapen('tools', at);
    const { name, type, description, input_schema: schema } = tool;
    if (type !== undefined && type !== null && !isFilled(type)) throw misshapen('option', `${at}.type`);
    if (description !== undefined && description !== null && typeof description !== 'string')
      throw misshapen('option', `${at}.description`);
    if (schema !== undefined && !isObject(schema)) throw misshapen('option', `${at}.input_schema`);
    // Tools of the provider's own may go without a name.
    if (name === undefined && isFilled(type) && type !== 'custom') return;
    if (!isFilled(name)) throw misshapen('tool_name', at);
    if (names.has(name)) throw misshapen('duplicate_tool', at, name);
    names.add(name);
  });
};

const checkSystem = (system: unknown, { maxBlocks }: ShapeLimits): void => {
  if (system === undefined || system === null || typeof system === 'string') return;
  if (!Array.isArray(system)) throw misshapen('system');
  if (system.length > maxBlocks) throw misshapen('many_blocks', 'system');
  system.forEach((block: unknown, place) => {
    if (!isTyped(block)) throw misshapen('system');
    if (block['type'] === 'text' && typeof block['text'] !== 'string') throw misshapen('text', `system.${place}`);
  });
};

const checkOptions = (body: Fields, counting: boolean, limits: ShapeLimits): void => {
  const { model, max_tokens: maxTokens, stream, system, tools, tool_choice: choice } = body;
  if (!isFilled(model)) throw misshapen('model');
  if (!counting && !(Number.isSafeInteger(maxTokens) && Number(maxTokens) >= 0)) throw misshapen('max_tokens');
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') throw misshapen('stream');
  checkSystem(system, limits);
  checkTools(tools);
  if (choice !== undefined && choice !== null && !isTyped(choice)) throw misshapen('tool_choice');
  if (isTyped(choice) && choice['type'] === 'tool' && !isFilled(choice['name']))
    throw misshapen('option', 'tool_choice.name');
  for (const [name, holds] of Object.entries(OPTIONS)) {
    const value = body[name];
    if (value !== undefined && value !== null && !holds(value)) throw misshapen('option', name);
  }
};

const isEmptyContent = (content: unknown): boolean => {
  if (content === undefined || content === null) return true;
  if (typeof content === 'string') return !/\S/.test(content);
  return (
    Array.isArray(content) &&
    content.every((block) => isObject(block) && block['type'] === 'text' && !/\S/.test(String(block['text'])))
  );
};

const FILES: readonly unknown[] = ['image', 'document'];

/** Images and documents in blocks need a source; a document's source may hold blocks of its own. */
const checkSource = (block: Fields, at: string, rule: 'source' | 'result_source'): void => {
  if (!FILES.includes(block['type'])) return;
  const { source } = block;
  if (!isObject(source)) throw misshapen(rule, at);
  const { content } = source;
  if (!Array.isArray(content)) return;
  content.forEach((inner: unknown, place) => {
    if (isObject(inner)) checkSource(inner, `${at}.source.content.${place}`, rule);
  });
};

const CALLS: readonly unknown[] = ['tool_use', 'tool_result'];

const checkResultShape = (block: Fields, at: string, { maxBlocks }: ShapeLimits): void => {
  const { content, is_error: isError } = block;
  if (content !== undefined && content !== null && typeof content !== 'string') {
    if (!Array.isArray(content)) throw misshapen('result_content', at);
    if (content.length > maxBlocks) throw misshapen('many_blocks', `${at}.content`);
    content.forEach((inner: unknown, place) => {
      if (!isTyped(inner) || (inner['type'] === 'text' && typeof inner['text'] !== 'string'))
        throw misshapen('result_block', `${at}.content.${place}`);
      if (CALLS.includes(inner['type'])) throw misshapen('nested_block', `${at}.content.${place}`);
      checkSource(inner, `${at}.content.${place}`, 'result_source');
    });
  }
  if (isError !== undefined && isError !== null && typeof isError !== 'boolean') throw misshapen('result_flag', at);
  if (isError === true && isEmptyContent(content)) throw misshapen('empty_error', at);
};

/** Follows calls and results through the messages. Messages of one role in a row are one, as the API has it. */
class ToolUsePairs {
  /** Every id, and where it was. */
  readonly #uses = new Set<string>();
  /** Of the assistant's turn now: ids without a result, and where they stand. */
  readonly #open = new Map<string, string>();
  #answered = new Set<string>();
  /** The upstream holds the messages before these: it knows what the first results answer. */
  #followsHeld: boolean;
  #role: unknown;
  /** The turn now holds more than results. */
  #hasSaid = false;

  constructor(followsHeld: boolean) {
    this.#followsHeld = followsHeld;
  }

  /** A message begins. */
  turnTo(role: unknown): void {
    // Between calls and their results there is nothing.
    if (role === 'system') return this.#checkAnswered();
    if (role === this.#role) return;
    if (role === 'assistant') {
      this.settle();
      this.#followsHeld = false;
    }
    this.#role = role;
    this.#hasSaid = false;
  }

  /** A block that no result may come after, since the API wants them first. */
  say(): void {
    this.#hasSaid = true;
  }

  use(block: Fields, at: string): void {
    const { id, name, input } = block;
    if (this.#role !== 'assistant') throw misshapen('use_place', at);
    if (!isFilled(id) || !USE_ID.test(id)) throw misshapen('use_id', at);
    if (!isFilled(name)) throw misshapen('use_name', at);
    if (!isObject(input)) throw misshapen('use_input', at);
    if (this.#uses.has(id)) throw misshapen('duplicate_use', at, id);
    this.#uses.add(id);
    this.#open.set(id, at);
  }

  result(block: Fields, at: string, limits: ShapeLimits): void {
    const { tool_use_id: id } = block;
    if (this.#role !== 'user') throw misshapen('result_place', at);
    if (!isFilled(id)) throw misshapen('result_id', at);
    checkResultShape(block, at, limits);
    if (this.#answered.has(id)) throw misshapen('duplicate_result', at, id);
    if (!this.#open.delete(id) && !this.#followsHeld) throw misshapen('orphan_result', at, id);
    this.#answered.add(id);
    if (this.#hasSaid) throw misshapen('late_result', at);
  }

  /** The user's turn is over: all calls before it have their results. */
  settle(): void {
    this.#checkAnswered();
    this.#answered = new Set();
  }

  #checkAnswered(): void {
    const [unanswered] = this.#open;
    if (unanswered !== undefined) throw misshapen('unanswered_use', unanswered[1], unanswered[0]);
  }
}

const SAID: readonly unknown[] = ['text', 'image', 'document', 'search_result'];

const checkMessage = (message: unknown, at: string, pairs: ToolUsePairs, limits: ShapeLimits): void => {
  if (!isObject(message)) throw misshapen('message', at);
  const { role, content } = message;
  if (!ROLES.includes(role)) throw misshapen('role', at);
  pairs.turnTo(role);
  if (typeof content === 'string') return role === 'user' ? pairs.say() : undefined;
  if (!Array.isArray(content)) throw misshapen('content', at);
  if (content.length > limits.maxBlocks) throw misshapen('many_blocks', `${at}.content`);
  content.forEach((block: unknown, place) => {
    const where = `${at}.content.${place}`;
    if (!isTyped(block)) throw misshapen('block', where);
    if (block['type'] === 'text' && typeof block['text'] !== 'string') throw misshapen('text', where);
    checkSource(block, where, 'source');
    if (block['type'] === 'tool_use') pairs.use(block, where);
    if (block['type'] === 'tool_result') pairs.result(block, where, limits);
    if (role === 'user' && SAID.includes(block['type'])) pairs.say();
  });
};

/** Whether the API is to hold the conversation, so that later requests bring only what is new. */
export const hasThread = ({ thread }: Fields): boolean => thread !== undefined && thread !== null;

/** Whether it holds the messages before those of this request: all that a thread is but the beginning of one. */
const followsHeld = (body: Fields): boolean =>
  hasThread(body) && !(isObject(body['thread']) && body['thread']['type'] === 'create');

/**
 * Checks what a client sends back before anything is done with it. Fields and kinds of blocks that are not
 * known pass.
 *
 * @param body a request of `/v1/messages`, parsed
 * @param counting it is one of `/v1/messages/count_tokens`
 * @throws GatewayError that names the block, the rule and the remedy
 */
export function validateRequest(body: Fields, counting: boolean, limits: ShapeLimits): void {
  checkOptions(body, counting, limits);
  const { messages } = body;
  if (!Array.isArray(messages)) throw misshapen('messages');
  if (hasThread(body) && !isTyped(body['thread'])) throw misshapen('thread');
  const isFollowing = followsHeld(body);
  // An answer that paused goes on by itself.
  if (messages.length === 0 && !isFollowing) throw misshapen('no_messages');
  const pairs = new ToolUsePairs(isFollowing);
  messages.forEach((message: unknown, place) => checkMessage(message, `messages.${place}`, pairs, limits));
  pairs.settle();
}
