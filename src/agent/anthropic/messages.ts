import type { AgentMessage, AssistantMessage, ToolMessage, UserMessage } from '../message.ts';
import { wireInput, wireText } from '../wire/input.ts';
import type { WireIds, WireNames } from '../wire/names.ts';

export const ANTHROPIC = 'anthropic';

/** A block of the Messages API. */
export interface AnthropicBlock {
  readonly type: string;
}

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly AnthropicBlock[];
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isBlock = (value: unknown): value is AnthropicBlock => isObject(value) && typeof value['type'] === 'string';

const textBlocks = (text: string): AnthropicBlock[] => wireText(text).map((text) => ({ type: 'text', text }));

/** What the provider gave for itself; what others gave is not for it. */
const own = (provider: string, value: unknown): AnthropicBlock[] =>
  provider === ANTHROPIC && isBlock(value) ? [value] : [];

const isThinking = ({ type }: AnthropicBlock): boolean => type === 'thinking' || type === 'redacted_thinking';

/** An answer that was cut off while the model thought: the API takes no message that ends so. */
const withoutLastThoughts = (blocks: readonly AnthropicBlock[]): readonly AnthropicBlock[] =>
  blocks.slice(0, blocks.findLastIndex((block) => !isThinking(block)) + 1);

const assistantBlocks = ({ content }: AssistantMessage, names: WireNames, ids: WireIds): readonly AnthropicBlock[] => {
  ids.nextStep();
  return withoutLastThoughts(
    content.flatMap((part): AnthropicBlock[] => {
      if (part.type === 'provider') return own(part.provider, part.value);
      const kept = part.data?.provider === ANTHROPIC && isObject(part.data.value) ? part.data.value : {};
      if (part.type === 'text') return textBlocks(part.text).map((block) => ({ ...kept, ...block }));
      return [
        {
          ...kept,
          type: 'tool_use',
          id: ids.call(part.id),
          name: names.wire(part.name),
          input: wireInput(part),
        } as AnthropicBlock,
      ];
    }),
  );
};

const resultBlocks = ({ results }: ToolMessage, ids: WireIds): readonly AnthropicBlock[] =>
  results.map(({ callId, text, isError }) => ({
    type: 'tool_result',
    tool_use_id: ids.result(callId),
    content: text,
    ...(isError === true ? { is_error: true } : {}),
  }));

const userBlocks = ({ content }: UserMessage): readonly AnthropicBlock[] =>
  typeof content === 'string'
    ? textBlocks(content)
    : content.flatMap((part) => (part.type === 'text' ? textBlocks(part.text) : own(part.provider, part.value)));

/**
 * A transcript as the Messages API takes it: roles alternate, results come first in the message after their calls, no
 * text is empty. The same transcript gives the same bytes, and a longer one begins with them.
 */
export function toAnthropic(
  messages: readonly AgentMessage[],
  names: WireNames,
  ids: WireIds,
): readonly AnthropicMessage[] {
  const wire: Array<{ readonly role: 'user' | 'assistant'; readonly content: AnthropicBlock[] }> = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks =
      message.role === 'assistant'
        ? assistantBlocks(message, names, ids)
        : message.role === 'tool'
          ? resultBlocks(message, ids)
          : userBlocks(message);
    if (blocks.length === 0) continue;
    const last = wire.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else wire.push({ role, content: [...blocks] });
  }
  return wire;
}
