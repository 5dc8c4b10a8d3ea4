import Anthropic from '@anthropic-ai/sdk';
import { createSpillway, tool, type AnyTool } from 'spillway';
import {
  anthropicGateway,
  type AnthropicGateway,
  type AnthropicGatewayOptions,
  type ConversationState,
  type GatewayLogger,
} from 'spillway/gateway/anthropic';
import { serveAnthropicGateway } from 'spillway/gateway/anthropic-server';
import { z } from 'zod';
import { testUpstream, type TestUpstream } from './upstream.ts';

export { until } from '../until.ts';

/** One line of the gateway's log. */
export interface LogLine {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Kit {
  readonly upstream: TestUpstream;
  readonly gateway: AnthropicGateway;
  readonly url: string;
  readonly log: LogLine[];
  /** The unchanged SDK, pointed at the gateway. */
  readonly client: Anthropic;
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  drain(graceMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** What the tools of a test have seen. */
export interface ToolCalls {
  readonly inputs: unknown[];
  /** Those that never end by themselves. */
  readonly begun: string[];
  readonly aborted: string[];
}

export const calls: ToolCalls = { inputs: [], begun: [], aborted: [] };

const hang = (name: string, signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    calls.begun.push(name);
    signal.addEventListener('abort', () => {
      calls.aborted.push(name);
      reject(signal.reason as Error);
    });
  });

export const add: AnyTool = tool({
  name: 'math.add',
  description: 'Adds',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: (input) => {
    calls.inputs.push(input);
    return `sum ${input.a + input.b}`;
  },
});
export const fails: AnyTool = tool({
  name: 'fails',
  policy: { breaker: false, retry: { maxAttempts: 1 } },
  execute: () => Promise.reject(new Error('secret host 10.0.0.5')),
});
export const hangs: AnyTool = tool({
  name: 'hangs',
  policy: { breaker: false, timeoutMs: 150, retry: { maxAttempts: 1 } },
  execute: (_, { signal }) => hang('hangs', signal),
});
export const slow: AnyTool = tool({
  name: 'slow',
  policy: { timeoutMs: 20_000, retry: { maxAttempts: 1 } },
  execute: (_, { signal }) => hang('slow', signal),
});
export const tools: readonly AnyTool[] = [add, fails, hangs, slow];

/** The client's own tool, as requests name it. */
export const mine: { name: string; description: string; input_schema: { type: 'object' } } = {
  name: 'mine',
  description: 'of the client',
  input_schema: { type: 'object' },
};

export const asked: { model: string; max_tokens: number; messages: Array<{ role: 'user'; content: string }> } = {
  model: 'm',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'go' }],
};

/** A gateway on a port of its own, between a real client and a scripted upstream. */
export async function kit(options: Partial<AnthropicGatewayOptions> = {}): Promise<Kit> {
  calls.inputs.length = 0;
  calls.begun.length = 0;
  calls.aborted.length = 0;
  const upstream = await testUpstream();
  const log: LogLine[] = [];
  const write =
    (level: string) =>
    (fields: Readonly<Record<string, unknown>>): void =>
      void log.push({ level, fields });
  const logger: GatewayLogger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
  const own = options.tools ?? tools;
  const spillway = createSpillway({ tools: own });
  const gateway = anthropicGateway({
    upstream: upstream.url,
    tools: own,
    spillway,
    logger,
    pingMs: 20,
    upstreamRetry: { initialDelayMs: 5 },
    ...options,
  });
  const server = await serveAnthropicGateway(gateway);
  const client = new Anthropic({ apiKey: 'test-key', baseURL: server.url, maxRetries: 0 });
  const post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${server.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'test-key',
        'anthropic-version': '2023-06-01',
        ...headers,
      },
      body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    });
  return {
    upstream,
    gateway,
    url: server.url,
    log,
    client,
    post,
    drain: (graceMs) => server.close(graceMs),
    close: async () => {
      await server.close(0);
      await spillway.close();
      await upstream.close();
    },
  };
}

/** A state that fails as it is told, and counts what is asked of it. */
export interface FaultyState extends ConversationState {
  readonly asked: { store: number; retrieve: number };
  fail: { store: number; retrieve: number };
}

export function faultyState(state: ConversationState): FaultyState {
  const asked = { store: 0, retrieve: 0 };
  const fail = { store: 0, retrieve: 0 };
  const failing = (name: 'store' | 'retrieve'): void => {
    asked[name]++;
    if (fail[name]-- > 0) throw new Error('state is down');
  };
  return {
    asked,
    fail,
    store: (key, record) => {
      failing('store');
      return state.store(key, record);
    },
    retrieve: (keys) => {
      failing('retrieve');
      return state.retrieve(keys);
    },
  };
}
