import { sha256 } from '../../policy/key/sha256.ts';
import { fieldsOf, type Fields } from './blocks.ts';
import { elementsOf, membersOf, piecesOf, type Edit, type Span } from '../wire/json.ts';
import type { ConversationRecord } from '../conversation/conversation.ts';

/** A message as the client sent it, and what may be known of it. */
export interface KnownMessage {
  readonly place: number;
  readonly key: string;
  /** The client's own calls in it. */
  readonly toolUseIds: readonly string[];
  /** Its results come with this request: without what is known of it, the request means nothing. */
  readonly pending: boolean;
}

/** A hash that nobody can turn round, nor make collide by where one part ends. */
const keyOf = (scope: string, kind: 'use' | 'said' | 'retry', id: string): string =>
  `${scope}:${kind}:${sha256(JSON.stringify([scope, kind, id.toWellFormed()]))}`;

/** For how long a request that is sent again may be known, at least; twice that, at most. */
const RETRY_WINDOW_MS = 600_000;

/** What a request is kept under for when it is sent again: first that of now, then that of a while ago. */
export function retryKeys(scope: string, text: string, wallNowMs: number): readonly [now: string, before: string] {
  const digest = sha256(text.toWellFormed());
  const window = Math.floor(wallNowMs / RETRY_WINDOW_MS);
  const key = (number: number): string => keyOf(scope, 'retry', `${number}:${digest}`);
  return [key(window), key(window - 1)];
}

const blocksOf = ({ content }: Fields): readonly Fields[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content.map(fieldsOf) : [];

const idsOf = (message: Fields): string[] =>
  blocksOf(message).flatMap(({ type, id }) => (type === 'tool_use' && typeof id === 'string' ? [id] : []));

/** What a text says, however a client lays it out: clients trim and join texts. */
const bare = (text: unknown): string => String(text).replaceAll(/\s+/g, '').toWellFormed();

/**
 * What of a message stays the same however a client stores it: clients move cache marks, drop thinking, join texts and
 * trim them.
 */
const essence = (message: Fields): string => {
  const texts: string[] = [];
  const ids: unknown[] = [];
  for (const { type, text, id, tool_use_id: answered } of blocksOf(message)) {
    if (type === 'text') texts.push(bare(text));
    else if (type === 'tool_use') ids.push(id);
    else if (type === 'tool_result') ids.push(answered);
  }
  return JSON.stringify([message['role'], texts.join(''), ids.map((id) => String(id).toWellFormed())]);
};

/** Without cache marks, at any depth: clients move them. */
const unmarked = (name: string, value: unknown): unknown =>
  name === 'cache_control' ? undefined : typeof value === 'string' ? value.toWellFormed() : value;

/**
 * What a user shows beside texts: files, and what tools gave. Two who say the same of different pictures have different
 * conversations.
 */
const shown = (message: Fields): string =>
  message['role'] === 'user'
    ? JSON.stringify(
        blocksOf(message).filter(({ type }) => type !== 'text'),
        unmarked,
      )
    : '';

/** What names a conversation up to a message. */
export interface Chain {
  /**
   * By what is said, and by the ids of calls: those are the API's own, and no two conversations have the same but by
   * one going on from the other.
   */
  readonly ids: string;
  /** By what is shown, too: what stands for an answer without calls. */
  readonly whole: string;
}

/**
 * The block that Claude Code puts before a system prompt: it differs from request to request, and says nothing to the
 * model.
 */
const ATTRIBUTION = /^x-anthropic-billing-header:/;

const systemOf = (system: unknown): string => {
  const texts =
    typeof system === 'string' ? [system] : Array.isArray(system) ? system.map((block) => fieldsOf(block)['text']) : [];
  return texts
    .filter((text) => !ATTRIBUTION.test(String(text)))
    .map(bare)
    .join('');
};

/** Where a conversation begins: for whom it is held, and by what model. */
const beginningOf = ({ system, metadata, model }: Fields): Chain => {
  const user = fieldsOf(metadata)['user_id'] ?? null;
  const digest = sha256(
    JSON.stringify([systemOf(system), user, model], (_, value: unknown) =>
      typeof value === 'string' ? value.toWellFormed() : value,
    ),
  );
  return { ids: digest, whole: digest };
};

/** A conversation with one message more. */
export const chained = ({ ids, whole }: Chain, message: Fields): Chain => {
  const said = essence(message);
  return { ids: sha256(ids + said), whole: sha256(JSON.stringify([whole, said, shown(message)])) };
};

/** The end of the chain over all messages of a request. */
export const chainOf = (body: Fields): Chain =>
  (body['messages'] as readonly unknown[]).reduce<Chain>(
    (chain, message) => chained(chain, fieldsOf(message)),
    beginningOf(body),
  );

/**
 * What an answer is kept under, the chain ending with it: by the first of the client's own calls in it, or by what it
 * says.
 */
export const answerKey = (scope: string, chain: Chain, firstId: string | undefined): string =>
  firstId === undefined ? keyOf(scope, 'said', chain.whole) : keyOf(scope, 'use', JSON.stringify([chain.ids, firstId]));

/** Messages looked up in one request; older ones stay as the client has them. */
const LOOKED_UP_MAX = 200;

/** The assistant messages that something may be known of. */
export function knownMessages(body: Fields, scope: string): KnownMessage[] {
  const messages = body['messages'] as readonly unknown[];
  const lastAssistant = messages.findLastIndex((message) => fieldsOf(message)['role'] === 'assistant');
  let chain = beginningOf(body);
  const found = messages.flatMap((given, place): KnownMessage[] => {
    const message = fieldsOf(given);
    chain = chained(chain, message);
    if (message['role'] !== 'assistant') return [];
    const toolUseIds = idsOf(message);
    const [first] = toolUseIds;
    return [
      {
        place,
        key: answerKey(scope, chain, first),
        toolUseIds,
        pending: first !== undefined && place === lastAssistant,
      },
    ];
  });
  return found.slice(-LOOKED_UP_MAX);
}

const sameIds = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id));

