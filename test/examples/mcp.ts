// An agent whose tools are those of two MCP servers, each a process of its own.
import { filter, lastValueFrom } from 'rxjs';
import { createSpillway } from 'spillway';
import { runAgent } from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';

const files = await mcpStdioProvider({
  name: 'files',
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-filesystem', import.meta.dirname],
});
const everything = await mcpStdioProvider({
  name: 'everything',
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-everything', 'stdio'],
});
const spillway = createSpillway({ providers: [files, everything], defaults: { timeoutMs: 10_000 } });

const model = scriptedModel([
  {
    calls: [
      { name: 'files.search_files', input: { path: import.meta.dirname, pattern: 'mcp.ts' } },
      { name: 'everything.get-sum', input: { a: 19, b: 23 } },
      { name: 'everything.get-sum', input: { a: 'nineteen' } }, // the model's mistake, found before the server sees it
    ],
  },
  { text: 'One file, and 42.' },
]);
const tools = [...files.tools, ...everything.tools];
const run$ = runAgent({
  model,
  spillway,
  tools,
  messages: [{ role: 'user', content: 'Where is mcp.ts, and what is 19 + 23?' }],
});
const settled = await lastValueFrom(run$.pipe(filter((event) => event.type === 'settled')));

for (const { results } of settled.result.messages.filter((message) => message.role === 'tool')) {
  for (const { toolName, text } of results)
    console.log(`${toolName}: ${text.replace(import.meta.dirname, '.').slice(0, 100)}`);
}
console.log(settled.result.text);
await spillway.close(); // both servers are gone
