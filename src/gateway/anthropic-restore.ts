import { sha256 } from '../policy/sha256.ts';
import { fieldsOf, type Fields } from './anthropic-blocks.ts';
import { elementsOf, membersOf, piecesOf, type Edit, type Span } from './anthropic-json.ts';
import type { ConversationRecord } from './conversation.ts';

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
export const keyOf = (scope: string, kind: 'use' | 'said' | 'retry', id: string): string => `${scope}:${kind}:${sha256(JSON.stringify([scope, kind, id.toWellFormed()]))}`;

/** For how long a request that is sent again may be known, at least; twice that, at most. */
const RETRY_WINDOW_MS = 600_000;

/** What a request is kept under for when it is sent again: first that of now, then that of a while ago. */
export function retryKeys(scope: string, text: string, wallNowMs: number): readonly [now: string, before: string] {
  const digest = sha256(text.toWellFormed());
  const window = Math.floor(wallNowMs / RETRY_WINDOW_MS);
  const key = (number: number): string => keyOf(scope, 'retry', `${number}:${digest}`);
  return [key(window), key(window - 1)];
}

const blocksOf = ({ content }: Fields): readonly Fields[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content.map(fieldsOf) : []);

const idsOf = (message: Fields): string[] => blocksOf(message).flatMap(({ type, id }) => (type === 'tool_use' && typeof id === 'string' ? [id] : []));

/** What of a message stays the same however a client stores it: clients move cache marks, drop thinking, join texts and trim them. */
const essence = (message: Fields): string => {
  const texts: string[] = [];
  const ids: unknown[] = [];
  for (const { type, text, id, tool_use_id: answered } of blocksOf(message)) {
    if (type === 'text') texts.push(String(text).replaceAll(/\s+/g, ''));
    else if (type === 'tool_use') ids.push(id);
    else if (type === 'tool_result') ids.push(answered);
  }
  return JSON.stringify([message['role'], texts.join('').toWellFormed(), ids.map((id) => String(id).toWellFormed())]);
};

/** Identifies a conversation up to a message, by what it says. */
export const chained = (before: string, message: Fields): string => sha256(before + essence(message));

/** The end of the chain over all messages. */
export const chainOf = (messages: readonly unknown[]): string => messages.reduce<string>((chain, message) => chained(chain, fieldsOf(message)), '');

/** Messages looked up in one request; older ones stay as the client has them. */
const LOOKED_UP_MAX = 200;

/** The assistant messages that something may be known of. */
export function knownMessages(messages: readonly unknown[], scope: string): KnownMessage[] {
  const lastAssistant = messages.findLastIndex((message) => fieldsOf(message)['role'] === 'assistant');
  let chain = '';
  const found = messages.flatMap((given, place): KnownMessage[] => {
    const message = fieldsOf(given);
    chain = chained(chain, message);
    if (message['role'] !== 'assistant') return [];
    const toolUseIds = idsOf(message);
    const [first] = toolUseIds;
    const key = first === undefined ? keyOf(scope, 'said', chain) : keyOf(scope, 'use', first);
    return [{ place, key, toolUseIds, pending: first !== undefined && place === lastAssistant }];
  });
  return found.slice(-LOOKED_UP_MAX);
}

const sameIds = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((id) => b.includes(id));

/** Whether a record is about this message, as the client has it. */
export const isAbout = ({ toolUseIds }: ConversationRecord, message: KnownMessage): boolean => sameIds(toolUseIds, message.toolUseIds);

/** A message's blocks, each as it was sent. */
const blockTexts = (text: string, { from }: Span): ReadonlyArray<{ readonly json: string; readonly value: Fields }> => {
  const content = membersOf(text, from).get('content');
  if (content === undefined) return [];
  if (text[content.from] === '"') return [{ json: `{"type":"text","text":${text.slice(content.from, content.to)}}`, value: { type: 'text' } }];
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
export function restoringEdits(text: string, messages: readonly unknown[], spans: readonly Span[], known: ReadonlyArray<readonly [KnownMessage, ConversationRecord]>): Edit[] {
  return known.flatMap(([{ place }, record]): Edit[] => {
    const span = spans[place];
    if (record.content === '' || span === undefined) return [];
    const before = inside(record.before);
    const edits: Edit[] = [{ ...span, text: `${before}${before === '' ? '' : ','}{"role":"assistant","content":${record.content}}` }];
    if (record.results === '') return edits;
    let end = place + 1;
    while (fieldsOf(messages[end])['role'] === 'user') end++;
    const answers = spans.slice(place + 1, end);
    const [first] = answers;
    const last = answers.at(-1);
    if (first !== undefined && last !== undefined) edits.push({ from: first.from, to: last.to, text: withResults(text, answers, record) });
    return edits;
  });
}
