import * as z from 'zod';

/** What only the provider it came from can read. It is stored as it came, and given back untouched. */
export interface ProviderData {
  /** Who can read it: `anthropic`, `ai-sdk:openai`. */
  readonly provider: string;
  /** JSON. */
  readonly value: unknown;
}

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  /** What the provider wants back beside the text: citations, a signature. */
  readonly data?: ProviderData;
}

/** A tool call as the model made it. */
export interface ToolCallPart {
  readonly type: 'tool_call';
  /** Unique within the transcript. */
  readonly id: string;
  readonly name: string;
  /** The input; absent when it was not JSON. */
  readonly input?: unknown;
  /** What the model wrote instead of JSON. */
  readonly unparsed?: string;
  readonly data?: ProviderData;
}

/** A block that is no text and no tool call: thinking with its signature, an image, what a provider invents next year. */
export interface ProviderPart extends ProviderData {
  readonly type: 'provider';
}

export interface UserMessage {
  readonly role: 'user';
  readonly content: string | ReadonlyArray<TextPart | ProviderPart>;
}

export interface AssistantMessage {
  readonly role: 'assistant';
  readonly content: ReadonlyArray<TextPart | ToolCallPart | ProviderPart>;
  /** The model only paused: asked again, it goes on. Without it, an answer without tool calls is the end. */
  readonly stop?: 'pause';
}

/** The answer to one tool call: the text that the model sees, to the byte. */
export interface ToolResult {
  readonly callId: string;
  readonly toolName: string;
  /** Never empty. */
  readonly text: string;
  readonly isError?: true;
}

/** The answers to all tool calls of the message before it, in call order. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly results: readonly ToolResult[];
}

/** One message of a transcript. JSON, so that it can be stored; what is replayed is what was stored. */
export type AgentMessage = UserMessage | AssistantMessage | ToolMessage;

const providerFields = { provider: z.string().min(1), value: z.unknown() };
const data = z.strictObject(providerFields).exactOptional();
const textPart = z.strictObject({ type: z.literal('text'), text: z.string(), data });
const providerPart = z.strictObject({ type: z.literal('provider'), ...providerFields });
const toolCallPart = z.strictObject({ type: z.literal('tool_call'), id: z.string(), name: z.string(), input: z.unknown().optional(), unparsed: z.string().exactOptional(), data });
const toolResult = z.strictObject({ callId: z.string(), toolName: z.string(), text: z.string(), isError: z.literal(true).exactOptional() });

/** A stored transcript. It is checked for its shape; `repairTranscript` mends what a crash left open. */
export const agentMessagesSchema: z.ZodType<readonly AgentMessage[]> = z.array(
  z.discriminatedUnion('role', [
    z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(z.discriminatedUnion('type', [textPart, providerPart]))]) }),
    z.strictObject({ role: z.literal('assistant'), content: z.array(z.discriminatedUnion('type', [textPart, toolCallPart, providerPart])), stop: z.literal('pause').exactOptional() }),
    z.strictObject({ role: z.literal('tool'), results: z.array(toolResult) }),
  ]),
);

/** The tool calls of a message, in order. */
export const toolCallsOf = (message: AgentMessage | undefined): readonly ToolCallPart[] =>
  message?.role === 'assistant' ? message.content.filter((part): part is ToolCallPart => part.type === 'tool_call') : [];

/** What a message says in words. */
export const textOf = (message: AgentMessage | undefined): string =>
  message?.role === 'assistant' ? message.content.map((part) => (part.type === 'text' ? part.text : '')).join('') : '';
