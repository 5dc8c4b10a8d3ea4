import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type ToolCallEnvelope } from 'spillway';
import { adminHandler } from 'spillway/gateway/admin';
import { prometheusSink, type PrometheusSink, type Scrape } from 'spillway/sinks/prometheus';
import { virtualRuntime } from 'spillway/testing';
import { layerOf, reset, stepped } from './kit.ts';
import { freePort } from '../free-port.ts';
import { serveMetrics, startPrometheus, type MetricsServer, type Prometheus } from './prometheus-server.ts';
import { promtool } from './promtool.ts';

const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';

const read = async ({ chunks }: Scrape): Promise<string> => {
  let text = '';
  for await (const chunk of chunks) text += chunk;
  return text;
};

/** A call within somebody's trace. */
const traced = (toolName: string, flags = '01'): ToolCallEnvelope => ({
  contractVersion: '1.1',
  requestId: `call of ${toolName} ${flags}`,
  toolName,
  toolNamespace: 'n',
  target: { sessionKey: 's', actorId: 'a' },
  payload: { version: '1.0', params: {} },
  transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 } },
  control: {},
  trace: { traceparent: `00-${TRACE_ID}-${SPAN_ID}-${flags}` },
});

describe('R-7.5 OpenMetrics', () => {
  it.each([
    [PROMETHEUS_2, OPEN_METRICS],
    [PROMETHEUS_3, OPEN_METRICS],
    ['application/openmetrics-text', OPEN_METRICS],
    ['text/plain;version=0.0.4, application/openmetrics-text;q=0.5', TEXT],
    ['application/openmetrics-text;q=0', TEXT],
    ['application/openmetrics-text;version=0.0.1', TEXT],
    ['application/openmetrics-text;q=nonsense', TEXT],
    ['text/html,application/xhtml+xml,*/*;q=0.8', TEXT],
    ['', TEXT],
    [undefined, TEXT],
    [null, TEXT],
  ])('R-7.5 who asks for %j gets %s', async (accept, contentType) => {
    const scrape = prometheusSink({ tools: ['a'] }).scrape(accept);
    expect(scrape.contentType).toBe(contentType);
    expect((await read(scrape)).endsWith('# EOF\n')).toBe(contentType === OPEN_METRICS);
  });

  it('R-7.5 a call’s trace is the example of the bucket that it fell into, if it is sampled', async () => {
    const runtime = virtualRuntime();
    const layer = layerOf(
      [
        stepped('search', [() => 'ok']),
        stepped('down', [
          () => {
            throw reset();
          },
        ]),
      ],
      { runtime },
    );
    const sink = prometheusSink({ tools: ['search', 'down'], runtime });
    layer.spillway.trace$.subscribe(sink);
    for (const request of [traced('search'), traced('down', '00')]) {
      const done = layer.spillway.execute(request);
      await runtime.advance(1_000);
      await done;
    }
    const lines = (await read(sink.scrape(OPEN_METRICS))).split('\n').filter((line) => line.includes(' # {'));
    const at = (runtime.wallNow() / 1000).toFixed(0).slice(0, -1);
    expect(lines.map((line) => line.replace(new RegExp(`${at}\\d\\.\\d{3}$`), 'then'))).toEqual([
      `spillway_tool_calls_total{tool="search",status="success",scope="session"} 1 # {trace_id="${TRACE_ID}",span_id="${SPAN_ID}"} 1 then`,
      `spillway_tool_call_duration_seconds_bucket{tool="search",status="success",le="0.01"} 1 # {trace_id="${TRACE_ID}",span_id="${SPAN_ID}"} 0 then`,
    ]);
    expect(await sink.text()).not.toContain(' # {');
  });

  it('R-7.5 the trace may be asked for, and goes before the caller’s', async () => {
    const layer = layerOf([stepped('search', [() => 'ok'])]);
    const own = 'f'.repeat(32);
    const sink = prometheusSink({
      tools: ['search'],
      traceparent: (callId) => (callId.startsWith('call of') ? `00-${own}-${SPAN_ID}-01` : undefined),
    });
    layer.spillway.trace$.subscribe(sink);
    await layer.run(traced('search'));
    const text = await read(sink.scrape(OPEN_METRICS));
    expect(text).toContain(`trace_id="${own}"`);
    expect(text).not.toContain(TRACE_ID);
  });

  it('R-7.5 the admin page answers in the format that is asked for, a piece at a time, and an error of the first piece is one', async () => {
    const spillway = createSpillway({ tools: [] });
    const tools = Array.from({ length: 30 }, (_, n) => `tool_${n}`);
    const ask = async (metrics: PrometheusSink, accept?: string): Promise<Response> => {
      const admin = adminHandler(spillway, { metrics, token: 't'.repeat(32) });
      const headers = { authorization: `Bearer ${'t'.repeat(32)}`, ...(accept === undefined ? {} : { accept }) };
      return admin.fetch(new Request('http://localhost/metrics', { headers }));
    };
    const sink = prometheusSink({ tools });
    const open = await ask(sink, PROMETHEUS_2);
    expect([open.status, open.headers.get('content-type'), open.headers.get('vary')]).toEqual([
      200,
      OPEN_METRICS,
      'accept',
    ]);
    expect(await open.text()).toBe(await read(sink.scrape(PROMETHEUS_2)));
    expect(await (await ask(sink)).text()).toBe(await sink.text());
    const failing = {
      ...sink,
      scrape: (): Scrape => ({
        contentType: TEXT,
        chunks: { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('lost')) }) },
      }),
    };
    expect((await ask(failing)).status).toBe(500);
    // Who goes away ends the making.
    let ended = 0;
    const returned = async (): Promise<IteratorResult<string>> => {
      ended++;
      return { done: true, value: undefined };
    };
    const endless = {
      ...sink,
      scrape: (): Scrape => ({
        contentType: TEXT,
        chunks: {
          [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 'x 1\n' }), return: returned }),
        },
      }),
    };
    await (await ask(endless)).body?.cancel();
    expect(ended).toBe(1);
  });

  it('R-7.5 the version that is told is the package’s', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      readonly version: string;
    };
    expect(await prometheusSink({ tools: [] }).text()).toContain(`\nspillway_build_info{version="${version}"} 1\n`);
  });
});

