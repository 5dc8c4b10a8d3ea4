import { join } from 'node:path';
import { createMCPClient } from '@ai-sdk/mcp';
import { StdioMCPTransport as AiStdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
  type ClientOptions,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveHttp, type HttpFront } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy, type McpProxy } from '../../src/mcp-proxy/proxy.ts';
import type { ServerPlace } from '../../src/mcp-proxy/launch.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { EVERYTHING } from '../providers/support.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { NODE } from './kit.ts';
import { serveModern } from './modern-server.ts';
import { loadLangChainMcp, split, type LangChainAdapters } from './real-clients.ts';
import { behind, type Command } from './wire-kit.ts';

const MODERN: Command = [NODE, join(import.meta.dirname, 'modern-server.ts'), 'stdio'];
const EVERY: Command = [NODE, EVERYTHING, 'stdio'];
const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
const INFO = { name: 'test', version: '1' };

/** A proxy over HTTP in this process, in front of one server. */
const fronts: { readonly front: HttpFront; readonly proxy: McpProxy }[] = [];
const overHttp = async (place: ServerPlace): Promise<string> => {
  const proxy = createMcpProxy({ servers: { s: { place } } });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: true, runtime: liveRuntime });
  fronts.push({ front, proxy });
  return front.url;
};
const placed = ([command, ...args]: Command): ServerPlace => ({ command, args });
afterAll(async () => {
  for (const { front, proxy } of fronts) {
    await front.close();
    await proxy.close();
  }
});

describe('R-16.5 SDK 1', () => {
  const scenario = async (transport: Transport): Promise<unknown> => {
    const client = new Client1(INFO, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
    await client.connect(transport);
    const controller = new AbortController();
    const long = { name: 'trigger-long-running-operation', arguments: { duration: 20, steps: 100 } };
    const canceled = client
      .callTool(long, undefined, {
        signal: controller.signal,
        onprogress: () => controller.abort(new Error('enough')),
      })
      .catch(messageOf);
    const told = {
      version: client.getServerVersion(),
      tools: (await client.listTools()).tools.map(({ name }) => name),
      echo: await client.callTool({ name: 'echo', arguments: { message: 'x' } }),
      structured: await client.callTool({ name: 'get-structured-content', arguments: { location: 'Chicago' } }),
      prompts: (await client.listPrompts()).prompts.length,
      resource: await client.readResource({ uri: 'demo://resource/static/document/features.md' }),
      canceled: await canceled,
    };
    await client.close();
    return told;
  };

  it('R-16.5 over stdio', async () => {
    expect(await scenario(new Stdio1(split(behind(EVERY))))).toEqual(await scenario(new Stdio1(split(EVERY))));
  });

  it('R-16.4 R-16.5 every report of progress is heard before the answer', async () => {
    const reported = async (transport: Transport): Promise<unknown> => {
      const client = new Client1(INFO);
      const progress: unknown[] = [];
      const heard: Promise<unknown>[] = [];
      await client.connect(transport);
      const result = await client.callTool({ name: 'steps', arguments: {} }, undefined, {
        onprogress: (report) => {
          progress.push(report);
          heard.push(client.callTool({ name: 'heard', arguments: { progress: report.progress } }));
        },
      });
      // The server goes on when it has heard the last; its answer to that comes after the result.
      await Promise.all(heard);
      await client.close();
      return { result, progress };
    };
    const direct = await reported(new Stdio1(split(MODERN)));
    expect(direct).toMatchObject({ progress: [{ progress: 1 }, { progress: 2 }] });
    expect(await reported(new Stdio1(split(behind(MODERN))))).toEqual(direct);
    expect(await reported(new Http1(new URL(await overHttp(placed(MODERN)))) as Transport)).toEqual(direct);
  });

  it('R-16.5 over HTTP', async () => {
    const url = await overHttp(placed(EVERY));
    const [direct, proxied] = await Promise.all([
      scenario(new Stdio1(split(EVERY))),
      scenario(new Http1(new URL(url)) as Transport),
    ]);
    expect(proxied).toEqual(direct);
  });
});

describe('R-16.5 SDK 2, in both eras', () => {
  const scenario = async (
    transport: Stdio2 | Http2,
    mode: NonNullable<ClientOptions['versionNegotiation']>['mode'] & string,
  ): Promise<Record<string, unknown>> => {
    const progress: unknown[] = [];
    const changes: string[] = [];
    const client = new Client2(INFO, {
      capabilities: { elicitation: {} },
      versionNegotiation: { mode },
      listChanged: { tools: { onChanged: () => changes.push('tools') } },
    });
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { sure: true } }));
    await client.connect(transport);
    const heard: Promise<unknown>[] = [];
    const onprogress = (report: { readonly progress: number }): void => {
      progress.push(report);
      heard.push(client.callTool({ name: 'heard', arguments: { progress: report.progress } }));
    };
    const call = (name: string, input = {}) => client.callTool({ name, arguments: input }, { onprogress });
    const told = {
      era: client.getProtocolEra(),
      version: client.getServerVersion(),
      tools: (await client.listTools()).tools.map(({ name }) => name),
      echo: await call('echo', { message: 'x' }),
      steps: await call('steps'),
      fail: await call('fail'),
      deploy: await call('deploy', { to: 'prod' }),
      none: await call('none').catch(messageOf),
      prompt: await client.getPrompt({ name: 'greet' }),
      resource: await client.readResource({ uri: 'note://1' }),
      progress,
    };
    await Promise.all(heard);
    await client.close();
    return told;
  };

  it.each(['legacy', 'auto'] as const)('R-16.5 %s, over stdio', async (mode) => {
    const direct = await scenario(new Stdio2(split(MODERN)), mode);
    expect(direct).toMatchObject({
      era: mode === 'auto' ? 'modern' : 'legacy',
      deploy: { content: [{ text: 'deployed to prod' }] },
    });
    expect(await scenario(new Stdio2(split(behind(MODERN))), mode)).toEqual(direct);
  });

  it.each(['legacy', 'auto'] as const)('R-16.5 %s, over HTTP in front of a process, and of HTTP', async (mode) => {
    const server = await serveModern();
    try {
      const direct = await scenario(new Stdio2(split(MODERN)), mode);
      const ofProcess = await overHttp(placed(MODERN));
      expect(await scenario(new Http2(new URL(ofProcess)), mode)).toEqual(direct);
      const directly = await scenario(new Http2(new URL(server.url)), 'auto');
      const ofHttp = await overHttp({ url: server.url });
      if (mode === 'auto') expect(await scenario(new Http2(new URL(ofHttp)), mode)).toEqual(directly);
    } finally {
      server.close();
    }
  });

  it('R-16.5 auto, in front of a server of the era before: falls back', async () => {
    const client = new Client2(INFO, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new Stdio2(split(behind(EVERY))));
    expect(client.getProtocolEra()).toBe('legacy');
    expect(await client.callTool({ name: 'echo', arguments: { message: 'x' } })).toMatchObject({
      content: [{ text: 'Echo: x' }],
    });
    await client.close();
  });
});

