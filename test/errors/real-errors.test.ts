import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toToolError } from '../../src/errors/read-error.ts';
import { toLlmError } from '../../src/errors/llm.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { CLIENTS, MODELS, type Caller } from './callers.ts';
import {
  answering,
  closedUrl,
  hanging,
  resetting,
  scriptedServer,
  streaming,
  type ScriptedServer,
} from './scripted-server.ts';

/** What every client's error becomes: kind and class, and a model error's kind. */
const STATUSES = [
  [400, 'execution_error', 'permanent', 'model_error'],
  [401, 'execution_error', 'permanent', 'auth_error'],
  [402, 'execution_error', 'permanent', 'quota_exceeded'],
  [403, 'execution_error', 'permanent', 'auth_error'],
  [404, 'execution_error', 'permanent', 'model_error'],
  [408, 'timeout', 'transient', 'timeout'],
  [409, 'execution_error', 'permanent', 'model_error'],
  [413, 'execution_error', 'permanent', 'model_error'],
  [422, 'execution_error', 'permanent', 'model_error'],
  [429, 'execution_error', 'transient', 'rate_limit'],
  [500, 'execution_error', 'transient', 'network_error'],
  [502, 'execution_error', 'transient', 'network_error'],
  [503, 'execution_error', 'transient', 'network_error'],
  [504, 'timeout', 'transient', 'network_error'],
  [529, 'execution_error', 'transient', 'network_error'],
] as const;

let server: ScriptedServer;
let tlsServer: ScriptedServer;
beforeAll(async () => {
  [server, tlsServer] = await Promise.all([scriptedServer(), scriptedServer(true)]);
});
afterAll(async () => Promise.all([server.close(), tlsServer.close()]));

