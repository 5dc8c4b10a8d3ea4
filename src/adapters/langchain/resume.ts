import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import type { Harvest } from '../harvest.ts';
import { failureOf, resume, type Dialect, type Unanswered } from '../resume.ts';

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

/** What a tool threw to steer the graph, as by an interrupt: no failure, and no answer. */
export class Steering {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    this.thrown = thrown;
  }
}

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
  const failure = failureOf(kept?.output instanceof Steering ? undefined : kept);
  if (failure !== undefined) return [new ToolMessage({ content: failure, tool_call_id: id, name, status: 'error' })];
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
export function resumeMessages<Message>(harvest: Harvest, messages: readonly Message[]): Message[] {
  const last = harvest.calls.findLast(({ framework }) => framework === 'langchain')?.origin as
    | LangChainOrigin
    | undefined;
  if (last === undefined) return [...messages];
  const state = Array.isArray(last.messages) ? last.messages : messages;
  return resume(dialectOf(last.ToolMessage), 'langchain', harvest, state) as Message[];
}
