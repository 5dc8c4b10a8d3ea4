// Stands in for `anthropic('...')`: it makes two calls, then answers.
import { MockLanguageModelV4 } from 'ai/test';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
const call = (toolName: string, input: object) => ({
  type: 'tool-call' as const,
  toolCallId: `call_${toolName}`,
  toolName,
  input: JSON.stringify(input),
});

let step = 0;
export const model: MockLanguageModelV4 = new MockLanguageModelV4({
  doGenerate: () => {
    step += 1;
    if (step === 1)
      return Promise.resolve({
        content: [call('weather', { city: 'Oslo' }), call('pay', { cents: 100 })],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      });
    return Promise.resolve({
      content: [{ type: 'text', text: 'Clear. I could not see whether the bill was paid.' }],
      finishReason: { unified: 'stop', raw: undefined },
      usage,
      warnings: [],
    });
  },
});
