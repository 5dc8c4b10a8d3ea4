import { read } from '../../errors/structure.ts';
import { outputText } from '../../policy/model-text.ts';
import type { GuardedHarvest, HarvestedCall } from '../guarded/harvest.ts';
import { failureOf } from '../guarded/resume.ts';

/** What a guarded tool keeps with a call. */
export interface AiSdkOrigin {
  readonly tool: object;
  /** What the model was sent before it made the call; all calls of a step have the same list. */
  readonly messages: readonly unknown[] | undefined;
}

const originOf = ({ origin }: HarvestedCall): AiSdkOrigin => origin as AiSdkOrigin;

const jsonOf = (output: unknown): object => {
  try {
    return { type: 'json', value: JSON.parse(JSON.stringify(output) ?? 'null') as unknown };
  } catch {
    return { type: 'text', value: outputText(output) };
  }
};

/** An output as AI SDK would send it: by the tool's own `toModelOutput`, if it has one. */
const outputOf = async (kept: HarvestedCall): Promise<unknown> => {
  const failure = failureOf(kept);
  if (failure !== undefined) return { type: 'error-text', value: failure };
  const { toolCallId, input, output } = kept;
  const { tool } = originOf(kept);
  const toModelOutput = read(tool, 'toModelOutput');
  if (typeof toModelOutput === 'function')
    return Reflect.apply(toModelOutput as (given: object) => unknown, tool, [{ toolCallId, input, output }]);
  return typeof output === 'string' ? { type: 'text', value: output } : jsonOf(output);
};

const resultOf = async (kept: HarvestedCall): Promise<object> => ({
  type: 'tool-result',
  toolCallId: kept.toolCallId,
  toolName: kept.toolName,
  output: await outputOf(kept),
});

/** A part of a message, as far as it is read. */
interface Part {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
}
interface Message {
  readonly role?: unknown;
  readonly content?: unknown;
}

const partsOf = (message: Message | undefined): readonly Part[] =>
  Array.isArray(message?.content) ? (message.content as readonly Part[]) : [];

/** The calls that messages make and do not answer: those that a person has just approved. */
const openIn = (messages: readonly Message[]): ReadonlySet<unknown> => {
  const open = new Set<unknown>();
  for (const { type, toolCallId } of messages.flatMap(partsOf)) {
    if (type === 'tool-call') open.add(toolCallId);
    if (type === 'tool-result') open.delete(toolCallId);
  }
  return open;
};

/** With the approvals: those that are answered there are done, and AI SDK sees to the others. */
const answered = (messages: readonly Message[], results: readonly object[]): Message[] => {
  const last = messages.at(-1);
  if (results.length === 0) return [...messages];
  return last?.role === 'tool'
    ? [...messages.slice(0, -1), { ...last, content: [...partsOf(last), ...results] }]
    : [...messages, { role: 'tool', content: results }];
};

/**
 * The messages to go on with after `generateText` or `streamText` threw or was aborted: what the model was sent in its
 * last step, the calls it made of guarded tools, and what each gave, or an honest error. What it wrote beside them, and
 * its other calls, are lost.
 *
 * @param harvest the run's
 * @param messages what the run was given, for one that called no tool
 * @returns for `generateText({ messages })`; rejects only with what a tool's `toModelOutput` throws
 *
 * @example const harvest = createHarvest(); const messages = await resumeMessages(harvest, [{ role: 'user' as const,
 * content: 'Compare the weather of Oulu and Espoo' }]);
 */
export async function resumeMessages<M>(harvest: GuardedHarvest, messages: readonly M[]): Promise<M[]> {
  const calls = harvest.calls.filter(({ framework, toolCallId }) => framework === 'ai-sdk' && toolCallId !== undefined);
  const last = calls.at(-1);
  if (last === undefined) return [...messages];
  const { messages: sent } = originOf(last);
  const step = sent === undefined ? calls : calls.filter((call) => originOf(call).messages === sent);
  const before = (sent ?? messages) as readonly Message[];
  const open = openIn(before);
  const { approved = [], made = [] } = Object.groupBy(step, ({ toolCallId }) =>
    open.has(toolCallId) ? 'approved' : 'made',
  );
  const resumed = answered(before, await Promise.all(approved.map(resultOf)));
  if (made.length > 0) {
    const content = made.map(({ toolCallId, toolName, input }) => ({ type: 'tool-call', toolCallId, toolName, input }));
    resumed.push({ role: 'assistant', content }, { role: 'tool', content: await Promise.all(made.map(resultOf)) });
  }
  return resumed as M[];
}
