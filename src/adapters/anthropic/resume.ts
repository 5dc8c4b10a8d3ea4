import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import type { GuardedHarvest, HarvestedCall } from '../guarded/harvest.ts';
import { failureOf, resume, type Dialect, type Unanswered } from '../guarded/resume.ts';

/** A message of the Messages API, as far as it is read. */
interface Message {
  readonly role: string;
  readonly content?: unknown;
}

const blocksOf = ({ content }: Message): readonly unknown[] => (Array.isArray(content) ? content : []);

/** The runner's own words: `Error: ` before each failure but what a `ToolError` holds. */
const resultOf = ({ id, kept }: Unanswered): object => {
  const failure = failureOf(kept);
  if (failure !== undefined)
    return {
      type: 'tool_result',
      tool_use_id: id,
      content: kept?.failureContent ?? `Error: ${failure}`,
      is_error: true,
    };
  const output = kept?.output;
  return { type: 'tool_result', tool_use_id: id, content: Array.isArray(output) ? output : outputText(output) };
};

/** The input as the model wrote it, where the runner told it: what the tool is given can be more than JSON. */
const useOf = ({ toolCallId, toolName, input, origin }: HarvestedCall): object => ({
  type: 'tool_use',
  id: toolCallId,
  name: toolName,
  input: read(origin, 'input') ?? input,
});

const DIALECT: Dialect<Message> = {
  callsOf: (message) =>
    blocksOf(message).flatMap((block) =>
      read(block, 'type') === 'tool_use' ? [{ id: String(read(block, 'id')), name: String(read(block, 'name')) }] : [],
    ),
  answeredBy: (message) =>
    blocksOf(message).flatMap((block) =>
      read(block, 'type') === 'tool_result' ? [String(read(block, 'tool_use_id'))] : [],
    ),
  making: (calls) => [{ role: 'assistant', content: calls.map(useOf) }],
  answering: (unanswered, next) => {
    const results = unanswered.map(resultOf);
    if (next?.role !== 'user') return [{ role: 'user', content: results }, ...(next === undefined ? [] : [next])];
    // Results come before anything else in the message after their calls.
    const rest = typeof next.content === 'string' ? [{ type: 'text', text: next.content }] : blocksOf(next);
    return [{ ...next, content: [...results, ...rest] }];
  },
};

/**
 * The conversation to go on with after a tool runner threw: each `tool_use` is answered with what its call gave, or
 * with an honest `is_error` result. Calls that `messages` does not have come at its end, made and answered.
 *
 * @param harvest the run's
 * @param messages of the runner, `runner.params.messages`; of what it was made with, all but its tool calls is lost
 * @returns for a new runner
 *
 * @example
 * const harvest = createHarvest();
 * const messages = [{ role: 'user' as const, content: 'Compare the weather of Oulu and Espoo' }];
 * resumeMessages(harvest, messages).length; // 1: no tool was called
 */
export function resumeMessages<M extends Message>(harvest: GuardedHarvest, messages: readonly M[]): M[] {
  return resume(DIALECT, 'anthropic', harvest, messages) as M[];
}
