import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { request } from 'node:http';
import OpenAI from 'openai';
import type { Entrance } from '../../src/errors/read-error.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** Asks a server through a real client; the same question whatever the client, so that the failures can be compared. */
export interface Caller {
  readonly name: string;
  readonly where: Entrance;
  /** Whether its errors keep the answer's headers. */
  readonly keepsHeaders: boolean;
  ask(url: string, options?: CallOptions): Promise<unknown>;
  stream?(url: string): Promise<unknown>;
  /** The body of a refusal, as this provider writes it. */
  body(status: number): unknown;
}

const messages = [{ role: 'user', content: 'hi' }] as const;
const ignored = async (stream: AsyncIterable<unknown>): Promise<number> => {
  let length = 0;
  for await (const event of stream) length += JSON.stringify(event).length;
  return length;
};
const optional = ({ signal, timeoutMs }: CallOptions): { signal?: AbortSignal; timeout?: number } => ({
  ...(signal === undefined ? {} : { signal }),
  ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
});

const anthropic = (url: string): Anthropic => new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 0 });
const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};
const openai = (url: string): OpenAI => new OpenAI({ apiKey: 'k', baseURL: url, maxRetries: 0 });
const google = (url: string): GoogleGenAI => new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } });
const googleWords: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

export const MODELS: readonly Caller[] = [
  {
    name: '@anthropic-ai/sdk',
    where: 'llm',
    keepsHeaders: true,
    ask: async (url, options = {}) =>
      anthropic(url).messages.create({ model: 'm', max_tokens: 9, messages: [...messages] }, optional(options)),
    stream: async (url) =>
      ignored(
        await anthropic(url).messages.create({ model: 'm', max_tokens: 9, messages: [...messages], stream: true }),
      ),
    body: (status) => ({
      type: 'error',
      error: { type: anthropicTypes[status] ?? 'invalid_request_error', message: 'said by the server' },
    }),
  },
  {
    name: 'openai',
    where: 'llm',
    keepsHeaders: true,
    ask: async (url, options = {}) =>
      openai(url).chat.completions.create({ model: 'm', messages: [...messages] }, optional(options)),
    stream: async (url) =>
      ignored(await openai(url).chat.completions.create({ model: 'm', messages: [...messages], stream: true })),
    body: (status) => ({
      error: {
        message: 'said by the server',
        type: status < 500 ? 'invalid_request_error' : 'server_error',
        param: null,
        code: null,
      },
    }),
  },
  {
    name: '@google/genai',
    where: 'llm',
    keepsHeaders: false,
    ask: async (url, { signal, timeoutMs } = {}) =>
      google(url).models.generateContent({
        model: 'm',
        contents: 'hi',
        config: {
          ...(signal === undefined ? {} : { abortSignal: signal }),
          ...(timeoutMs === undefined ? {} : { httpOptions: { timeout: timeoutMs } }),
        },
      }),
    stream: async (url) => ignored(await google(url).models.generateContentStream({ model: 'm', contents: 'hi' })),
    body: (status) => ({
      error: { code: status, message: 'said by the server', status: googleWords[status] ?? 'UNKNOWN' },
    }),
  },
];

const plain = (status: number): unknown => ({ message: `status ${status}` });

/** Errors of a request that is never answered come from `node:http` itself. */
const nodeGet = async (url: string, { signal, timeoutMs }: CallOptions = {}): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const get = request(url, signal === undefined ? {} : { signal }, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () =>
        (response.statusCode ?? 0) < 400
          ? resolve(response)
          : reject(Object.assign(new Error('refused'), { statusCode: response.statusCode, headers: response.headers })),
      );
    });
    if (timeoutMs !== undefined)
      get.setTimeout(timeoutMs, () => get.destroy(Object.assign(new Error('socket idle'), { code: 'ETIMEDOUT' })));
    get.on('error', reject);
    get.end();
  });

export const CLIENTS: readonly Caller[] = [
  {
    name: 'fetch',
    where: 'http',
    keepsHeaders: true,
    ask: async (url, { signal, timeoutMs } = {}) => {
      const response = await fetch(url, {
        signal: timeoutMs === undefined ? (signal ?? null) : AbortSignal.timeout(timeoutMs),
      });
      if (!response.ok) throw Object.assign(new Error('not ok'), { response });
      return response.text();
    },
    body: plain,
  },
  { name: 'node:http', where: 'http', keepsHeaders: true, ask: nodeGet, body: plain },
];

const TOOL = { name: 'x', arguments: {} } as const;

export const MCP_CLIENTS: readonly Caller[] = [
  {
    name: '@modelcontextprotocol/sdk 1',
    where: 'mcp',
    keepsHeaders: false,
    ask: async (url, options = {}) => {
      const client = new Client1({ name: 't', version: '0' });
      await client.connect(new Transport1(new URL(url)));
      try {
        return await client.callTool(TOOL, undefined, optional(options));
      } finally {
        await client.close();
      }
    },
    body: plain,
  },
  {
    name: '@modelcontextprotocol/client 2',
    where: 'mcp',
    keepsHeaders: false,
    ask: async (url, options = {}) => {
      const client = new Client2({ name: 't', version: '0' });
      await client.connect(new Transport2(new URL(url)));
      try {
        return await client.callTool(TOOL, optional(options));
      } finally {
        await client.close();
      }
    },
    body: plain,
  },
];
