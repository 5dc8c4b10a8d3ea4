import { read } from '../entrance/structure.ts';
import { outputText } from '../policy/model-text.ts';
import type { Harvest, KeptCall } from './harvest.ts';
import { failureOf, resume, type Dialect, type Unanswered } from './resume.ts';

/** An item of a run's input, as far as it is read. */
interface Item {
  readonly type?: string | undefined;
}

/** What the runner sends as it is; anything else becomes a text. */
const STRUCTURED: readonly unknown[] = ['text', 'image', 'file'];

const resultOf = ({ id, name, kept }: Unanswered): object => {
  const output = kept?.output;
  const text = failureOf(kept);
  const sent = text === undefined && STRUCTURED.includes(read(output, 'type')) ? output : { type: 'text', text: text ?? outputText(output) };
  const namespace = read(kept?.origin, 'namespace');
  return { type: 'function_call_result', name, callId: id, status: 'completed', output: sent, ...(typeof namespace === 'string' ? { namespace } : {}) };
};

/** Without the id of the item: an API that knows it would miss the reasoning that came before it. */
const callOf = ({ toolCallId, toolName, input, origin }: KeptCall): object => {
  const namespace = read(origin, 'namespace');
  return { type: 'function_call', callId: toolCallId, name: toolName, arguments: String(input), status: 'completed', ...(typeof namespace === 'string' ? { namespace } : {}) };
};

const idOf = (item: Item): string => String(read(item, 'callId'));

const DIALECT: Dialect<Item> = {
  callsOf: (item) => (item.type === 'function_call' ? [{ id: idOf(item), name: String(read(item, 'name')) }] : []),
  answeredBy: (item) => (item.type === 'function_call_result' ? [idOf(item)] : []),
  making: (calls) => calls.map(callOf),
  answering: (unanswered, next) => [...unanswered.map(resultOf), ...(next === undefined ? [] : [next])],
};

/**
 * The input to go on with after a run threw: what it was given, and each call of its function tools with what it gave, or with an honest text.
 * What the model wrote beside its calls is lost.
 *
 * @param harvest the run's
 * @param input what the run was given, or its history so far
 * @returns for `run`
 *
 * @example
 * const harvest = createHarvest();
 * resumeMessages(harvest, 'Compare the weather of Oulu and Espoo'); // one item, of the user: no tool was called
 */
export function resumeMessages<I extends Item = Item>(harvest: Harvest, input: string | readonly I[]): I[] {
  const items: readonly Item[] = typeof input === 'string' ? [{ type: 'message', role: 'user', content: input } as Item] : input;
  return resume(DIALECT, 'openai-agents', harvest, items) as I[];
}
