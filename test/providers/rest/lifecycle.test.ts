import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestListener } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Progress } from '../../../src/contract/tool.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { json, oneTool, restServer, type RestServer } from './kit.ts';
import { failure, until } from '../support.ts';

let server: RestServer | undefined;
const serve = async (listener?: RequestListener): Promise<RestServer> => (server = await restServer(listener));
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  server = undefined;
});
const hanging: RequestListener = () => undefined;

describe('R-12.2 an aborted signal', () => {
  it('before the call: nothing is sent', async () => {
    const { url, seen, connections } = await serve();
    await using one = oneTool(url);
    expect(await failure(one.call({}, {}, AbortSignal.abort()))).toMatchObject({
      kind: 'canceled',
      executed: false,
      uncertain: false,
    });
    expect([seen.length, connections.made]).toEqual([0, 0]);
  });

  it('while the host is resolved: not executed', async () => {
    const controller = new AbortController();
    await using one = oneTool('http://slow.example.com', {}, { lookup: () => new Promise(() => undefined) });
    const failed = failure(one.call({}, {}, controller.signal));
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'canceled', executed: false, uncertain: false });
  });

  it('while it waits: settles at once, uncertain, and the server’s connection is gone', async () => {
    const { url, seen, connections } = await serve(hanging);
    const controller = new AbortController();
    await using one = oneTool(url, { method: 'POST' });
    const failed = failure(one.call({}, {}, controller.signal));
    await until(() => seen.length === 1);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    await until(() => connections.open === 0);
  });

  it('in the middle of the answer: the same', async () => {
    const { url, connections } = await serve(
      (_request, response) => void response.writeHead(200).write('x'.repeat(1_000)),
    );
    const controller = new AbortController();
    await using one = oneTool(url);
    const failed = failure(one.call({}, {}, controller.signal));
    await until(() => connections.open === 1);
    await sleep(50);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    await until(() => connections.open === 0);
  });

  it('in the middle of an error’s body: canceled, not that error', async () => {
    const { url, seen } = await serve((_request, response) => void response.writeHead(500).write('x'));
    const controller = new AbortController();
    await using one = oneTool(url);
    const failed = failure(one.call({}, {}, controller.signal));
    await until(() => seen.length === 1);
    await sleep(50);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'canceled' });
  });

  it('of a timeout is a timeout, and one of many calls leaves the others alone', async () => {
    const { url } = await serve((request, response) =>
      request.url === '/slow' ? undefined : json(request.url)(request, response),
    );
    await using one = oneTool(url, { url: '/{name}' });
    const [slow, ...quick] = await Promise.allSettled([
      one.call({ name: 'slow' }, {}, AbortSignal.timeout(100)),
      ...['a', 'b', 'c'].map((name) => one.call({ name })),
    ]);
    expect(slow).toMatchObject({ status: 'rejected', reason: { kind: 'timeout', uncertain: true } });
    expect(quick).toEqual(['/a', '/b', '/c'].map((value) => ({ status: 'fulfilled', value })));
  });

  it('keeps no listeners, whatever the end was', async () => {
    const { url } = await serve((request, response) => json({}, request.url === '/bad' ? 500 : 200)(request, response));
    await using one = oneTool(url, { url: '/{name}' });
    const { signal } = new AbortController();
    let listeners = 0;
    const counted = Object.assign(Object.create(signal) as AbortSignal, {
      addEventListener: (...given: Parameters<AbortSignal['addEventListener']>) => {
        listeners++;
        signal.addEventListener(...given);
      },
      removeEventListener: (...given: Parameters<AbortSignal['removeEventListener']>) => {
        listeners--;
        signal.removeEventListener(...given);
      },
    });
    Object.defineProperty(counted, 'aborted', { value: false });
    await one.call({ name: 'good' }, {}, counted);
    await failure(one.call({ name: 'bad' }, {}, counted));
    await failure(one.call({ name: '..' }, {}, counted));
    expect(listeners).toBe(0);
  });
});

