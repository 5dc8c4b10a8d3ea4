import { said, use } from './upstream.ts';

type Fields = Record<string, unknown>;

/** A request that must be refused: its body, the status, and what its message names. */
export interface Malformed {
  readonly what: string;
  readonly body: string | Uint8Array;
  readonly status: number;
  readonly type: string;
  readonly says: string;
}

const base: Fields = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'go' }] };
const invalid = (what: string, body: unknown, says: string): Malformed => ({
  what,
  body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  status: 400,
  type: 'invalid_request_error',
  says,
});
const field = (what: string, fields: Fields, says: string): Malformed => invalid(what, { ...base, ...fields }, says);
const talk = (what: string, messages: unknown, says: string): Malformed => field(what, { messages }, says);
const user = (...content: unknown[]): Fields => ({ role: 'user', content });
const assistant = (...content: unknown[]): Fields => ({ role: 'assistant', content });
const result = (id: unknown, more: Fields = {}): Fields => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'ok',
  ...more,
});
const go = user(said('go'));
const one = use('toolu_1', 'mine');
/** A turn whose only fault is in the results. */
const answered = (what: string, says: string, ...results: unknown[]): Malformed =>
  talk(what, [go, assistant(one), user(...results)], says);

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const spoiled = utf8(JSON.stringify(base));
spoiled[spoiled.indexOf('g'.charCodeAt(0))] = 0xff;
const deep = (depth: number): string =>
  JSON.stringify(base).replace('"go"', `[{"type":"text","text":"x","y":${'['.repeat(depth)}${']'.repeat(depth)}}]`);

