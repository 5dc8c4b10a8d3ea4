import type { RequestListener } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RestProviderOptions, RestToolEntry } from '../../../src/providers/rest.ts';
import { json, oneTool, restServer, type OneTool, type RestServer } from './kit.ts';
import { failure, until } from '../support.ts';

let server: RestServer;
const open: OneTool[] = [];
beforeAll(async () => {
  server = await restServer();
});
afterAll(() => server[Symbol.asyncDispose]());
afterEach(() => Promise.all(open.splice(0).map(({ provider }) => provider.close())));
const make = (tool: Partial<RestToolEntry> = {}, options?: RestProviderOptions): OneTool => {
  const made = oneTool(server.url, tool, options);
  open.push(made);
  return made;
};
const giving =
  (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(200, headers).end(body);
const output = (listener: RequestListener, tool?: Partial<RestToolEntry>): Promise<unknown> => {
  server.answer(listener);
  return make(tool).call();
};

describe('R-12.2 an answer is', () => {
  it('JSON where its type says so, else text', async () => {
    expect(await output(json({ a: [1] }))).toEqual({ a: [1] });
    expect(await output(giving('{"a":1}', { 'content-type': 'application/problem+json; charset=UTF-8' }))).toEqual({
      a: 1,
    });
    expect(await output(giving('{"a":1}', { 'content-type': 'text/plain' }))).toBe('{"a":1}');
    expect(await output(giving('<a/>', { 'content-type': 'application/atom+xml' }))).toBe('<a/>');
    expect(await output(giving('hm'))).toBe('hm');
  });

  it('what the manifest says', async () => {
    expect(await output(giving('{"a":1}', { 'content-type': 'text/plain' }), { response: { as: 'json' } })).toEqual({
      a: 1,
    });
    expect(await output(json({ a: 1 }), { response: { as: 'text' } })).toBe('{"a":1}');
  });

  it('null, or the empty text, without a body', async () => {
    const empty: RequestListener = (_request, response) =>
      void response.writeHead(204, { 'content-encoding': 'gzip' }).end();
    expect(await output(empty)).toBeNull();
    expect(await output(empty, { response: { as: 'text' } })).toBe('');
    expect(await output(giving('', { 'content-type': 'application/json' }))).toBeNull();
  });

  it('status and headers for HEAD, however large the body would be', async () => {
    expect(
      await output(giving('', { 'content-length': '999999999', etag: 'x', 'set-cookie': 'a=b' }), { method: 'HEAD' }),
    ).toMatchObject({ status: 200, headers: { etag: 'x' } });
  });

  it.each<[string, unknown]>([
    ['/data/items/1/a~1b', 2],
    ['data.items.0', { 'a/b': 1 }],
    ['/data/none', undefined],
    ['data.items.01', undefined],
    ['constructor', undefined],
  ])('the part at %s', async (at, part) => {
    const answer = json({ data: { items: [{ 'a/b': 1 }, { 'a/b': 2 }] } });
    if (part !== undefined) return expect(await output(answer, { response: { at } })).toEqual(part);
    expect(await failure(output(answer, { response: { at } }))).toMatchObject({
      kind: 'execution_error',
      classification: 'permanent',
      uncertain: true,
    });
  });

  it('text in its character set', async () => {
    expect(await output(giving(Buffer.from('é', 'latin1'), { 'content-type': 'text/plain; charset=iso-8859-1' }))).toBe(
      'é',
    );
    expect(
      (await failure(output(giving(Buffer.from('é', 'latin1'), { 'content-type': 'text/plain' })))).message,
    ).toMatch(/not text in utf-8/);
    expect((await failure(output(giving('x', { 'content-type': 'text/plain; charset=klingon' })))).message).toMatch(
      /klingon, which is not known/,
    );
  });

  it.each<[string, (body: string) => Uint8Array]>([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['gzip, br', (body) => brotliCompressSync(gzipSync(body))],
  ])('decoded from %s', async (encoding, encode) => {
    expect(
      await output(giving(encode('{"a":"é"}'), { 'content-type': 'application/json', 'content-encoding': encoding })),
    ).toEqual({ a: 'é' });
  });
});

describe('R-12.2 an answer of no use is a permanent failure, and uncertain: the request was carried out', () => {
  it.each<[string, RequestListener, Partial<RestToolEntry>, RegExp]>([
    [
      'broken JSON',
      giving('{"a":', { 'content-type': 'application/json' }),
      {},
      /is not JSON; its content type is application\/json/,
    ],
    [
      'a page where JSON was wanted',
      giving('<html>', { 'content-type': 'text/html' }),
      { response: { as: 'json' } },
      /is not JSON; its content type is text\/html/,
    ],
    [
      'a picture',
      giving(Uint8Array.of(0x89, 0x50), { 'content-type': 'image/png' }),
      {},
      /type image\/png, which is neither JSON nor text/,
    ],
    [
      'a misfit of response_schema',
      json({ id: 'x' }),
      { response_schema: { type: 'object', properties: { id: { type: 'integer' } } } },
      /does not fit response_schema: id: must be integer/,
    ],
    [
      'an unknown encoding',
      giving('x', { 'content-encoding': 'zstd' }),
      {},
      /content encoding zstd, which was not asked for/,
    ],
    ['a chain of encodings', giving('x', { 'content-encoding': 'gzip, gzip, gzip' }), {}, /content encoding/],
    ['no gzip', giving('plain', { 'content-encoding': 'gzip' }), {}, /cannot be decoded/],
    [
      'gzip cut short',
      giving(gzipSync('x'.repeat(1000)).subarray(0, 20), { 'content-encoding': 'gzip' }),
      {},
      /cannot be decoded/,
    ],
    ['no brotli', giving('plain text', { 'content-encoding': 'br' }), {}, /cannot be decoded/],
  ])('%s', async (_what, listener, tool, says) => {
    const error = await failure(output(listener, { method: 'POST', ...tool }));
    expect(error).toMatchObject({
      kind: 'execution_error',
      classification: 'permanent',
      executed: true,
      uncertain: true,
    });
    expect(error.message).toMatch(says);
  });
});

describe('R-12.2 an answer that is too large is cut off', () => {
  const limited = (listener: RequestListener, maxResponseBytes: number): Promise<unknown> => {
    server.answer(listener);
    return make({}, { maxResponseBytes }).call();
  };

  it('at once where its length is known', async () => {
    let written = 0;
    const error = await failure(
      limited((_request, response) => {
        response.writeHead(200, { 'content-length': '100000' });
        response.write('x', () => written++);
      }, 1_000),
    );
    expect(error).toMatchObject({ kind: 'execution_error', classification: 'permanent', uncertain: true });
    expect(error.message).toBe(
      'The answer is larger than 1000 bytes; ask for less, or raise the option maxResponseBytes',
    );
    expect(written).toBeLessThan(2);
  });

  it('while it comes, and its connection is closed', async () => {
    let closed = false;
    const endless: RequestListener = (_request, response) => {
      response.on('close', () => {
        closed = true;
      });
      const write = (): void => {
        while (response.write('x'.repeat(16_384)));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    };
    expect((await failure(limited(endless, 100_000))).message).toMatch(/larger than 100000 bytes/);
    await until(() => closed);
  });

  it('after decoding: a bomb that unfolds to a thousand times its size costs its beginning', async () => {
    const bomb = gzipSync(Buffer.alloc(64_000_000));
    const startedMs = performance.now();
    const beforeBytes = process.memoryUsage().arrayBuffers;
    expect((await failure(limited(giving(bomb, { 'content-encoding': 'gzip' }), 1_000_000))).message).toMatch(
      /larger than 1000000 bytes/,
    );
    expect(performance.now() - startedMs).toBeLessThan(15_000);
    expect(process.memoryUsage().arrayBuffers - beforeBytes).toBeLessThan(32_000_000);
  });

  it('before decoding: a body that unfolds to nothing, for ever', async () => {
    const nothing = Buffer.concat(Array.from({ length: 10_000 }, () => gzipSync('')));
    const gzipped: RequestListener = (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.write(nothing);
      response.end();
    };
    expect((await failure(limited(gzipped, 100_000))).message).toMatch(/larger than 100000 bytes/);
  });

  it('and one of exactly the limit is not', async () => {
    expect(await limited(giving('x'.repeat(1_000)), 1_000)).toHaveLength(1_000);
  });
});