describe('R-12.2 progress', () => {
  const reportsOf = async (listener: RequestListener): Promise<Progress[]> => {
    const { url } = await serve(listener);
    const reports: Progress[] = [];
    await using one = oneTool(url);
    await one.call({}, { progress: (report) => void reports.push(report) });
    return reports;
  };

  it('of a large body is reported in bytes, up to its length', async () => {
    const total = 2_000_000;
    const reports = await reportsOf(
      (_request, response) => void response.writeHead(200, { 'content-length': String(total) }).end('x'.repeat(total)),
    );
    expect(reports.at(-1)).toEqual({ progress: total, total });
    expect(reports.length).toBeGreaterThan(3);
    expect(reports.length).toBeLessThan(10);
    expect(reports.map(({ progress }) => progress)).toEqual(
      reports.map(({ progress }) => progress).toSorted((a = 0, b = 0) => a - b),
    );
  });

  it('of one whose length is not known, too, without a total', async () => {
    const reports = await reportsOf((_request, response) => {
      response.write('x'.repeat(500_000));
      response.end('x'.repeat(500_000));
    });
    expect(reports.length).toBeGreaterThan(1);
    expect(reports.every(({ total }) => total === undefined)).toBe(true);
  });

  it('of a small one is not', async () => {
    expect(await reportsOf(json({ a: 1 }))).toEqual([]);
  });
});

describe('R-12.2 connections', () => {
  it('are used again, one after the other, and gather no listeners', async () => {
    const { url, connections } = await serve();
    await using one = oneTool(url);
    const warnings: string[] = [];
    const note = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', note);
    for (let i = 0; i < 20; i++) await one.call();
    process.off('warning', note);
    expect(connections.made).toBe(1);
    expect(warnings).toEqual([]);
  });

  it('close() ends what runs, and every connection; again, it does nothing; a later call is not sent', async () => {
    const { url, seen, connections } = await serve((request, response) =>
      request.url === '/slow' ? undefined : json({})(request, response),
    );
    const one = oneTool(url, { url: '/{name}' });
    await one.call({ name: 'quick' });
    const failed = failure(one.call({ name: 'slow' }));
    await until(() => seen.length === 2);
    await one.provider.close();
    expect(await failed).toMatchObject({
      kind: 'canceled',
      uncertain: true,
      message: 'The REST provider api was closed during the call',
    });
    await until(() => connections.open === 0);
    await one.provider.close();
    expect(await failure(one.call({ name: 'x' }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
      classification: 'permanent',
    });
    expect(seen).toHaveLength(2);
  });

  it('100 calls at once do not mix up their answers', async () => {
    const { url } = await serve(
      (request, response) =>
        void setTimeout(() => json({ you: request.url })(request, response), (Number(request.url?.slice(1)) * 7) % 13),
    );
    await using one = oneTool(url, { url: '/{n}' });
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => one.call({ n })));
    expect(answers).toEqual(Array.from({ length: 100 }, (_, n) => ({ you: `/${n}` })));
  });
});

describe('under the layer', () => {
  it('R-2.4 a call is retried after what the server says; R-12.2 input that does not fit makes no attempt', async () => {
    let left = 1;
    const { url, seen } = await serve((request, response) =>
      (left-- > 0 ? json({}, 503, { 'retry-after-ms': '40' }) : json({ id: 7 }))(request, response),
    );
    const { provider } = oneTool(url, {
      url: '/{id}',
      input: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
    });
    const spillway = createSpillway({ providers: [provider] });
    const startedMs = performance.now();
    expect(await spillway.execute({ toolName: 'api.t', input: { id: 7 } })).toMatchObject({
      status: 'success',
      attempts: 2,
      output: { content: { id: 7 } },
    });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(39);
    const refused = await spillway.execute({ toolName: 'api.t', input: { id: 'x' } });
    expect(refused).toMatchObject({ attempts: 0, error: { code: 'invalid_parameters', terminal: true } });
    expect(refused.error?.message).toContain('id: must be integer');
    expect(seen).toHaveLength(2);
    await spillway.close();
  });
});
