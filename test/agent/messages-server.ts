import type { IncomingMessage, ServerResponse } from 'node:http';
import { bodyOf, scriptedServer, type ScriptedServer } from '../errors/scripted-server.ts';

type Fields = Readonly<Record<string, unknown>>;
export interface Block extends Fields {
  readonly type: string;
}
export interface WireMessage {
  readonly role: string;
  readonly content: string | readonly Block[];
}
export interface WireRequest extends Fields {
  readonly messages: readonly WireMessage[];
  readonly tools?: ReadonlyArray<{ readonly name: string; readonly input_schema?: Fields }>;
}

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const blocksOf = ({ content }: WireMessage): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;
const isEmpty = (text: unknown): boolean => typeof text !== 'string' || !/\S/.test(text);

/** The same for lists that differ in their order alone. */
const listed = (ids: readonly unknown[]): string =>
  JSON.stringify(ids.map(String).toSorted((a, b) => (a < b ? -1 : 1)));

const blockFaults = (block: Block, role: string, ids: Set<unknown>): string[] => {
  switch (block.type) {
    case 'text':
      return isEmpty(block['text']) ? ['text content blocks must contain non-whitespace text'] : [];
    case 'tool_use': {
      const { id, name, input } = block;
      const faults = role === 'assistant' ? [] : ['tool_use blocks can only be in assistant messages'];
      if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(id))
        faults.push(`tool_use.id ${String(id)} must match ^[a-zA-Z0-9_-]+$`);
      if (ids.has(id)) faults.push(`tool_use ids must be unique: ${String(id)}`);
      ids.add(id);
      if (typeof name !== 'string' || !NAME.test(name)) faults.push(`tool_use.name ${String(name)}`);
      if (typeof input !== 'object' || input === null || Array.isArray(input))
        faults.push('tool_use.input must be an object');
      return faults;
    }
    case 'tool_result':
      if (role !== 'user') return ['tool_result blocks can only be in user messages'];
      return isEmpty(block['content'])
        ? [
            `tool_result ${String(block['tool_use_id'])}: content cannot be empty${block['is_error'] === true ? ' if is_error is true' : ''}`,
          ]
        : [];
    case 'thinking':
      return typeof block['signature'] === 'string' && block['signature'] !== ''
        ? []
        : ['thinking needs its signature'];
    default:
      return [];
  }
};

/** What the Messages API would refuse in a request, by its published rules; `[]` for a good one. */
export function violations({ messages, tools = [] }: WireRequest): string[] {
  const faults: string[] = [];
  const ids = new Set<unknown>();
  if (messages.length === 0) faults.push('at least one message is required');
  if (messages[0]?.role !== 'user') faults.push('first message must use the user role');
  // An answer that paused goes back as it is; it waits for a tool of the provider's own.
  if (
    messages.at(-1)?.role !== 'user' &&
    !messages.slice(-1).some((last) => blocksOf(last).some(({ type }) => type === 'server_tool_use'))
  )
    faults.push('the conversation must end with a user message');
  messages.forEach((message, at) => {
    const { role } = message;
    const blocks = blocksOf(message);
    const place = `messages.${at}: `;
    if (role === messages[at - 1]?.role) faults.push(`${place}roles must alternate`);
    if (blocks.length === 0) faults.push(`${place}content is empty`);
    for (const block of blocks) faults.push(...blockFaults(block, role, ids).map((fault) => place + fault));
    const results = blocks.filter(({ type }) => type === 'tool_result');
    if (blocks.slice(0, results.length).some(({ type }) => type !== 'tool_result'))
      faults.push(`${place}tool_result blocks must come first`);
    const wanted: unknown[] =
      at === 0
        ? []
        : blocksOf(messages[at - 1] ?? message)
            .filter(({ type }) => type === 'tool_use')
            .map(({ id }) => id);
    const given: unknown[] = results.map((block) => block['tool_use_id']);
    if (role === 'user' && listed(wanted) !== listed(given))
      faults.push(`${place}tool_use ids without exactly one tool_result: ${JSON.stringify([wanted, given])}`);
    if (role === 'assistant' && blocks.at(-1)?.type.endsWith('thinking') === true)
      faults.push(`${place}the final block cannot be thinking`);
  });
  for (const { name, input_schema: schema } of tools) {
    if (!NAME.test(name)) faults.push(`tools: name ${name}`);
    if (schema?.['type'] !== 'object') faults.push(`tools: ${name}: input_schema.type must be object`);
  }
  if (new Set(tools.map(({ name }) => name)).size < tools.length) faults.push('tools: names must be unique');
  return faults;
}

