import { afterEach, beforeEach } from 'vitest';
import { mcpHttpProvider, type McpHttpOptions } from '../../../src/providers/mcp-http.ts';
import type { McpProvider } from '../../../src/providers/mcp.ts';
import { httpServer, type HttpServer, type HttpServerOptions } from './http-server.ts';

/** A server for each test, and the providers on it, which are closed with it. */
export interface HttpKit {
  readonly server: HttpServer;
  readonly provide: (options?: Partial<McpHttpOptions>) => Promise<McpProvider>;
  /** Another server in its place. */
  readonly serve: (options: HttpServerOptions) => Promise<void>;
}

export const isCall = (body: string, tool: string): boolean =>
  body.includes('"tools/call"') && body.includes(`"${tool}"`);

export function httpKit(): HttpKit {
  let server: HttpServer;
  const open: McpProvider[] = [];
  beforeEach(async () => {
    server = await httpServer();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((provider) => provider.close()));
    await server[Symbol.asyncDispose]();
  });
  return {
    get server() {
      return server;
    },
    provide: async (options = {}) => {
      const provider = await mcpHttpProvider({ name: 'box', url: server.url, ...options });
      open.push(provider);
      return provider;
    },
    serve: async (options) => {
      await server[Symbol.asyncDispose]();
      server = await httpServer(options);
    },
  };
}