/** Whether a record is about this message, as the client has it. */
export const isAbout = ({ toolUseIds }: ConversationRecord, message: KnownMessage): boolean =>
  sameIds(toolUseIds, message.toolUseIds);

/** A message's blocks, each as it was sent. */
const blockTexts = (text: string, { from }: Span): ReadonlyArray<{ readonly json: string; readonly value: Fields }> => {
  const content = membersOf(text, from).get('content');
  if (content === undefined) return [];
  if (text[content.from] === '"')
    return [{ json: `{"type":"text","text":${text.slice(content.from, content.to)}}`, value: { type: 'text' } }];
  return elementsOf(text, content.from).map((span) => {
    const json = text.slice(span.from, span.to);
    return { json, value: fieldsOf(JSON.parse(json)) };
  });
};

/** The user's answer, with the results of the gateway's calls among those of the client, in the order of the calls. */
const withResults = (text: string, spans: readonly Span[], { content, results }: ConversationRecord): string => {
  const blocks = spans.flatMap((span) => blockTexts(text, span));
  const byId = new Map<unknown, string>();
  for (const json of piecesOf(results)) byId.set(fieldsOf(JSON.parse(json))['tool_use_id'], json);
  for (const { json, value } of blocks) if (value['type'] === 'tool_result') byId.set(value['tool_use_id'], json);
  const order = idsOf({ content: JSON.parse(content) as unknown });
  const ordered = order.flatMap((id) => byId.get(id) ?? []);
  const rest = blocks.filter(({ value }) => value['type'] !== 'tool_result').map(({ json }) => json);
  return `{"role":"user","content":[${[...ordered, ...rest].join(',')}]}`;
};

/** A list's elements without its brackets. */
const inside = (list: string): string => piecesOf(list === '' ? '[]' : list).join(',');

/** The edits that put back what the client does not see. `spans`: where the messages stand in the text. */
export function restoringEdits(
  text: string,
  messages: readonly unknown[],
  spans: readonly Span[],
  known: ReadonlyArray<readonly [KnownMessage, ConversationRecord]>,
): Edit[] {
  return known.flatMap(([{ place }, record]): Edit[] => {
    const span = spans[place];
    if (record.content === '' || span === undefined) return [];
    const before = inside(record.before);
    const edits: Edit[] = [
      { ...span, text: `${before}${before === '' ? '' : ','}{"role":"assistant","content":${record.content}}` },
    ];
    if (record.results === '') return edits;
    let end = place + 1;
    while (fieldsOf(messages[end])['role'] === 'user') end++;
    const answers = spans.slice(place + 1, end);
    const [first] = answers;
    const last = answers.at(-1);
    if (first !== undefined && last !== undefined)
      edits.push({ from: first.from, to: last.to, text: withResults(text, answers, record) });
    return edits;
  });
}