const thrownBy = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => expect.unreachable(`it answered: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

/** kind, class and, of a model, the kind of its own. */
const told = ({ where }: Caller, thrown: unknown): unknown[] => {
  const error = toToolError(thrown, where);
  const own = where === 'llm' ? [toLlmError(thrown).kind] : [];
  if (where === 'llm') expect(toLlmError(thrown).classification).toBe(classify(error).classification);
  return [error.kind, classify(error).classification, ...own];
};

const expected = ({ where }: Caller, kind: string, classification: string, llm: string): unknown[] => [
  kind,
  classification,
  ...(where === 'llm' ? [llm] : []),
];

describe.each([...MODELS, ...CLIENTS])('$name', (caller) => {
  const ask = async (listener: RequestListener, options = {}): Promise<unknown> => {
    server.script(listener);
    return thrownBy(caller.ask(server.url, options));
  };

  it.each(STATUSES)('R-1.3 status %i', async (status, kind, classification, llm) => {
    const thrown = await ask(answering(status, caller.body(status)));
    expect(told(caller, thrown)).toEqual(expected(caller, kind, classification, llm));
    expect(toToolError(thrown, caller.where)).toMatchObject({ status, executed: true });
  });

  it.each([
    ['retry-after in seconds', { 'retry-after': '7' }, 7_000],
    ['retry-after-ms', { 'retry-after-ms': '1234', 'retry-after': '9' }, 1_234],
    ['retry-after as a date', { 'retry-after': 'Thu, 01 Jan 2026 00:00:05 GMT' }, 5_000],
    ['a retry-after that cannot be read', { 'retry-after': 'soon' }, Number.NaN],
    ['x-should-retry: false', { 'x-should-retry': 'false' }, -1],
  ] as const)('R-2.4 %s', async (_name, headers, retryAfterMs) => {
    const thrown = await ask(answering(429, caller.body(429), headers));
    expect(toToolError(thrown, caller.where, () => Date.UTC(2026, 0, 1)).retryAfterMs).toEqual(
      caller.keepsHeaders ? retryAfterMs : undefined,
    );
  });

  it('R-4.2 aborted by the caller', async () => {
    const controller = new AbortController();
    const work = ask(() => controller.abort(), { signal: controller.signal });
    expect(told(caller, await work)).toEqual(expected(caller, 'canceled', 'permanent', 'model_error'));
  });

  it('aborted before it began', async () => {
    expect(told(caller, await ask(hanging, { signal: AbortSignal.abort() }))).toEqual(
      expected(caller, 'canceled', 'permanent', 'model_error'),
    );
  });

  it('its own time-out', async () => {
    const thrown = await ask(hanging, { timeoutMs: 100 });
    // Google's client ends a request that takes too long as it ends one that its caller aborts.
    const said =
      caller.name === '@google/genai'
        ? expected(caller, 'canceled', 'permanent', 'model_error')
        : expected(caller, 'timeout', 'transient', 'timeout');
    expect(told(caller, thrown)).toEqual(said);
  });

  it('connection refused: nothing ran', async () => {
    const thrown = await thrownBy(caller.ask(await closedUrl()));
    expect(told(caller, thrown)).toEqual(expected(caller, 'transport_error', 'transient', 'network_error'));
    expect(toToolError(thrown, caller.where)).toMatchObject({
      executed: false,
      uncertain: false,
      code: 'ECONNREFUSED',
    });
  });

  it('connection reset: it may have run', async () => {
    const thrown = await ask(resetting);
    expect(told(caller, thrown)).toEqual(expected(caller, 'transport_error', 'transient', 'network_error'));
    expect(toToolError(thrown, caller.where)).toMatchObject({ executed: true, uncertain: true });
  });

  it('a certificate that nobody signed', async () => {
    if (caller.name === 'node:http') return;
    const thrown = await thrownBy(caller.ask(tlsServer.url));
    expect(told(caller, thrown)).toEqual(expected(caller, 'transport_error', 'permanent', 'network_error'));
    expect(toToolError(thrown, caller.where)).toMatchObject({ executed: false, code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });
});

const sse = (event: string, data: unknown): string => `event: ${event}\ndata: ${JSON.stringify(data)}`;
const data = (value: unknown): string => `data: ${JSON.stringify(value)}`;
const started = sse('message_start', {
  type: 'message_start',
  message: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    stop_reason: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
});
const chunk = data({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'a' } }] });
const part = data({ candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] } }] });
const anthropicSays = (type: string): string =>
  sse('error', { type: 'error', error: { type, message: 'said in the stream' } });
const openaiSays = (type: string, code: string | null): string =>
  data({ error: { message: 'said in the stream', type, code } });

describe('errors in the middle of a stream', () => {
  const [anthropic, openai, google] = MODELS as readonly [Caller, Caller, Caller];
  it.each<[string, Caller, RequestListener, unknown[]]>([
    [
      'Anthropic: overloaded',
      anthropic,
      streaming(started, anthropicSays('overloaded_error')),
      ['execution_error', 'transient', 'rate_limit'],
    ],
    [
      'Anthropic: api_error',
      anthropic,
      streaming(started, anthropicSays('api_error')),
      ['execution_error', 'transient', 'network_error'],
    ],
    [
      'Anthropic: timeout_error',
      anthropic,
      streaming(started, anthropicSays('timeout_error')),
      ['timeout', 'transient', 'timeout'],
    ],
    [
      'Anthropic: invalid request',
      anthropic,
      streaming(started, anthropicSays('invalid_request_error')),
      ['execution_error', 'permanent', 'model_error'],
    ],
    [
      'Anthropic: connection lost',
      anthropic,
      streaming(started, undefined),
      ['transport_error', 'transient', 'network_error'],
    ],
    [
      'OpenAI: server_error',
      openai,
      streaming(chunk, openaiSays('server_error', null)),
      ['execution_error', 'transient', 'network_error'],
    ],
    [
      'OpenAI: rate limit',
      openai,
      streaming(chunk, openaiSays('requests', 'rate_limit_exceeded')),
      ['execution_error', 'transient', 'rate_limit'],
    ],
    [
      'OpenAI: quota',
      openai,
      streaming(chunk, openaiSays('insufficient_quota', 'insufficient_quota')),
      ['execution_error', 'permanent', 'quota_exceeded'],
    ],
    ['OpenAI: connection lost', openai, streaming(chunk, undefined), ['transport_error', 'transient', 'network_error']],
    [
      'Google: overloaded',
      google,
      streaming(part, data({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } })),
      ['execution_error', 'transient', 'network_error'],
    ],
    [
      'Google: invalid',
      google,
      streaming(part, data({ error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } })),
      ['execution_error', 'permanent', 'model_error'],
    ],
    ['Google: connection lost', google, streaming(part, undefined), ['transport_error', 'transient', 'network_error']],
  ])('R-12.1 %s', async (_name, caller, listener, said) => {
    server.script(listener);
    expect(told(caller, await thrownBy(caller.stream?.(server.url) ?? Promise.resolve('it has no streams')))).toEqual(
      said,
    );
  });

  it('OpenAI: a 429 whose quota is used up is permanent', async () => {
    server.script(
      answering(429, {
        error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' },
      }),
    );
    expect(told(openai, await thrownBy(openai.ask(server.url)))).toEqual([
      'execution_error',
      'permanent',
      'quota_exceeded',
    ]);
  });

  it('Anthropic: a 400 for want of credit is a quota, permanent', async () => {
    server.script(
      answering(400, {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'Your credit balance is too low to access the Anthropic API.',
        },
      }),
    );
    expect(told(anthropic, await thrownBy(anthropic.ask(server.url)))).toEqual([
      'execution_error',
      'permanent',
      'quota_exceeded',
    ]);
  });
});
