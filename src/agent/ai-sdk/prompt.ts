import type { AgentMessage, AssistantMessage, ProviderData } from '../message.ts';
import { wireInput, wireText } from '../wire/input.ts';
import type { WireIds, WireNames } from '../wire/names.ts';

export const AI_SDK = 'ai-sdk';

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

const CHUNK = 8_192;

const base64 = (bytes: Uint8Array): string => {
  let binary = '';
  // Piece by piece: arguments are limited.
  for (let at = 0; at < bytes.length; at += CHUNK) binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(binary);
};

/** A part as it is stored: bytes as base64, addresses as text. */
export const storedPart = ({ providerMetadata, data, ...part }: Fields): Fields => {
  const stored = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return base64(value);
    const { type, data, url } = fieldsOf(value);
    if (type === 'data') return { type, data: stored(data) };
    return type === 'url' ? { type, url: String(url) } : value;
  };
  return {
    ...part,
    ...(data === undefined ? {} : { data: stored(data) }),
    ...(providerMetadata === undefined ? {} : { providerOptions: providerMetadata }),
  };
};

/** A stored part as the prompt wants it. */
const promptPart = (value: unknown): readonly unknown[] => {
  const part = fieldsOf(value);
  const data = fieldsOf(part['data']);
  if (typeof part['type'] !== 'string') return [];
  return [
    data['type'] === 'url' && typeof data['url'] === 'string'
      ? { ...part, data: { type: 'url', url: new URL(data['url']) } }
      : part,
  ];
};

const options = (data: ProviderData | undefined): { readonly providerOptions?: unknown } =>
  data?.provider === AI_SDK ? { providerOptions: data.value } : {};
const texts = (text: string, data?: ProviderData): readonly unknown[] =>
  wireText(text).map((text) => ({ type: 'text', text, ...options(data) }));
const own = ({ provider, value }: ProviderData): readonly unknown[] => (provider === AI_SDK ? promptPart(value) : []);

const assistantContent = ({ content }: AssistantMessage, names: WireNames, ids: WireIds): readonly unknown[] => {
  ids.nextStep();
  return content.flatMap((part) => {
    if (part.type === 'provider') return own(part);
    if (part.type === 'text') return texts(part.text, part.data);
    return [
      {
        type: 'tool-call',
        toolCallId: ids.call(part.id),
        toolName: names.wire(part.name),
        input: wireInput(part),
        ...options(part.data),
      },
    ];
  });
};

const contentOf = (entry: AgentMessage, names: WireNames, ids: WireIds): readonly unknown[] => {
  switch (entry.role) {
    case 'assistant':
      return assistantContent(entry, names, ids);
    case 'user':
      return typeof entry.content === 'string'
        ? texts(entry.content)
        : entry.content.flatMap((part) => (part.type === 'text' ? texts(part.text, part.data) : own(part)));
    case 'tool':
      return entry.results.map(({ callId, toolName, text, isError }) => ({
        type: 'tool-result',
        toolCallId: ids.result(callId),
        toolName: names.wire(toolName),
        output: { type: isError === true ? 'error-text' : 'text', value: text },
      }));
  }
};

/** A transcript as a language model of the AI SDK takes it. */
export function toPrompt(
  messages: readonly AgentMessage[],
  system: string | undefined,
  names: WireNames,
  ids: WireIds,
): unknown[] {
  const prompt: unknown[] = system === undefined || system === '' ? [] : [{ role: 'system', content: system }];
  for (const message of messages) {
    const content = contentOf(message, names, ids);
    if (content.length > 0) prompt.push({ role: message.role, content });
  }
  return prompt;
}
