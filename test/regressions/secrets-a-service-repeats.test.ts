// Was: a manifest's secret that its REST service repeated, escaped, in base64 or cut, was told to the model.
// Now: neither model nor trace is told it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway } from '../../src/spillway.ts';
import { json, oneTool, redirect, restServer, type RestServer } from '../providers/rest/kit.ts';

const KEY = 'C4nary"/V4lue';
const LITERAL = 'velvet0tter';
const escaped = Array.from(KEY, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`).join('');
const FORMS: Readonly<Record<string, string>> = {
  'as it is': KEY,
  'in a token': `key-${KEY}-eu`,
  'in an address': `https://a.example/?k=${encodeURIComponent(KEY)}&n=1`,
  'in an address twice': encodeURIComponent(encodeURIComponent(KEY)),
  'in JSON': JSON.stringify({ k: KEY }),
  'in JSON with slashes': JSON.stringify({ k: KEY }).replaceAll('/', '\\/'),
  'escaped in JSON': `{"k":"${escaped}"}`,
  'in base64': Buffer.from(`ann:${KEY}`).toString('base64'),
  'cut by what nobody sees': `${KEY.slice(0, 4)}\u200b${KEY.slice(4)}`,
  'cut by a colour': `${KEY.slice(0, 4)}\u001b[1m${KEY.slice(4)}`,
  'of the query': `q=${LITERAL}`,
  'of a header': 'hunter2hunter2',
};

describe('R-11.4 R-12.4 a secret of a manifest that its service repeats', () => {
  let server: RestServer;
  beforeAll(async () => {
    server = await restServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const told = async (tool: object = {}): Promise<string> => {
    const headers = { authorization: 'Bearer ${env:KEY}', 'x-api-key': 'hunter2hunter2' };
    const entry = { url: `/x?api_key=${LITERAL}`, headers, retry_policy: { max_attempts: 1 }, ...tool };
    await using one = oneTool(server.url, entry, { env: { KEY }, show: 'errors' });
    const layer = createSpillway({ providers: [one.provider], capture: { 'api.t': { output: ['a'] } } });
    let text = '';
    layer.trace$.subscribe((event) => (text += `${JSON.stringify(event)}\n`));
    const result = await layer.execute({ toolName: 'api.t', input: {} });
    await layer.close();
    return `${text}${JSON.stringify(result)}${result.error?.modelText}`;
  };
  /** Only what a secret is made of: whatever stands between its parts does not hide it. */
  const letters = (text: string): string => text.replaceAll(/\\+u00|[^\da-z]/gi, '').toLowerCase();
  const NONE = [KEY, LITERAL, 'hunter2hunter2', FORMS['in base64'] ?? '', '43346e617279', 'c4na1m'].map(letters);
  const expectNone = (text: string): void => {
    expect(NONE.filter((secret) => letters(text).includes(secret))).toEqual([]);
    expect(text).toContain('[redacted]');
    expect(text).toContain('beside');
  };

  describe.each(Object.entries(FORMS))('R-11.4 %s', (_, form) => {
    it.each([
      ['an answer', json({ a: [form], [form]: 1, b: 'beside' })],
      ['an answer that is text', json(`beside ${form}`)],
      ['an error', json({ error: { code: form, message: `beside ${form}` } }, 422)],
    ] as const)('R-11.4 in %s', async (_, listener) => {
      server.answer(listener);
      expectNone(await told());
    });

    it('R-11.4 in JSON as text, of an answer and of an error', async () => {
      for (const status of [200, 500]) {
        server.answer(
          (_request, response) =>
            void response.writeHead(status, { 'content-type': 'text/plain' }).end(`beside ${form}`),
        );
        expectNone(await told({ response: { as: 'text' } }));
      }
    });
  });

  it('R-11.4 in what it says of its answer, and of where another one is', async () => {
    server.answer(
      (_request, response) => void response.writeHead(200, { 'content-type': `beside/${LITERAL}` }).end('x'),
    );
    expectNone(await told());
    server.answer(redirect(302, `http://beside.${LITERAL}.invalid/`));
    const text = await told();
    expect(text).not.toContain(LITERAL);
    server.answer((_request, response) => void response.writeHead(200, { 'x-beside': LITERAL }).end());
    expectNone(await told({ method: 'HEAD' }));
  });

  it('R-11.4 an answer without one is the same to the character', async () => {
    const answer = { a: ['👩\u200d👧', '%41\\u0042 \u001b[1m'], 'b\u200b': { c: 1, d: null } };
    server.answer(json(answer));
    await using one = oneTool(server.url, { headers: { 'x-api-key': '${env:KEY}' } }, { env: { KEY } });
    expect(await one.call()).toEqual(answer);
  });

  it('R-11.4 what a variable holds that no name says is a secret is left in data, and not in a message', async () => {
    await using one = oneTool(server.url, { headers: { 'x-stage': '${env:STAGE}' } }, { env: { STAGE: 'prod' } });
    server.answer(json({ stage: 'production' }));
    expect(await one.call()).toEqual({ stage: 'production' });
    server.answer(json({ error: 'no prod' }, 422));
    const cause: unknown = await one.call().catch((error: unknown) => (error as Error).cause);
    expect(JSON.stringify(cause)).toContain('no [redacted]');
  });

  it('R-11.4 one that is nested too deeply to be looked through is not told', async () => {
    server.answer(
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end('['.repeat(1e6) + ']'.repeat(1e6)),
    );
    expect(await told()).toContain('nested too deeply');
  });
});
