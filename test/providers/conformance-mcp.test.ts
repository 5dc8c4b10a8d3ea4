import type { RegisteredTool } from '@modelcontextprotocol/sdk/server/mcp.js';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { providerConformance, type BackendCall, type ConformanceCall, type ConformanceCalls } from 'spillway/testing';
import { describe, it } from 'vitest';
import { mcpHttpProvider } from '../../src/providers/mcp-http.ts';
import { mcpStdioProvider } from '../../src/providers/mcp-stdio.ts';
import { createSpillway } from '../../src/spillway.ts';
import { httpServer, type HttpServerOptions } from './mcp/http-server.ts';
import type { SeenCall } from './mcp/tools.ts';
import { groupOf, kill } from './support.ts';

const SECRET = 'secret-of-the-harness';
const SERVER = fileURLToPath(new URL('mcp/stdio-server.ts', import.meta.url));

const call = (name: string, input = {}): ConformanceCall => ({ toolName: `box.${name}`, input });
const calls: ConformanceCalls = {
  echo: (text, delayMs) => call('echo', { text, delayMs }),
  hang: () => call('hang'),
  fail: () => call('fail'),
  steps: () => call('steps', { count: 3, everyMs: 20 }),
  invalid: [call('echo', { text: 1 }), call('echo'), call('steps', { count: 'many', everyMs: 1 })],
};

const backendCall = ({ meta, state }: SeenCall): BackendCall => ({
  state,
  callKey: meta['spillway/callKey'] as string,
  traceparent: meta['traceparent'] as string | undefined,
  baggage: meta['baggage'] as string | undefined,
});

const httpCases = (options: HttpServerOptions): ReturnType<typeof providerConformance> =>
  providerConformance({
    createSpillway,
    ...(options.json === true ? { lacks: ['progress'] } : {}),
    make: async () => {
      const gone: RegisteredTool[] = [];
      const server = await httpServer({
        ...options,
        tools: (mcp) => {
          mcp.registerTool('busy', {}, () => ({ content: [] }));
          gone.push(mcp.registerTool('gone', {}, () => ({ content: [] })));
        },
      });
      server.intercept = (_request, response, body) => {
        if (!body.includes('tools/call') || !body.includes('"busy"')) return false;
        response.writeHead(429, { 'retry-after': '7' }).end();
        return true;
      };
      const provider = await mcpHttpProvider({
        name: 'box',
        url: `${server.url}?key=${SECRET}`,
        headers: { authorization: `Bearer ${SECRET}` },
      });
      for (const tool of gone) tool.remove();
      return {
        provider,
        backend: {
          calls: () => server.calls.map(backendCall),
          kill: () => server.stop(),
          held: () => server.answering.size + server.sessions.size,
          close: () => server[Symbol.asyncDispose](),
        },
        calls: { ...calls, busy: () => call('busy'), gone: () => call('gone') },
        secrets: [SECRET],
      };
    },
  });

const stdioCases = providerConformance({
  createSpillway,
  // Over stdio nothing can ask a caller to wait.
  lacks: ['retryAfter', 'gone'],
  make: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-conformance-'));
    const [log, dead] = [join(folder, 'log'), join(folder, 'dead')];
    const provider = await mcpStdioProvider({
      name: 'box',
      command: process.execPath,
      args: [SERVER, log, dead],
      env: { TOKEN: SECRET },
    });
    const { pid = 0 } = provider;
    const seen = (): BackendCall[] => {
      const byId = new Map<string, SeenCall>();
      const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [];
      for (const line of lines) {
        const entry = JSON.parse(line) as SeenCall & { id: string };
        byId.set(entry.id, { ...byId.get(entry.id), ...entry });
      }
      return [...byId.values()].map(backendCall);
    };
    return {
      provider,
      backend: {
        calls: seen,
        kill: () => {
          writeFileSync(dead, '');
          kill(pid);
        },
        held: () => groupOf(pid).length,
        close: () => rmSync(folder, { recursive: true, force: true }),
      },
      calls,
      secrets: [SECRET],
    };
  },
});

describe('R-12.2 MCP over stdio conforms:', () => {
  it.each(stdioCases)('$name', ({ run }) => run());
});

describe('R-12.2 MCP over HTTP, with streams, conforms:', () => {
  it.each(httpCases({}))('$name', ({ run }) => run());
});

describe('R-12.2 MCP over HTTP, with streams that can be taken up again, conforms:', () => {
  it.each(httpCases({ resumable: true }))('$name', ({ run }) => run());
});

describe('R-12.2 MCP over HTTP, with JSON answers, conforms:', () => {
  it.each(httpCases({ json: true }))('$name', ({ run }) => run());
});
