import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSpillway } from '../../../src/spillway.ts';
import { json, oneTool, redirect, restServer, type RestServer } from './kit.ts';

let server: RestServer;
beforeAll(async () => {
  server = await restServer();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => void (server.seen.length = 0));

const JSON_TYPE = { 'content-type': 'application/json' };

/** What becomes of the answer to a payment that was made: the server has seen it whole. */
const FATES: Readonly<Record<string, RequestListener>> = {
  'is reset': ({ socket }) => void socket.resetAndDestroy(),
  'ends without a byte': ({ socket }) => void socket.end(),
  hangs: () => undefined,
  'is cut in two': (_, response) =>
    void response
      .writeHead(200, { ...JSON_TYPE, 'content-length': '100' })
      .write('{"a":', () => void response.socket?.destroy()),
  'stops in the middle': (_, response) => void response.writeHead(200, JSON_TYPE).write('{"a":'),
  'is no HTTP': ({ socket }) => void socket.end('hello\r\n\r\n'),
  'is no JSON': (_, response) => void response.writeHead(200, JSON_TYPE).end('{"a":'),
  'is compressed, and broken': (_, response) =>
    void response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end('no gzip'),
  'is HTTP 408': json({}, 408),
  'is HTTP 500': json({}, 500),
  'is HTTP 500, to be asked again at once': json({}, 500, { 'retry-after': '0' }),
  'is HTTP 502': json({}, 502),
  'is HTTP 504': json({}, 504),
  'is HTTP 520': json({}, 520),
  'is HTTP 524': json({}, 524),
};

const POSTED = '/x';

/** Calls the tool once, under a whole layer; gives what the server was asked. */
const asked = async (
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  fate: RequestListener,
  isWarm = false,
): Promise<readonly string[]> => {
  const { provider } = oneTool(server.url, { method });
  const retry = { initialDelayMs: 1, jitterPercent: 0 };
  const spillway = createSpillway({ providers: [provider], defaults: { timeoutMs: 300, retry } });
  try {
    if (isWarm) {
      server.answer(json({ ok: true }));
      expect((await spillway.execute({ toolName: 'api.t' })).status).toBe('success');
      server.seen.length = 0;
    }
    server.answer(fate);
    const { status, error } = await spillway.execute({ toolName: 'api.t' });
    expect(status).not.toBe('success');
    expect(error?.uncertain).toBe(true);
    return server.seen.map(({ url }) => url);
  } finally {
    await provider.close();
    await spillway.close();
  }
};

describe.each(Object.entries(FATES))('R-2.5 a payment whose answer %s', (_name, fate) => {
  it.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)('R-2.5 %s: made once, and told as uncertain', async (method) => {
    expect(await asked(method, fate)).toStrictEqual([POSTED]);
  });

  it('R-2.5 on a connection that was kept: made once', async () => {
    expect(await asked('POST', fate, true)).toStrictEqual([POSTED]);
  });
});

it('R-2.5 a payment that was sent elsewhere, and whose answer is lost there: made once', async () => {
  const [lost] = Object.values(FATES);
  const fate: RequestListener = (request, response) =>
    request.url === POSTED ? redirect(307, `${server.url}/there`)(request, response) : lost?.(request, response);
  expect(await asked('POST', fate)).toStrictEqual([POSTED, '/there']);
});
