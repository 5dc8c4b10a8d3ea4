import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ToolProvider } from '../../src/contract/provider.ts';
import { mcpStdioProvider } from '../../src/providers/mcp-stdio.ts';
import { createSpillway } from '../../src/spillway.ts';
import { oneTool, restServer } from './rest/kit.ts';
import { ROOT } from './support.ts';

/** Was: what a server said was cut before the layer looked for the host's secrets, and half of one got through. */
const SECRET = 'C4naryV4lue';
const PART = SECRET.slice(0, 6);
/** Where texts are cut, or were. */
const EDGES = [1_000, 1_024, 4_000, 4_096, 8_192];
/** In front of the secret, as much as leaves its first half before an edge; in words, as a page has them. */
const LENGTHS = EDGES.map((edge) => edge - PART.length - 1);
const around = (length: number): string => `w${'word '.repeat(length / 5 + 1).slice(-length)}${SECRET} and more`;

/** All that a layer tells of calls that are given these inputs, and what a model gets of them. */
const told = async (provider: ToolProvider, toolName: string, inputs: readonly object[]): Promise<string> => {
  const layer = createSpillway({
    providers: [provider],
    redact: { secrets: [SECRET] },
    defaults: { retry: { maxAttempts: 1 }, breaker: false },
  });
  let text = '';
  layer.trace$.subscribe((event) => (text += `${JSON.stringify(event)}\n`));
  for (const input of inputs) {
    const { error } = await layer.execute({ toolName, input });
    expect(error, toolName).toBeDefined();
    text += `${error?.modelText}\n`;
  }
  await layer.close();
  return text;
};

/** A server that says what it is asked to, or dies; and says that where it is to start again. */
const SERVER = `
  import { existsSync, readFileSync, writeFileSync } from 'node:fs';
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
  import { z } from 'zod';
  const [file] = process.argv.slice(-1);
  if (existsSync(file)) {
    process.stderr.write(readFileSync(file, 'utf8'), () => process.exit(1));
  } else {
    const server = new McpServer({ name: 'edge', version: '0' });
    const shape = { inputSchema: { text: z.string() } };
    server.registerTool('say', shape, ({ text }) => ({ isError: true, content: [{ type: 'text', text }] }));
    server.registerTool('die', shape, ({ text }) => {
      writeFileSync(file, text);
      process.exit(1);
    });
    await server.connect(new StdioServerTransport());
  }
`;

describe('R-11.4 a named secret on the edge of what is kept of a server', () => {
  it('R-11.4 a REST service', async () => {
    await using server = await restServer();
    let text = '';
    for (const length of LENGTHS) {
      server.answer((_request, response) => void response.writeHead(500).end(around(length)));
      text += await told(oneTool(server.url, {}, { show: 'errors' }).provider, 'api.t', [{}]);
    }
    expect(text).not.toContain(PART);
    expect(text).toContain('word word');
  });

  it.each([
    ['say', LENGTHS],
    // Its last words are those of a start that comes to nothing.
    ...LENGTHS.map((length) => ['die', [length, length]] as const),
  ] as const)('R-11.4 an MCP server that is asked to %s with it, after %j characters', async (name, lengths) => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-edge-'));
    const args = ['--input-type=module', '-e', SERVER, join(folder, 'died')];
    const provider = await mcpStdioProvider({
      name: 'edge',
      command: process.execPath,
      args,
      cwd: ROOT,
      show: 'errors',
    });
    const text = await told(
      provider,
      `edge.${name}`,
      lengths.map((length) => ({ text: around(length) })),
    );
    await provider.close();
    rmSync(folder, { recursive: true });
    expect(text).not.toContain(PART);
    expect(text).toContain('word word');
  });
});