/** One answer of the server: the events of a stream, `undefined` to break the connection; or an error before it. */
export type Answer =
  | ReadonlyArray<Fields | undefined>
  | { readonly status: number; readonly body: Fields; readonly headers?: Record<string, string> };

export interface MessagesServer {
  readonly url: string;
  /** What was asked, and what was wrong with it. */
  readonly requests: WireRequest[];
  readonly faults: string[];
  /** How the next requests are answered, by their number from 0. */
  answer(script: (request: WireRequest, place: number) => Answer): void;
  close(): Promise<void>;
}

const isStream = (answer: Answer): answer is ReadonlyArray<Fields | undefined> => Array.isArray(answer);

const send = (answer: Answer, response: ServerResponse): void => {
  if (!isStream(answer)) {
    response
      .writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      .end(JSON.stringify(answer.body));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const breaks = answer.includes(undefined);
  const text = answer
    .flatMap((event) =>
      event === undefined ? [] : [`event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`],
    )
    .join('');
  // What was written has to leave before the connection breaks.
  response.write(text, () => (breaks ? setTimeout(() => response.destroy(), 5) : response.end()));
};

/** A server that speaks as the Messages API does, checks what it is asked, and answers as it is told. */
export async function messagesServer(): Promise<MessagesServer> {
  const server: ScriptedServer = await scriptedServer();
  const requests: WireRequest[] = [];
  const faults: string[] = [];
  return {
    url: server.url,
    requests,
    faults,
    answer: (script) => {
      requests.length = 0;
      faults.length = 0;
      server.script((request: IncomingMessage, response) => {
        const asked = JSON.parse(bodyOf(request)) as WireRequest;
        const place = requests.push(asked) - 1;
        faults.push(...violations(asked).map((fault) => `request ${place}: ${fault}`));
        send(script(asked, place), response);
      });
    },
    close: () => server.close(),
  };
}

/** The events of a whole answer. `pieces`: how many deltas a block comes in. */
export function streamed(blocks: readonly Block[], stopReason: string, pieces = 2): Fields[] {
  const cut = (text: string): string[] =>
    Array.from({ length: pieces }, (_, at) =>
      text.slice(Math.floor((text.length * at) / pieces), Math.floor((text.length * (at + 1)) / pieces)),
    );
  const deltas = (block: Block): { readonly start: Fields; readonly deltas: Fields[] } => {
    switch (block.type) {
      case 'text':
        return {
          start: { ...block, text: '' },
          deltas: cut(String(block['text'])).map((text) => ({ type: 'text_delta', text })),
        };
      case 'thinking':
        return {
          start: { ...block, thinking: '', signature: '' },
          deltas: [
            ...cut(String(block['thinking'])).map((thinking) => ({ type: 'thinking_delta', thinking })),
            { type: 'signature_delta', signature: block['signature'] },
          ],
        };
      case 'tool_use':
      case 'server_tool_use': {
        const { json, ...rest } = block;
        return {
          start: { ...rest, input: {} },
          deltas: cut(typeof json === 'string' ? json : JSON.stringify(block['input'])).map((partial_json) => ({
            type: 'input_json_delta',
            partial_json,
          })),
        };
      }
      default:
        return { start: block, deltas: [] };
    }
  };
  const events = blocks.flatMap((block, index) => {
    const parts = deltas(block);
    return [
      { type: 'content_block_start', index, content_block: parts.start },
      ...parts.deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ];
  });
  return [
    {
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        content: [],
        model: 'm',
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 11, output_tokens: 1, cache_read_input_tokens: 4 },
      },
    },
    { type: 'ping' },
    ...events,
    { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: 'message_stop' },
  ];
}
