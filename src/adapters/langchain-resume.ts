import { read } from '../entrance/structure.ts';
import { outputText } from '../policy/model-text.ts';
import type { Harvest } from './harvest.ts';
import { failureOf, resume, type Dialect, type Unanswered } from './resume.ts';

/** `ToolMessage` of `langchain` or `@langchain/core/messages`. */
export type ToolMessageClass<Message> = new (fields: { content: string; tool_call_id: string; name: string; status: 'error' | 'success' }) => Message;

/** What the middleware keeps with a call. */
export interface LangChainOrigin {
  /** Of the agent's state, as its tool was called. */
  readonly messages: unknown;
  readonly ToolMessage: ToolMessageClass<unknown>;
}

/** What a tool gave: a message, a command with some, or a value. */
const resultsOf = ({ id, name, kept }: Unanswered, ToolMessage: ToolMessageClass<unknown>): readonly unknown[] => {
  const failure = failureOf(kept);
  if (failure !== undefined) return [new ToolMessage({ content: failure, tool_call_id: id, name, status: 'error' })];
  const output = kept?.output;
  if (read(output, 'tool_call_id') !== undefined) return [output];
  const update = read(read(output, 'update'), 'messages');
  const answers = Array.isArray(update) && update.some((message) => read(message, 'tool_call_id') === id);
  return answers ? update : [new ToolMessage({ content: outputText(output), tool_call_id: id, name, status: 'success' })];
};

const dialectOf = (ToolMessage: ToolMessageClass<unknown>): Dialect<unknown> => ({
  callsOf: (message) => {
    const calls = read(message, 'tool_calls');
    return Array.isArray(calls) ? calls.map((call: unknown) => ({ id: String(read(call, 'id')), name: String(read(call, 'name')) })) : [];
  },
  answeredBy: (message) => {
    const id = read(message, 'tool_call_id');
    return typeof id === 'string' ? [id] : [];
  },
  answering: (unanswered, next) => [...unanswered.flatMap((call) => resultsOf(call, ToolMessage)), ...(next === undefined ? [] : [next])],
});

/**
 * The messages to go on with after an agent threw: those of its state when it called its tools, and for each call the message it gave, or an honest
 * one with the status `error`. Of a command only its messages are there.
 *
 * @param harvest the run's
 * @param messages what the agent was given, for a run that called no tool
 * @returns for `agent.invoke({ messages })`
 *
 * @example
 * const harvest = createHarvest();
 * resumeMessages(harvest, [{ role: 'user', content: 'Compare the weather of Oulu and Espoo' }]).length; // 1: no tool was called
 */
export function resumeMessages<Message>(harvest: Harvest, messages: readonly Message[]): Message[] {
  const last = harvest.calls.findLast(({ framework }) => framework === 'langchain')?.origin as LangChainOrigin | undefined;
  if (last === undefined) return [...messages];
  const state = Array.isArray(last.messages) ? last.messages : messages;
  return resume(dialectOf(last.ToolMessage), 'langchain', harvest, state) as Message[];
}
