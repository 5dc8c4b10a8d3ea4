// The tools of a LangChain agent, guarded by a middleware.
import { ToolMessage, createAgent, createMiddleware, tool } from 'langchain';
import { spillwayMiddleware } from 'spillway/adapters/langchain';
import { z } from 'zod';
import { model } from './scripted/langchain.ts';

let asked = 0;
const weather = tool(
  ({ city }: { city: string }) => {
    asked += 1;
    if (asked === 1) throw Object.assign(new Error('busy'), { status: 503 });
    return `clear in ${city}`;
  },
  { name: 'weather', description: 'The weather in a city', schema: z.object({ city: z.string() }) },
);
const pay = tool(() => Promise.reject(new Error('socket hang up')), {
  name: 'pay',
  description: 'Pays a bill',
  schema: z.object({ cents: z.number() }),
});

// What is not said to only read is never tried twice: the payment may have been made.
const guarded = createMiddleware(
  spillwayMiddleware({ ToolMessage, policies: { weather: { effects: 'read', timeoutMs: 5_000 } } }),
);
const agent = createAgent({ model, tools: [weather, pay], middleware: [guarded] });
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'How is Oslo? And pay 100.' }] });

for (const message of messages)
  if (message.getType() === 'tool') console.log(`${message.name} ${message.status}: ${String(message.content)}`);
console.log(messages.at(-1)?.content, `(the weather was asked ${asked} times)`);
