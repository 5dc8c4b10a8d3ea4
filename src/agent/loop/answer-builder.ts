import type { AssistantMessage, ProviderData } from '../message.ts';
import type { ModelEvent, ModelUsage, StopReason } from '../model.ts';

type Part = AssistantMessage['content'][number];

/** Collects the pieces of a model's answer, and makes the message of them. */
export class AnswerBuilder {
  readonly #parts: Part[] = [];
  /** The pieces of the text that is open. */
  #text: string[] | undefined;
  #usage: ModelUsage = {};
  #stop: StopReason | undefined;

  add(event: ModelEvent): void {
    switch (event.type) {
      case 'text':
        (this.#text ??= []).push(event.text);
        break;
      case 'text_end':
        this.#endText(event.data);
        break;
      case 'thinking':
        break;
      case 'tool_call': {
        const { type, id, name, input, unparsed, data } = event;
        const said = unparsed !== undefined ? { unparsed } : input === undefined ? {} : { input };
        this.#push({ type, id, name, ...said, ...(data === undefined ? {} : { data }) });
        break;
      }
      case 'block':
        this.#push({ type: 'provider', provider: event.provider, value: event.value });
        break;
      case 'usage':
        this.#usage = { ...this.#usage, ...event.usage };
        break;
      case 'stop':
        this.#stop = event.reason;
        break;
    }
  }

  get usage(): ModelUsage {
    return this.#usage;
  }

  /** Why the model stopped; `undefined` until it says so. */
  get stop(): StopReason | undefined {
    return this.#stop;
  }

  message(): AssistantMessage {
    this.#endText();
    return { role: 'assistant', content: [...this.#parts], ...(this.#stop === 'pause' ? { stop: 'pause' } : {}) };
  }

  #push(part: Part): void {
    this.#endText();
    this.#parts.push(part);
  }

  #endText(data?: ProviderData): void {
    const text = this.#text?.join('') ?? '';
    this.#text = undefined;
    // Providers refuse an empty text.
    if (text !== '' || data !== undefined)
      this.#parts.push({ type: 'text', text: text.toWellFormed(), ...(data === undefined ? {} : { data }) });
  }
}
