import { GatewayError, type GatewayErrorKind } from '../wire/error.ts';

/** A malformed shape and the message it gets. `{at}` is its place, `{id}` the id in question. */
interface Shape {
  readonly kind: GatewayErrorKind;
  readonly shape: string;
  readonly says: string;
}

const request = (shape: string, says: string): Shape => ({ kind: 'invalid_request', shape, says });
const result = (shape: string, says: string): Shape => ({ kind: 'malformed_tool_result', shape, says });

/** What can be wrong with a request's shape. */
export type ShapeRule =
  | 'doubled_member'
  | 'model'
  | 'max_tokens'
  | 'stream'
  | 'system'
  | 'tools'
  | 'tool_name'
  | 'duplicate_tool'
  | 'tool_choice'
  | 'option'
  | 'messages'
  | 'no_messages'
  | 'message'
  | 'role'
  | 'content'
  | 'many_blocks'
  | 'block'
  | 'text'
  | 'source'
  | 'thread'
  | 'use_place'
  | 'use_id'
  | 'use_name'
  | 'use_input'
  | 'duplicate_use'
  | 'result_place'
  | 'result_id'
  | 'result_content'
  | 'result_block'
  | 'nested_block'
  | 'result_source'
  | 'result_flag'
  | 'empty_error'
  | 'orphan_result'
  | 'duplicate_result'
  | 'late_result'
  | 'unanswered_use';

/** Every malformed shape that is refused before the upstream sees it. */
const SHAPES: Readonly<Record<ShapeRule, Shape>> = {
  doubled_member: request(
    'two members of one name in an object',
    'The body has an object with two members of the name {id}; give each name once',
  ),
  model: request('`model` absent, empty, or no text', 'model: must be the name of a model'),
  max_tokens: request('`max_tokens` absent, or no integer from 0', 'max_tokens: must be an integer from 0'),
  stream: request('`stream` neither true nor false', 'stream: must be true or false'),
  system: request('`system` neither a text nor a list of blocks', 'system: must be a text or a list of blocks'),
  tools: request('`tools` no list of objects', '{at}: tools must be a list of objects'),
  tool_name: request('a tool without a `name`', '{at}.name: must be a text that is not empty'),
  duplicate_tool: request('two tools of one name', '{at}.name: two tools have the name {id}; give one of them another'),
  tool_choice: request('`tool_choice` no object with a `type`', 'tool_choice: must be an object with a type'),
  option: request('another known option of a wrong type', '{at}: has the wrong type'),
  messages: request('`messages` absent, or no list', 'messages: must be a list of messages'),
  no_messages: request('`messages` empty', 'messages: must hold at least one message'),
  message: request('a message that is no object', '{at}: must be an object with a role and content'),
  role: request('a role that is not `user`, `assistant` or `system`', '{at}.role: must be user, assistant or system'),
  content: request('`content` neither a text nor a list of blocks', '{at}.content: must be a text or a list of blocks'),
  many_blocks: request(
    'more blocks in a message, a result or `system` than the limit',
    '{at}: holds more blocks than this gateway takes in one list; send fewer',
  ),
  block: request('a block that is no object with a `type`', '{at}: must be a block: an object with a type'),
  text: request('a `text` block without text', '{at}.text: must be a text'),
  source: request(
    'an `image` or `document` block without a `source`',
    '{at}.source: an image or a document needs its source, an object',
  ),
  thread: request('`thread` no object with a `type`', 'thread: must be an object with a type'),
  use_place: result(
    '`tool_use` outside an assistant message',
    '{at}: tool_use blocks can only be in assistant messages',
  ),
  use_id: result(
    '`tool_use` whose `id` is absent, or not letters, digits, `_` and `-`',
    '{at}.id: a tool_use needs an id of letters, digits, _ and -',
  ),
  use_name: result('`tool_use` without a `name`', '{at}.name: a tool_use needs the name of its tool'),
  use_input: result('`tool_use` whose `input` is no object', '{at}.input: the input of a tool_use must be an object'),
  duplicate_use: result(
    'two `tool_use` blocks with one id',
    '{at}.id: another tool_use has the id {id}; ids must be unique',
  ),
  result_place: result('`tool_result` outside a user message', '{at}: tool_result blocks can only be in user messages'),
  result_id: result(
    '`tool_result` without a `tool_use_id`',
    '{at}.tool_use_id: a tool_result needs the id of the tool_use that it answers',
  ),
  result_content: result(
    '`tool_result` whose `content` is neither a text nor a list of blocks',
    '{at}.content: the content of a tool_result must be a text or a list of blocks',
  ),
  result_block: result(
    'a block in a `tool_result` that is no object with a `type`, or a `text` without text',
    '{at}: must be a block: an object with a type, and with a text if it is of type text',
  ),
  result_source: result(
    'an `image` or `document` block in a `tool_result` without a `source`',
    '{at}.source: an image or a document needs its source, an object',
  ),
  nested_block: result(
    '`tool_use` or `tool_result` in a `tool_result`',
    '{at}: a tool_result cannot hold tool_use or tool_result blocks',
  ),
  result_flag: result('`is_error` neither true nor false', '{at}.is_error: must be true or false'),
  empty_error: result(
    '`is_error: true` with nothing in `content`',
    '{at}.content: cannot be empty when is_error is true; say what failed',
  ),
  orphan_result: result(
    'a result for an id that the assistant message just before does not have',
    '{at}.tool_use_id: no tool_use of the assistant message just before has the id {id}; each tool_result ' +
      'must answer one of it',
  ),
  duplicate_result: result(
    'two results for one `tool_use`',
    '{at}.tool_use_id: {id} is answered already; each tool_use takes exactly one tool_result',
  ),
  late_result: result(
    '`tool_result` after a text or a file in its message',
    '{at}: tool_result blocks must come first in a message; put texts and files after them',
  ),
  unanswered_use: result(
    'a `tool_use` without a result in the next message',
    '{at}: the tool_use {id} has no tool_result in the message just after; answer each tool_use exactly once',
  ),
};

const ID_SHOWN_MAX = 64;

/** The error for a malformed shape. */
export function misshapen(rule: ShapeRule, at = '', id = ''): GatewayError {
  const { kind, says } = SHAPES[rule];
  const shownId = JSON.stringify(id.length > ID_SHOWN_MAX ? `${id.slice(0, ID_SHOWN_MAX)}...` : id);
  // Functions: a `$` in an id is no pattern.
  return new GatewayError(
    kind,
    says.replace('{at}', () => at).replace('{id}', () => shownId),
  );
}

/**
 * The table of malformed shapes and their messages as Markdown, as the page of the gateway shows it.
 *
 * @example
 * malformedTable().includes('tool_use_id'); // true
 */
export function malformedTable(): string {
  return [
    '| malformed | message |',
    '|---|---|',
    ...Object.values(SHAPES).map(({ shape, says }) => `| ${shape} | \`${says}\` |`),
  ].join('\n');
}
