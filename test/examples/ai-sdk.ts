// The tools of an AI SDK program, guarded by one line. The SDK's own types and loop stay as they are.
import { generateText, stepCountIs, tool } from 'ai';
import { guardTools } from 'spillway/adapters/ai-sdk';
import { z } from 'zod';
import { model } from './scripted/ai-sdk.ts';

let asked = 0;
const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => {
    asked += 1;
    if (asked === 1) throw Object.assign(new Error('busy'), { status: 503 });
    return `clear in ${city}`;
  },
});
const pay = tool({
  description: 'Pays a bill',
  inputSchema: z.object({ cents: z.number() }),
  execute: (): string => {
    throw new Error('socket hang up');
  },
});

// What is not said to only read is never tried twice: the payment may have been made.
const tools = guardTools({ weather, pay }, { policies: { weather: { effects: 'read', timeoutMs: 5_000 } } });
const { text, steps } = await generateText({
  model,
  tools,
  stopWhen: stepCountIs(3),
  prompt: 'How is Oslo? And pay 100.',
});

for (const part of steps.flatMap(({ content }) => content)) {
  if (part.type === 'tool-result') console.log(`${part.toolName}: ${String(part.output)}`);
  if (part.type === 'tool-error')
    console.log(`${part.toolName} failed: ${part.error instanceof Error ? part.error.message : String(part.error)}`);
}
console.log(text, `(the weather was asked ${asked} times)`);