describe('R-7.5 a real Prometheus reads both formats', () => {
  const odd = tool({ name: 'odd "name"\\\n{}', policy: { effects: 'mutating' }, execute: () => 1 });
  const spillway = createSpillway({ tools: [odd, stepped('search', [() => 'ok'])] });
  const sink = prometheusSink({
    tools: [odd, 'search'],
    durationMs: true,
    inspect: async () => ({ ...(await spillway.inspect()), store: { records: 3, byTool: { search: 2 } } }),
  });
  spillway.trace$.subscribe(sink);
  let prometheus: Prometheus;
  let servers: MetricsServer[];
  let ports: number[];
  beforeAll(async () => {
    ports = await Promise.all([freePort(), freePort()]);
    servers = await Promise.all(ports.map((port, place) => serveMetrics(sink, port, place === 1)));
    prometheus = await startPrometheus(ports);
  });
  afterAll(async () => {
    await Promise.all([...servers.map((server) => server.stop()), prometheus.stop(), spillway.close()]);
  });

  it('R-7.5 the same series whichever format it asks for, and the traces of the one that has them', async () => {
    await spillway.execute(traced('search'));
    await spillway.execute({ toolName: odd.name });
    await new Promise<void>((done) => {
      spillway.turn(plan().call('a', odd, undefined)).subscribe({ complete: done });
    });
    await expect.poll(async () => (await prometheus.query('up')).map(({ value }) => value)).toEqual([1, 1]);
    expect(servers.map(({ answered }) => [...answered])).toEqual([[OPEN_METRICS], [TEXT]]);
    const seriesOf = async (port: number | undefined): Promise<string[]> => {
      const found = await prometheus.query(`{__name__=~"spillway_.+",instance="127.0.0.1:${port}"}`);
      return found
        .map(({ metric: { instance: _, ...labels }, value }) => `${JSON.stringify(labels)} ${value}`)
        .toSorted();
    };
    await expect.poll(() => seriesOf(ports[0])).toEqual(await seriesOf(ports[1]));
    const series = await seriesOf(ports[0]);
    const lines = (await sink.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(series).toHaveLength(lines.length);
    const [named] = await prometheus.query(
      `spillway_tool_calls_total{tool=~"odd(?s:.*)",status="success",scope="turn",instance="127.0.0.1:${ports[0]}"}`,
    );
    expect(named).toMatchObject({ metric: { tool: odd.name }, value: 1 });
    const exemplars = async (): Promise<unknown> => prometheus.exemplars('spillway_tool_call_duration_seconds_bucket');
    await expect.poll(exemplars).toEqual([{ trace_id: TRACE_ID, span_id: SPAN_ID }]);
  });

  it('R-7.5 promtool finds nothing in the text but the milliseconds', async () => {
    const { said } = promtool(['check', 'metrics'], await sink.text());
    expect(said).toBe('spillway_tool_call_duration_ms metric names should not contain abbreviated units');
  });
});
