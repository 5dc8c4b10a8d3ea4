import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { root } from '../pages.ts';
import { installFrameworks, linkModules } from '../reader.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

/**
 * What hosts write: guarded tools where each framework's own types want tools. Each is a module of its own; where a
 * line has `@ts-expect-error` above it, the type that is kept says no.
 */
const PROGRAMS: Readonly<Record<string, string>> = {
  'ai-sdk': `
import { ToolLoopAgent, dynamicTool, generateText, tool, type LanguageModel } from 'ai';
import { guardTools } from 'spillway/adapters/ai-sdk';
const weather = tool({
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ degrees: city.length }),
});
const pay = tool({
  inputSchema: z.object({ usd: z.number() }),
  needsApproval: ({ usd }) => usd > 100,
  execute: ({ usd }) => \`paid \${usd}\`,
});
const tools = guardTools({ weather, pay, any: dynamicTool({ inputSchema: z.object({}), execute: async () => 1 }) });
export const agentOf = (model: LanguageModel) => new ToolLoopAgent({ model, tools });
export async function run(model: LanguageModel): Promise<void> {
  const { toolResults } = await generateText({ model, tools, prompt: 'go' });
  for (const result of toolResults) {
    if (result.dynamic === true || result.toolName !== 'weather') continue;
    const degrees: number = result.output.degrees;
    // @ts-expect-error the output keeps its type
    const text: string = result.output.degrees;
    console.log(degrees, text);
  }
}
// @ts-expect-error there is no such tool
guardTools({ weather }).pay;
`,
  anthropic: `
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { guardTools } from 'spillway/adapters/anthropic';
const inputSchema = z.object({ city: z.string() });
const weather = betaZodTool({ name: 'weather', description: 'x', inputSchema, run: ({ city }) => city });
const schema = { type: 'object', properties: { usd: { type: 'number' } }, required: ['usd'] } as const;
const pay = betaTool({ name: 'pay', description: 'x', inputSchema: schema, run: ({ usd }) => \`paid \${usd}\` });
const messages = [{ role: 'user' as const, content: 'go' }];
const given = { model: 'm', max_tokens: 10, messages, tools: guardTools([weather, pay]) };
export const runner = (client: Anthropic) => client.beta.messages.toolRunner(given);
// @ts-expect-error it is a list of tools
guardTools([weather]).run;
`,
  'openai-agents': `
import { Agent, MCPServerStdio, tool, type Tool } from '@openai/agents-core';
import { guardMcpServer, guardTool, guardTools } from 'spillway/adapters/openai-agents';
const parameters = z.object({ usd: z.number() });
const pay = guardTool(tool)({
  name: 'pay',
  description: 'x',
  parameters,
  needsApproval: async (_context, { usd }) => usd > 100,
  execute: ({ usd }) => usd.toFixed(),
});
const own = tool({ name: 'own', description: 'x', parameters, execute: ({ usd }) => usd.toFixed() });
const several: Tool[] = [own];
const mcpServers = [guardMcpServer(new MCPServerStdio({ command: 'x' }))];
const tools = [pay, ...guardTools([own]), ...guardTools(several)];
export const agent = new Agent({ name: 'clerk', tools, mcpServers });
// @ts-expect-error the input keeps its type
guardTool(tool)({ name: 'pay', description: 'x', parameters, execute: ({ usd }) => usd.toUpperCase() });
`,
  'claude-agent': `
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { guardTools } from 'spillway/adapters/claude-agent';
const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] });
const pay = tool('pay', 'x', { usd: z.number() }, async ({ usd }) => text(usd.toFixed()));
const extras = { annotations: { readOnlyHint: true } };
const look = tool('look', 'x', { city: z.string() }, async ({ city }) => text(city), extras);
const [guarded] = guardTools([pay]);
const server = createSdkMcpServer({ name: 'bank', tools: [...guardTools([pay, look]), ...guardTools([pay])] });
export const asked = () => query({ prompt: 'go', options: { mcpServers: { server } } });
// @ts-expect-error the input keeps its type
void guarded?.handler({ usd: 'five' }, {});
`,
  genkit: `
import { generateMiddleware, genkit, z as own } from 'genkit';
import { spillwayMiddleware } from 'spillway/adapters/genkit';
const ai = genkit({});
const inputSchema = own.object({ usd: own.number() });
const pay = ai.defineTool({ name: 'pay', description: 'x', inputSchema, outputSchema: own.string() }, async ({ usd }) =>
  usd.toFixed(),
);
const guard = spillwayMiddleware({ generateMiddleware });
export const run = () => ai.generate({ prompt: 'go', tools: [pay], use: [guard()] });
// @ts-expect-error Genkit's maker is asked for
spillwayMiddleware({});
`,
  langchain: `
import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { createAgent, createMiddleware } from 'langchain';
import { guardTools, spillwayMiddleware } from 'spillway/adapters/langchain';
const pay = tool(({ usd }) => usd.toFixed(), { name: 'pay', description: 'x', schema: z.object({ usd: z.number() }) });
const look = tool(({ city }) => city, { name: 'look', description: 'x', schema: z.object({ city: z.string() }) });
const guard = spillwayMiddleware({ ToolMessage });
const middleware = [createMiddleware(guard), guard] as const;
export const agent = createAgent({ model: 'm', tools: [pay, look], middleware });
export const node = new ToolNode(guardTools([pay, look], { ToolMessage }));
export const outside = createAgent({ model: 'm', tools: guardTools([pay, look]) });
const [guarded] = guardTools([pay]);
void guarded?.invoke({ usd: 5 });
// @ts-expect-error the input keeps its type
void guarded?.invoke({ usd: [] });
`,
  mastra: `
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { guardTool, guardTools } from 'spillway/adapters/mastra';
const [inputSchema, outputSchema] = [z.object({ usd: z.number() }), z.object({ paid: z.number() })];
const definition = { id: 'pay', description: 'x', inputSchema, outputSchema };
const execute = async ({ usd }: { usd: number }) => ({ paid: usd });
const pay = guardTool(createTool)({ ...definition, requireApproval: true, execute });
const own = createTool({ ...definition, execute: async ({ usd }) => ({ paid: usd }) });
const tools = { pay, ...guardTools({ own }) };
export const agent = new Agent({ id: 'a', name: 'a', instructions: 'x', model: 'openai/x', tools });
// @ts-expect-error the output keeps its type
guardTool(createTool)({ ...definition, execute: async ({ usd }) => ({ paid: usd.toFixed() }) });
// @ts-expect-error there is no such tool
guardTools({ own }).pay;
`,
  strands: `
import { Agent, McpClient, tool } from '@strands-agents/sdk';
import { guardTool, guardTools } from 'spillway/adapters/strands';
const inputSchema = z.object({ usd: z.number() });
const pay = guardTool(tool)({
  name: 'pay',
  description: 'x',
  inputSchema,
  callback: ({ usd }, context) => \`\${usd} \${context?.toolUse.toolUseId}\`,
});
const own = tool({ name: 'own', description: 'x', inputSchema, callback: ({ usd }) => usd });
export const agentOf = async (client: McpClient) =>
  new Agent({ tools: [pay, ...guardTools([own]), ...guardTools(await client.listTools())] });
const paid: Promise<string> = pay.invoke({ usd: 5 });
// @ts-expect-error the input keeps its type
pay.invoke({ usd: 'five' });
export { paid };
`,
  llamaindex: `
import { tool } from '@llamaindex/core/tools';
import { agent } from '@llamaindex/workflow';
import { guardTool, guardTools } from 'spillway/adapters/llamaindex';
const parameters = z.object({ usd: z.number() });
const pay = guardTool(tool)({ name: 'pay', description: 'x', parameters, execute: ({ usd }) => usd.toFixed() });
const own = tool({ name: 'own', description: 'x', parameters, execute: ({ usd }) => usd.toFixed() });
export const made = agent({ tools: [pay, ...guardTools([own])] });
// @ts-expect-error the input keeps its type
guardTool(tool)({ name: 'pay', description: 'x', parameters, execute: ({ usd }) => usd.toUpperCase() });
`,
  voltagent: `
import { Agent, createTool } from '@voltagent/core';
import { guardTool, guardTools } from 'spillway/adapters/voltagent';
const parameters = z.object({ usd: z.number() });
const pay = guardTool(createTool)({
  name: 'pay',
  description: 'x',
  parameters,
  needsApproval: true,
  execute: async ({ usd }) => usd.toFixed(),
});
const own = createTool({ name: 'own', description: 'x', parameters, execute: async ({ usd }) => usd.toFixed() });
const tools = [pay, ...guardTools([own])];
export const agent = new Agent({ name: 'a', instructions: 'x', model: 'openai/x', tools });
// @ts-expect-error the input keeps its type
guardTool(createTool)({ name: 'pay', description: 'x', parameters, execute: async ({ usd }) => usd.toUpperCase() });
`,
  'google-adk': `
import { AgentTool, FunctionTool, LlmAgent, LongRunningFunctionTool } from '@google/adk';
import { guardTool, guardTools } from 'spillway/adapters/google-adk';
const parameters = z.object({ usd: z.number() });
const Guarded = guardTool(FunctionTool);
const described = { description: 'x', parameters };
const execute = ({ usd }: { usd: number }) => usd.toFixed();
const pay = new Guarded({ name: 'pay', ...described, requireConfirmation: true, execute });
const long = new (guardTool(LongRunningFunctionTool))({ name: 'long', ...described, execute });
const inner = new LlmAgent({ name: 'inner', tools: [pay, long] });
export const agent = new LlmAgent({ name: 'a', tools: guardTools([new AgentTool({ agent: inner }), pay]) });
export const isOne: boolean = pay instanceof FunctionTool;
// @ts-expect-error the input keeps its type
new Guarded({ name: 'pay', description: 'x', parameters, execute: ({ usd }) => usd.toUpperCase() });
`,
  mcp: `
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { guardClient } from 'spillway/adapters/mcp';
const client: Client = guardClient(new Client({ name: 'c', version: '0' }));
const client2: Client2 = guardClient(new Client2({ name: 'c', version: '0' }));
const call = { name: 'pay', arguments: { usd: 5 } };
export const called = [client.callTool(call), client2.callTool(call)];
// @ts-expect-error a call has a name
void client2.callTool({ arguments: {} });
`,
  function: `
import { guardFunction } from 'spillway/adapters/function';
const own = ({ usd }: { usd: number }, _call: { id: string }) => usd.toFixed();
const pay = guardFunction('pay', own, { idOf: (_input, { id }) => id });
export const paid: Promise<string> = pay({ usd: 5 }, { id: 'c1' });
// @ts-expect-error the context keeps its type
void pay({ usd: 5 }, {});
`,
};

beforeAll(installFrameworks, SIDE_INSTALL_TIMEOUT_MS);

it('R-12.2 a guarded tool has the type that its framework wants, and keeps it', { timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-types-'));
  try {
    await linkModules(folder);
    for (const [name, code] of Object.entries(PROGRAMS))
      writeFileSync(join(folder, `${name}.ts`), `import { z } from 'zod';${code}`);
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object };
    const adapters = Object.keys(exports).flatMap((entry) => /^\.\/adapters\/(.+)/.exec(entry)?.[1] ?? []);
    expect(Object.keys(PROGRAMS).toSorted()).toEqual(adapters.toSorted());
    const paths = Object.fromEntries(
      adapters.map((name) => [`spillway/adapters/${name}`, [join(root, `src/adapters/${name}.ts`)]]),
    );
    // As strict as this package is itself, but for what is about emitting.
    const compilerOptions = {
      rootDir: null,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      noUnusedLocals: false,
      isolatedDeclarations: false,
      declaration: false,
      paths,
    };
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout, stderr } = spawnSync(process.execPath, [tsc, '--pretty', 'false', '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(`${stdout}${stderr}`.trim()).toBe('');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
