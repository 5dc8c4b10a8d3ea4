import * as z from 'zod';

/** What only the provider it came from can read. It is stored as it came, and given back untouched. */
export interface ProviderData {
  /** The name of the provider that can read it, such as `anthropic` or `ai-sdk:openai`; the others never see it. */
  readonly provider: string;
  /** Any JSON value, sent back to that provider as it came. */
  readonly value: unknown;
}

/** A piece of a message that is plain text. */
export interface TextPart {
  /** Marks a text. */
  readonly type: 'text';
  /** The text itself. */
  readonly text: string;
  /** What the provider wants back beside the text: citations, a signature. */
  readonly data?: ProviderData;
}

/** A tool call as the model made it. */
export interface ToolCallPart {
  /** Marks a tool call. */
  readonly type: 'tool_call';
  /** The id by which a result answers the call. Unique within the transcript. */
  readonly id: string;
  /** The tool's name, as it was offered. */
  readonly name: string;
  /** The input as parsed JSON; absent where the model wrote none, or no JSON. */
  readonly input?: unknown;
  /** What the model wrote as the input, where that was not JSON; the call then fails with `invalid_parameters`. */
  readonly unparsed?: string;
  /** What the provider wants back beside the call, such as a signature. */
  readonly data?: ProviderData;
}

/**
 * A block that is no text and no tool call: thinking with its signature, an image, what a provider invents next year.
 */
export interface ProviderPart extends ProviderData {
  /** Marks a block of the provider's own. */
  readonly type: 'provider';
}

/** A message of the person, or the program, that the agent works for. */
export interface UserMessage {
  /** Says whose message it is. */
  readonly role: 'user';
  /** A text, or parts of it in order; a provider's parts can hold images and files. */
  readonly content: string | ReadonlyArray<TextPart | ProviderPart>;
}

/** One whole answer of the model. */
export interface AssistantMessage {
  /** Says whose message it is. */
  readonly role: 'assistant';
  /** The parts of the answer, in the order in which the model wrote them. */
  readonly content: ReadonlyArray<TextPart | ToolCallPart | ProviderPart>;
  /**
   * `pause`: the model wants to be asked again as it is, and goes on. Without it, an answer without tool calls ends the
   * run.
   */
  readonly stop?: 'pause';
}

/** The answer to one tool call: the text that the model sees, to the byte. */
export interface ToolResult {
  /** The id of the call that is answered. */
  readonly callId: string;
  /** The tool's name, as the call has it. */
  readonly toolName: string;
  /** What the model reads. Never empty. */
  readonly text: string;
  /** Set where the call failed, also for a call that may have run. */
  readonly isError?: true;
}

/** The answers to all tool calls of the message before it, in call order. */
export interface ToolMessage {
  /** Says whose message it is. */
  readonly role: 'tool';
  /** One result for each call, in call order. */
  readonly results: readonly ToolResult[];
}

/** One message of a transcript. JSON, so that it can be stored; what is replayed is what was stored. */
export type AgentMessage = UserMessage | AssistantMessage | ToolMessage;

const providerFields = { provider: z.string().min(1), value: z.unknown() };
const data = z.strictObject(providerFields).exactOptional();
const textPart = z.strictObject({ type: z.literal('text'), text: z.string(), data });
const providerPart = z.strictObject({ type: z.literal('provider'), ...providerFields });
const toolCallPart = z.strictObject({
  type: z.literal('tool_call'),
  id: z.string(),
  name: z.string(),
  input: z.unknown().optional(),
  unparsed: z.string().exactOptional(),
  data,
});
const toolResult = z.strictObject({
  callId: z.string(),
  toolName: z.string(),
  text: z.string(),
  isError: z.literal(true).exactOptional(),
});

/** A stored transcript. It is checked for its shape; `repairTranscript` mends what a crash left open. */
export const agentMessagesSchema: z.ZodType<readonly AgentMessage[]> = z.array(
  z.discriminatedUnion('role', [
    z.strictObject({
      role: z.literal('user'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [textPart, providerPart]))]),
    }),
    z.strictObject({
      role: z.literal('assistant'),
      content: z.array(z.discriminatedUnion('type', [textPart, toolCallPart, providerPart])),
      stop: z.literal('pause').exactOptional(),
    }),
    z.strictObject({ role: z.literal('tool'), results: z.array(toolResult) }),
  ]),
);

/** The tool calls of a message, in order. */
export const toolCallsOf = (message: AgentMessage | undefined): readonly ToolCallPart[] =>
  message?.role === 'assistant'
    ? message.content.filter((part): part is ToolCallPart => part.type === 'tool_call')
    : [];

/** What a message says in words. */
export const textOf = (message: AgentMessage | undefined): string =>
  message?.role === 'assistant' ? message.content.map((part) => (part.type === 'text' ? part.text : '')).join('') : '';
