import { setTimeout as sleep } from 'node:timers/promises';
import { Subject, take, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import { liveRuntime } from '../../../src/runtime.ts';
import { closedUrl } from '../../errors/scripted-server.ts';
import { httpKit, isCall } from './http-kit.ts';
import { context, failure, run, until } from '../support.ts';

const kit = httpKit();
const { provide, serve } = kit;

describe('a server that goes away', () => {
  it('in mid-call: transport_error, uncertain, at once; then refused; then back', async () => {
    const provider = await provide();
    const work = failure(run(provider, 'box.hang', {}));
    await until(() => kit.server.calls.length === 1);
    const startedAtMs = performance.now();
    await kit.server.stop();
    expect(await work).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    // The client's own pool has to notice, too.
    await expect
      .poll(async () => failure(run(provider, 'box.echo', { text: 'x' })))
      .toMatchObject({ kind: 'transport_error', executed: false, code: 'ECONNREFUSED' });
    await kit.server.restart();
    expect(await run(provider, 'box.echo', { text: 'back' })).toBe('back');
  });

  it('for good, while its stream could be taken up again: one more try, then transport_error, uncertain', async () => {
    await serve({ resumable: true });
    const provider = await provide();
    const work = failure(run(provider, 'box.hang', {}));
    await until(() => kit.server.calls.length === 1);
    await kit.server.stop();
    expect(await work).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
  });

  it('never there: not connected, nothing ran', async () => {
    expect(await failure(mcpHttpProvider({ name: 'x', url: await closedUrl() }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
      code: 'ECONNREFUSED',
    });
  });

  it('never answering: given up in time, and let go', async () => {
    kit.server.intercept = () => true;
    expect(await failure(provide({ connectTimeoutMs: 100 }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
    });
    await until(() => kit.server.answering.size === 0);
    // Its time is over once it has been asked for its tools: before, it may have made a session that nobody knows of.
    const asked$ = new Subject<0>();
    kit.server.intercept = (_request, _response, body) => {
      if (!body.includes('tools/list')) return false;
      asked$.next(0);
      return true;
    };
    // All else has time, however busy the machine is.
    const after = (ms: number): Observable<0> => (ms === 100 ? asked$.pipe(take(1)) : liveRuntime.after(60 * ms));
    const patient = { ...liveRuntime, after };
    const runtime = { ...patient, background: patient };
    expect(await failure(provide({ connectTimeoutMs: 100, runtime }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
    });
    await until(() => kit.server.answering.size === 0);
    await until(() => kit.server.sessions.size === 0);
  });
});

describe('a stream that is cut', () => {
  it('of numbered events: taken up again, several at a time, and progress goes on', async () => {
    await serve({ resumable: true });
    const provider = await provide();
    const contexts = [context(), context(), context()];
    const work = Promise.all(contexts.map((ctx) => run(provider, 'box.steps', { count: 4, everyMs: 100 }, ctx)));
    await until(() => contexts.every(({ reports }) => reports.length >= 2));
    kit.server.cut();
    expect(await work).toEqual(['done', 'done', 'done']);
    for (const { reports } of contexts) expect(reports.at(-1)).toEqual({ progress: 4, total: 4 });
    expect(kit.server.calls).toHaveLength(3);
  });

  it('of events without numbers: transport_error, uncertain, at once; siblings are not touched', async () => {
    const provider = await provide();
    const sibling = run(provider, 'box.echo', { text: 'sibling', delayMs: 300 });
    await until(() => kit.server.calls.length === 1);
    const siblings = new Set(kit.server.answering.keys());
    const work = failure(run(provider, 'box.hang', {}));
    await until(() => kit.server.calls.length === 2);
    for (const response of kit.server.answering.keys()) if (!siblings.has(response)) response.destroy();
    expect(await work).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
    expect(await sibling).toBe('sibling');
  });

  it('that ends as if all was said: transport_error, uncertain', async () => {
    const provider = await provide();
    kit.server.intercept = (_request, response, body) => {
      if (!isCall(body, 'echo')) return false;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n');
      return true;
    };
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({
      kind: 'transport_error',
      executed: true,
      uncertain: true,
    });
  });
});

describe('the end', () => {
  it('ends the session, fails what runs, and leaves no stream', async () => {
    const provider = await provide();
    const work = failure(run(provider, 'box.hang', {}));
    await until(() => kit.server.calls.length === 1);
    await Promise.all([provider.close(), provider.close()]);
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    expect(kit.server.sessions.size).toBe(0);
    expect(kit.server.requests.filter((request) => request.startsWith('DELETE'))).toHaveLength(1);
    await until(() => kit.server.answering.size === 0);
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
      classification: 'permanent',
    });
  });

  it('does not wait for a server that no longer answers', async () => {
    const provider = await provide();
    kit.server.intercept = () => true;
    const startedAtMs = performance.now();
    await provider.close();
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    await until(() => kit.server.answering.size === 0);
  });

  it('while streams wait to be taken up again: no timer is left', async () => {
    await serve({ resumable: true });
    const provider = await provide();
    const work = Promise.all([1, 2, 3].map(() => failure(run(provider, 'box.hang', {}))));
    await until(() => kit.server.calls.length === 3);
    kit.server.intercept = (_request, response) => {
      response.destroy();
      return true;
    };
    kit.server.cut();
    await sleep(200);
    await provider.close();
    await work;
    // What was on its way arrives.
    await sleep(100);
    const requests = kit.server.requests.length;
    await sleep(1_500);
    expect(kit.server.requests.length).toBe(requests);
  });
});