/** Whatever a client may get wrong: sixty and some. */
export const MALFORMED: readonly Malformed[] = [
  invalid('nothing at all', '', 'not valid JSON'),
  invalid('no JSON', 'hello', 'not valid JSON'),
  invalid('JSON that stops', '{"model":"m","messages":[', 'not valid JSON'),
  invalid('JSON with more behind it', `${JSON.stringify(base)}}`, 'not valid JSON'),
  invalid('a list', [], 'must be a JSON object'),
  invalid('null', 'null', 'must be a JSON object'),
  invalid('a text', '"go"', 'must be a JSON object'),
  invalid('invalid UTF-8', spoiled, 'UTF-8'),
  invalid('UTF-8 that stops', Uint8Array.of(...utf8('{"model":"'), 0xe2, 0x82), 'UTF-8'),
  invalid('UTF-16', Uint8Array.of(0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00), 'UTF-8'),
  invalid('deep nesting', deep(64), 'nested deeper than 64'),
  invalid('nesting that would overflow a stack', deep(200_000), 'nested deeper than 64'),
  invalid('nesting without end', '['.repeat(1_000_000), 'nested deeper than 64'),
  invalid('a member that is there twice', JSON.stringify(base).replace('{', '{"messages":[],'), '"messages"'),
  invalid(
    'a member that is there twice in a block',
    JSON.stringify({ ...base, messages: [user(said('x'))] }).replace('"text":"x"', '"text":"x","te\\u0078t":"y"'),
    '"text"',
  ),
  field('no model', { model: undefined }, 'model:'),
  field('a model that is a number', { model: 7 }, 'model:'),
  field('no max_tokens', { max_tokens: undefined }, 'max_tokens:'),
  field('max_tokens as a text', { max_tokens: '10' }, 'max_tokens:'),
  field('negative max_tokens', { max_tokens: -1 }, 'max_tokens:'),
  field('stream as a text', { stream: 'true' }, 'stream:'),
  field('system as a number', { system: 7 }, 'system:'),
  field('a block of system without a type', { system: [{ text: 'x' }] }, 'system:'),
  field('tools as an object', { tools: {} }, 'tools'),
  field('a tool that is a text', { tools: ['mine'] }, 'tools.0'),
  field('a tool without a name', { tools: [{ input_schema: {} }] }, 'tools.0.name'),
  field('two tools of one name', { tools: [{ name: 'a' }, { name: 'a' }] }, 'tools.1.name'),
  field('tool_choice as a text', { tool_choice: 'auto' }, 'tool_choice:'),
  field('metadata as a list', { metadata: [] }, 'metadata'),
  field('temperature as a text', { temperature: '1' }, 'temperature'),
  field('stop_sequences as a text', { stop_sequences: 'x' }, 'stop_sequences'),
  field('thinking as true', { thinking: true }, 'thinking'),
  talk('no messages', undefined, 'messages:'),
  talk('messages as an object', { 0: go }, 'messages:'),
  talk('messages as a text', 'go', 'messages:'),
  talk('an empty list of messages', [], 'at least one'),
  talk('a message that is a text', ['go'], 'messages.0:'),
  talk('a message that is null', [go, null], 'messages.1:'),
  talk('a message without a role', [{ content: 'go' }], 'messages.0.role'),
  talk('an unknown role', [{ role: 'robot', content: 'go' }], 'messages.0.role'),
  talk('no content', [{ role: 'user' }], 'messages.0.content'),
  talk('content that is a number', [{ role: 'user', content: 7 }], 'messages.0.content'),
  talk('content that is one block', [{ role: 'user', content: said('go') }], 'messages.0.content'),
  talk('a block that is a text', [user('go')], 'messages.0.content.0'),
  talk('a block without a type', [user({ text: 'go' })], 'messages.0.content.0'),
  talk('a text block without text', [user({ type: 'text' })], 'messages.0.content.0.text'),
  talk('10,000 blocks of text', [user(...Array.from({ length: 10_000 }, () => said('x')))], 'messages.0.content'),
  talk(
    '10,000 results',
    [go, assistant(one), user(...Array.from({ length: 10_000 }, (_, n) => result(`toolu_${n}`)))],
    'messages.2.content',
  ),
  talk('a call by the user', [user(one), user(result('toolu_1'))], 'messages.0.content.0'),
  talk(
    'a call without an id',
    [go, assistant({ ...one, id: undefined }), user(result('toolu_1'))],
    'messages.1.content.0.id',
  ),
  talk('a call whose id is a number', [go, assistant({ ...one, id: 1 }), user(result('1'))], 'messages.1.content.0.id'),
  talk(
    'a call whose id has a space',
    [go, assistant({ ...one, id: 'a b' }), user(result('a b'))],
    'messages.1.content.0.id',
  ),
  talk(
    'a call without a name',
    [go, assistant({ ...one, name: '' }), user(result('toolu_1'))],
    'messages.1.content.0.name',
  ),
  talk(
    'a call whose input is a text',
    [go, assistant({ ...one, input: '{}' }), user(result('toolu_1'))],
    'messages.1.content.0.input',
  ),
  talk(
    'a call without an input',
    [go, assistant({ ...one, input: undefined }), user(result('toolu_1'))],
    'messages.1.content.0.input',
  ),
  talk('two calls with one id', [go, assistant(one, one), user(result('toolu_1'))], 'messages.1.content.1.id'),
  talk(
    'an id used again in a later step',
    [go, assistant(one), user(result('toolu_1')), assistant(one), user(result('toolu_1'))],
    'messages.3.content.0.id',
  ),
  talk('a result in the first message', [user(result('toolu_1'))], 'messages.0.content.0.tool_use_id'),
  talk(
    'a result before its call',
    [go, user(result('toolu_1')), assistant(one), user(said('x'))],
    'messages.1.content.0.tool_use_id',
  ),
  talk('a result by the assistant', [go, assistant(one, result('toolu_1'))], 'messages.1.content.1'),
  talk(
    'a result one message too late',
    [go, assistant(one), user(said('wait')), assistant(said('ok')), user(result('toolu_1'))],
    'toolu_1',
  ),
  talk(
    'a result for a call of an earlier turn',
    [go, assistant(one), user(result('toolu_1')), assistant(said('ok')), user(result('toolu_1'))],
    'messages.4.content.0.tool_use_id',
  ),
  talk('a call that nobody answers', [go, assistant(one)], 'messages.1.content.0'),
  talk('a call answered by text', [go, assistant(one), { role: 'user', content: 'done' }], 'toolu_1'),
  talk('one of two calls answered', [go, assistant(one, use('toolu_2', 'mine')), user(result('toolu_1'))], 'toolu_2'),
  answered('a result without an id', 'messages.2.content.0.tool_use_id', { type: 'tool_result', content: 'ok' }),
  answered('a result whose id is a number', 'messages.2.content.0.tool_use_id', result(1)),
  answered('a result whose id is empty', 'messages.2.content.0.tool_use_id', result('')),
  answered('a result for another id', 'toolu_9', result('toolu_9')),
  answered('two results for one call', 'messages.2.content.1.tool_use_id', result('toolu_1'), result('toolu_1')),
  answered('an orphan beside a good result', 'messages.2.content.1.tool_use_id', result('toolu_1'), result('toolu_$&')),
  answered('a result whose content is a number', 'messages.2.content.0.content', result('toolu_1', { content: 7 })),
  answered(
    'a result whose content is an object',
    'messages.2.content.0.content',
    result('toolu_1', { content: said('x') }),
  ),
  answered(
    'a result with a text among its blocks',
    'messages.2.content.0.content.1',
    result('toolu_1', { content: [said('x'), 'y'] }),
  ),
  answered(
    'a result with a text block without text',
    'messages.2.content.0.content.0',
    result('toolu_1', { content: [{ type: 'text' }] }),
  ),
  talk('an image without a source', [user({ type: 'image' })], 'messages.0.content.0.source'),
  talk('a document whose source is a text', [user({ type: 'document', source: 'x' })], 'messages.0.content.0.source'),
  talk(
    'an image without a source in a document',
    [user({ type: 'document', source: { type: 'content', content: [said('x'), { type: 'image' }] } })],
    'messages.0.content.0.source.content.1.source',
  ),
  answered(
    'a result with an image without a source',
    'messages.2.content.0.content.1.source',
    result('toolu_1', { content: [said('x'), { type: 'image' }] }),
  ),
  answered(
    'a result with a document without a source',
    'messages.2.content.0.content.0.source',
    result('toolu_1', { content: [{ type: 'document', source: null }] }),
  ),
  field('a thread that is a text', { thread: 'create' }, 'thread:'),
  answered('is_error as a text', 'messages.2.content.0.is_error', result('toolu_1', { is_error: 'true' })),
  answered(
    'an error that says nothing',
    'messages.2.content.0.content',
    result('toolu_1', { is_error: true, content: '' }),
  ),
  answered(
    'an error of blank blocks',
    'messages.2.content.0.content',
    result('toolu_1', { is_error: true, content: [said(' ')] }),
  ),
];