describe('R-16.5 AI SDK’s client', () => {
  const scenario = async (command: Command): Promise<unknown> => {
    const client = await createMCPClient({ transport: new AiStdioTransport(split(command)) });
    const tools = await client.tools();
    const options = { toolCallId: '1', messages: [], context: undefined };
    const told = {
      names: Object.keys(tools),
      echo: await tools['echo']?.execute?.({ message: 'x' }, options as never),
      sum: await tools['get-sum']?.execute?.({ a: 1, b: 2 }, options as never),
      resources: (await client.listResources()).resources.length,
    };
    await client.close();
    return told;
  };

  it('R-16.5 over stdio', async () => {
    expect(await scenario(behind(EVERY))).toEqual(await scenario(EVERY));
  });
});

describe('R-16.5 LangChain’s adapters', () => {
  let adapters: LangChainAdapters;
  beforeAll(async () => {
    adapters = await loadLangChainMcp();
  }, SIDE_INSTALL_TIMEOUT_MS);

  const scenario = async (command: Command): Promise<unknown> => {
    const client = new adapters.MultiServerMCPClient({ s: { transport: 'stdio', ...split(command) } });
    const tools = await client.getTools();
    const invoke = async (name: string, input: unknown): Promise<unknown> =>
      tools
        .find((tool) => tool.name === name)
        ?.invoke(input)
        .catch(messageOf);
    const told = {
      names: tools.map(({ name }) => name),
      echo: await invoke('echo', { message: 'x' }),
      image: await invoke('get-tiny-image', {}),
      structured: await invoke('get-structured-content', { location: 'Chicago' }),
    };
    await client.close();
    return told;
  };

  it('R-16.5 over stdio', async () => {
    const direct = await scenario(EVERY);
    expect(JSON.stringify(direct)).toContain('Echo: x');
    expect(await scenario(behind(EVERY))).toEqual(direct);
  });
});
