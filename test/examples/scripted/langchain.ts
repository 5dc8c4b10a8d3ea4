// Stands in for `new ChatAnthropic(...)`: it makes two calls, then answers.
import { AIMessage } from 'langchain';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';

const call = (name: string, args: object): object => ({ id: `call_${name}`, name, args, type: 'tool_call' });

class ScriptedChat extends BaseChatModel {
  #step = 0;

  _llmType(): string {
    return 'scripted';
  }

  bindTools(): this {
    return this;
  }

  _generate(): Promise<object> {
    this.#step += 1;
    const calls = this.#step === 1 ? [call('weather', { city: 'Oslo' }), call('pay', { cents: 100 })] : [];
    const content = this.#step === 1 ? '' : 'Clear. I could not see whether the bill was paid.';
    return Promise.resolve({
      generations: [{ text: content, message: new AIMessage({ content, tool_calls: calls }) }],
    });
  }
}

export const model: ScriptedChat = new ScriptedChat({});
