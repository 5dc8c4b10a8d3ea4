import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import type { GuardedHarvest } from '../guarded/harvest.ts';
import { areBlocks } from '../guarded/blocks.ts';
import { failureOf, resume, type Dialect, type Unanswered } from '../guarded/resume.ts';

/** `ToolMessage` of `langchain` or `@langchain/core/messages`: a class made of these fields. */
export type ToolMessageClass<Message> = new (fields: {
  /** The text that the model reads. Never empty. */
  content: string;
  /** The id of the call that the message answers; empty where the model gave none. */
  tool_call_id: string;
  /** The name of the tool. */
  name: string;
  /** `error` for a call that failed, also for one that may have run. */
  status: 'error' | 'success';
}) => Message;

/** What the middleware keeps with a call. */
export interface LangChainOrigin {
  /** Of the agent's state, as its tool was called. */
  readonly messages: unknown;
  readonly ToolMessage: ToolMessageClass<unknown>;
}

/** The messages up to a model step: a graph has one list for all calls of the step, and another one for the next. */
export const messagesIn = (state: unknown): readonly unknown[] | undefined => {
  const messages = read(state, 'messages');
  return Array.isArray(messages) ? messages : undefined;
};

/** The message that made the calls of a step: an agent gives each of them a list of its own. */
export const callingMessage = (state: unknown): object | undefined => {
  const last = messagesIn(state)?.at(-1);
  return typeof last === 'object' && last !== null ? last : undefined;
};

/** A model's call that is answered. */
interface Answered {
  readonly id?: string | undefined;
  readonly name: string;
}

/** The answer to a call that failed. */
export const failing = <Message>(
  content: string,
  { id = '', name }: Answered,
  ToolMessage: ToolMessageClass<Message>,
): Message => new ToolMessage({ content, tool_call_id: id, name, status: 'error' });

/** The content of a message that was kept as JSON; anything else is its own. */
export const contentIn = (value: unknown): unknown =>
  read(value, 'lc') === 1 ? read(read(value, 'kwargs'), 'content') : value;

/** What a tool did not give itself, as the answer to a call. Of a message that was kept as JSON its content is told. */
export const adopted = (
  value: unknown,
  { id = '', name }: Answered,
  ToolMessage: ToolMessageClass<unknown>,
): unknown => {
  if (typeof read(value, 'getType') === 'function' || read(value, 'lg_name') === 'Command') return value;
  const kept = contentIn(value);
  const content = kept !== value && areBlocks(kept) ? (kept as unknown as string) : outputText(kept);
  const artifact = read(read(value, 'kwargs'), 'artifact');
  const own = artifact === undefined ? {} : { artifact };
  return new ToolMessage({ content, tool_call_id: id, name, status: 'success', ...own });
};

/** The messages of a command, whose update is an object or a list of pairs. */
const messagesOf = (command: unknown): readonly unknown[] => {
  const update = read(command, 'update');
  const messages: unknown = Array.isArray(update)
    ? read(
        update.find((pair: unknown) => read(pair, '0') === 'messages'),
        '1',
      )
    : read(update, 'messages');
  return Array.isArray(messages) ? messages : [messages];
};

/**
 * What a tool gave: a message, a command with some, or a value. What else a command does to the state is not for the
 * model.
 */
const resultsOf = ({ id, name, kept }: Unanswered, ToolMessage: ToolMessageClass<unknown>): readonly unknown[] => {
  const failure = failureOf(kept);
  if (failure !== undefined) return [failing(failure, { id, name }, ToolMessage)];
  const output = kept?.output;
  if (read(output, 'tool_call_id') !== undefined) return [output];
  const messages = messagesOf(output);
  if (messages.some((message) => read(message, 'tool_call_id') === id)) return messages;
  const shown = read(output, 'lg_name') === 'Command' ? undefined : output;
  return [new ToolMessage({ content: outputText(shown), tool_call_id: id, name, status: 'success' })];
};

const dialectOf = (ToolMessage: ToolMessageClass<unknown>): Dialect<unknown> => ({
  callsOf: (message) => {
    const calls = read(message, 'tool_calls');
    return Array.isArray(calls)
      ? calls.map((call: unknown) => ({ id: String(read(call, 'id')), name: String(read(call, 'name')) }))
      : [];
  },
  answeredBy: (message) => {
    const id = read(message, 'tool_call_id');
    return typeof id === 'string' ? [id] : [];
  },
  answering: (unanswered, next) => [
    ...unanswered.flatMap((call) => resultsOf(call, ToolMessage)),
    ...(next === undefined ? [] : [next]),
  ],
});

/**
 * The messages to go on with after an agent threw: those of its state when it called its tools, and for each call the
 * message it gave, or an honest one with the status `error`. Of a command only its messages are there.
 *
 * @param harvest the run's
 * @param messages what the agent was given, for a run that called no tool
 * @returns for `agent.invoke({ messages })`
 *
 * @example const harvest = createHarvest(); resumeMessages(harvest, [{ role: 'user', content: 'Compare the weather of
 * Oulu and Espoo' }]).length; // 1: no tool was called
 */
export function resumeMessages<Message>(harvest: GuardedHarvest, messages: readonly Message[]): Message[] {
  const last = harvest.calls.findLast(({ framework }) => framework === 'langchain')?.origin as
    | LangChainOrigin
    | undefined;
  if (last === undefined) return [...messages];
  const state = Array.isArray(last.messages) ? last.messages : messages;
  return resume(dialectOf(last.ToolMessage), 'langchain', harvest, state) as Message[];
}
