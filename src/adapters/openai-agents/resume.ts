import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import type { GuardedHarvest, HarvestedCall } from '../guarded/harvest.ts';
import { failureOf, resume, type Dialect, type Unanswered } from '../guarded/resume.ts';

/** An item of a run's input, as far as it is read. */
interface Item {
  readonly type?: string | undefined;
}

/** A picture or a file as the runner would send it, where it is given by address or id. */
const referenceOf = (held: unknown, type: 'file' | 'image'): unknown => {
  if (typeof held === 'string') return held === '' ? undefined : held;
  const url = read(held, 'url');
  if (typeof url === 'string') return type === 'image' ? url : { url };
  const id = read(held, 'fileId') ?? read(held, 'id');
  return typeof id === 'string' ? { id } : undefined;
};

/**
 * A structured output, which has what it is made of in a member of its type's name; `undefined` for what the runner,
 * too, sends as a text.
 */
const contentOf = (output: unknown): object | undefined => {
  const type = read(output, 'type');
  const held = typeof type === 'string' ? read(output, type) : undefined;
  if (type === 'text') return typeof held === 'string' ? { type: 'input_text', text: held } : undefined;
  if (type !== 'image' && type !== 'file') return undefined;
  const reference = referenceOf(held, type);
  return reference === undefined ? undefined : { type: `input_${type}`, [type]: reference };
};

const contentsOf = (output: unknown): readonly object[] => {
  const given: readonly unknown[] = Array.isArray(output) ? output : [output];
  const contents = given.flatMap((each) => contentOf(each) ?? []);
  return contents.length === given.length ? contents : [];
};

/** What a call says of itself beside its name, and its result says again. */
const belongingOf = (origin: unknown): object => {
  const belonging = ['namespace', 'caller'].flatMap((name) => {
    const value = read(origin, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(belonging);
};

const resultOf = ({ id, name, kept }: Unanswered): object => {
  const text = failureOf(kept);
  const contents = text === undefined ? contentsOf(kept?.output) : [];
  const output = contents.length > 0 ? contents : { type: 'text', text: text ?? outputText(kept?.output) };
  return { type: 'function_call_result', name, callId: id, status: 'completed', output, ...belongingOf(kept?.origin) };
};

/** As the model wrote them, also where the tool was given what was read of them. */
const argumentsOf = ({ input, origin }: HarvestedCall): string => {
  const written = read(origin, 'arguments');
  return typeof written === 'string' ? written : typeof input === 'string' ? input : JSON.stringify(input);
};

/** Without the id of the item: an API that knows it would miss the reasoning that came before it. */
const callOf = (call: HarvestedCall): object => ({
  type: 'function_call',
  callId: call.toolCallId,
  name: call.toolName,
  arguments: argumentsOf(call),
  status: 'completed',
  ...belongingOf(call.origin),
});

const idOf = (item: Item): string => String(read(item, 'callId'));

const DIALECT: Dialect<Item> = {
  callsOf: (item) => (item.type === 'function_call' ? [{ id: idOf(item), name: String(read(item, 'name')) }] : []),
  answeredBy: (item) => (item.type === 'function_call_result' ? [idOf(item)] : []),
  making: (calls) => calls.map(callOf),
  answering: (unanswered, next) => [...unanswered.map(resultOf), ...(next === undefined ? [] : [next])],
};

/**
 * The input to go on with after a run threw: what it was given, and each call of its function tools with what it gave,
 * or with an honest text. What the model wrote beside its calls is lost.
 *
 * @param harvest the run's
 * @param input what the run was given, or its history so far
 * @returns for `run`
 *
 * @example
 * const harvest = createHarvest();
 * resumeMessages(harvest, 'Compare the weather of Oulu and Espoo'); // one item, of the user: no tool was called
 */
export function resumeMessages<I extends Item = Item>(harvest: GuardedHarvest, input: string | readonly I[]): I[] {
  const items: readonly Item[] =
    typeof input === 'string' ? [{ type: 'message', role: 'user', content: input } as Item] : input;
  return resume(DIALECT, 'openai-agents', harvest, items) as I[];
}
