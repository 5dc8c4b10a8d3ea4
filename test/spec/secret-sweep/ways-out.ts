import * as api from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { createSpillway, type ToolEvent, type TraceEvent, type TurnEvent } from 'spillway';
import { adminHandler } from 'spillway/gateway/admin';
import { serveInspector } from 'spillway/inspect';
import { htmlReport } from 'spillway/sinks/html-report';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { openTelemetrySink, type OtelApi, type OtelAttributes } from 'spillway/sinks/opentelemetry';
import { pinoSink } from 'spillway/sinks/pino';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toolMetrics } from 'spillway/sinks/tool-metrics';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { runShow } from '../../../src/cli/trace/show.ts';
import { lineProgress, liveProgress } from '../../../src/cli/show/progress.ts';
import { nodeTable, sentence } from '../../../src/cli/show/report.ts';
import { shownEvents } from '../../../src/cli/show/shown.ts';
import { styleOf, type Output } from '../../../src/cli/show/terminal.ts';
import { addEvent } from '../../../src/inspect/model/add.ts';
import { emptyTrace } from '../../../src/inspect/model/empty.ts';
import { SHARES, TRACE_SHARES, shared } from '../../../src/inspect/shares.ts';
import { ndjsonLine } from '../../../src/sinks/ndjson.ts';
import { virtualRuntime } from '../../../src/testing/virtual-runtime.ts';
import { recorder } from '../../sinks/otel-kit.ts';
import { NAMED, defaultRun, type Place, type Secret } from './kit.ts';

const TOKEN = 'a'.repeat(32);
/** Where the inspector's own addresses and tokens are not looked at. */
const STYLE = styleOf(process.stdout, { color: false, ascii: true });

/** An output that keeps what is written. */
const kept = (): Output & { readonly text: () => string } => {
  let text = '';
  const output = new Writable({
    write: (chunk: Buffer, _, done) => {
      text += chunk.toString();
      done();
    },
  });
  return Object.assign(output, { text: () => text });
};

/** All attributes that metrics and log records are told with. */
const otelOf = (provider: TracerProvider, told: unknown[]): OtelApi => {
  const instrument = {
    add: (_: number, attributes?: OtelAttributes) => void told.push(attributes),
    record: (_: number, attributes?: OtelAttributes) => void told.push(attributes),
    addCallback: (callback: (observer: { observe: (value: number, attributes?: OtelAttributes) => void }) => unknown) =>
      void told.push(callback({ observe: (_, attributes) => void told.push(attributes) })),
  };
  const make = () => instrument;
  return {
    ...api,
    trace: {
      getTracer: (name) => provider.getTracer(name),
      setSpan: (context, span) => api.trace.setSpan(context, span as never),
      setSpanContext: (context, span) => api.trace.setSpanContext(context, span),
    },
    context: { active: () => api.context.active(), with: (context, work) => api.context.with(context, work) },
    metrics: {
      getMeter: () => ({
        createCounter: make,
        createHistogram: make,
        createObservableCounter: make,
        createObservableGauge: make,
      }),
    },
    logs: { getLogger: () => ({ emit: (record) => void told.push(record) }) },
  };
};

const isTurn = (event: unknown): event is TurnEvent | ToolEvent =>
  typeof event === 'object' && event !== null && 'source' in event;

/** Outputs are what a caller asked for. */
const withoutOutput = (event: TurnEvent): TurnEvent => {
  if (event.type !== 'settled') return event;
  if (event.source === 'call') return { ...event, result: { ...event.result, output: { content: 0 } } };
  const nodes = event.result.nodes.map(({ result, ...node }) =>
    result === undefined ? node : { ...node, result: { ...result, output: { content: 0 } } },
  );
  return { ...event, result: { ...event.result, nodes, values: {} } };
};

/** What `spillway run` makes of its own events: its lines, its live lanes, its table, and `--json` without outputs. */
const runTexts = async (own: readonly TurnEvent[]): Promise<Map<string, string>> => {
  const texts = new Map<string, string>();
  const lines = kept();
  const live = kept();
  const runtime = virtualRuntime();
  const displays = [lineProgress(lines), liveProgress(live, STYLE, runtime)];
  const show = shownEvents([NAMED]);
  let json = '';
  let table = '';
  for (const event of own) {
    const shown = withoutOutput(show(event));
    for (const display of displays) display.event(shown);
    json += ndjsonLine(shown);
    if (shown.source === 'turn' && shown.type === 'settled')
      table = `${nodeTable(shown.result, STYLE)}\n${sentence(shown.result, STYLE)}`;
  }
  await runtime.advance(100);
  for (const display of displays) display.end();
  texts.set('spillway run: lines', lines.text());
  texts.set('spillway run: live', live.text());
  texts.set('spillway run --json', json);
  texts.set('spillway run: table', table);
  return texts;
};

const showTexts = async (path: string): Promise<Map<string, string>> => {
  const texts = new Map<string, string>();
  for (const option of ['', '--failed', '--json']) {
    const [stdout, stderr] = [kept(), kept()];
    const context = { stdout, stderr, env: {}, runtime: virtualRuntime(), signal: new AbortController().signal };
    await runShow([path, '--no-color', ...(option === '' ? [] : [option])], context).catch(() => undefined);
    texts.set(`spillway show ${option}`.trim(), stdout.text() + stderr.text());
  }
  return texts;
};

const sharesOf = (events: readonly TraceEvent[]): string => {
  const model = emptyTrace();
  for (const event of events) addEvent(model, event);
  const [turnId = ''] = model.turns.keys();
  return [...SHARES, ...TRACE_SHARES].map((name) => shared(name, model, turnId)?.text ?? '').join('\n');
};

/** The stream of events that an inspector sends to its page, up to the last of those that it has. */
const streamed = async (layer: ReturnType<typeof createSpillway>, run: () => Promise<unknown>): Promise<string> => {
  const inspector = await serveInspector(layer);
  await run();
  const answer = await fetch(`${inspector.url}/events?token=${inspector.token}`);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (!text.includes('"settled"')) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  await inspector.close();
  return text;
};

/** What came of one place, and all that came out. */
export interface Swept {
  readonly own: string;
  readonly trace: string;
  readonly texts: ReadonlyMap<string, string>;
}

/** Puts a secret into one place, with every sink listening, and collects every text that comes out. */
export async function sweep(place: Place, secret: Secret, folder: string): Promise<Swept> {
  const options = place.layer(secret);
  const layer = createSpillway({ ...options, redact: { secrets: [NAMED] } });
  const texts = new Map<string, string>();
  const events: TraceEvent[] = [];
  const told: unknown[] = [];
  const { processor, finished } = recorder();
  const tools = options.tools ?? [];
  const otel = openTelemetrySink({
    api: otelOf(new TracerProvider({ spanProcessors: [processor] }), told),
    claw: true,
    tools,
    inspect: () => layer.inspect(),
  });
  const logged = kept();
  const prometheus = prometheusSink({ tools, inspect: () => layer.inspect() });
  const perTool = toolMetrics();
  const path = join(folder, 'trace.ndjson');
  const file = await ndjsonSink(path);
  const sinks = [otel, pinoSink(pino({ base: null }, logged)), prometheus, perTool, file];
  for (const sink of [...sinks, { next: (event: TraceEvent) => void events.push(event) }]) layer.trace$.subscribe(sink);
  let came: unknown;
  const stream = await streamed(layer, async () => (came = await (place.run ?? defaultRun)(layer, secret)));
  await file.close();
  const own = [came].flat(2).filter(isTurn);
  for (const [name, text] of [...(await runTexts(own)), ...(await showTexts(path))]) texts.set(name, text);
  const trace = JSON.stringify(events);
  texts.set('trace', trace);
  texts.set('the inspector’s stream', stream);
  texts.set('the inspector’s shares', sharesOf(events));
  texts.set('a report’s page', (await htmlReport(events)).replace(/^[\s\S]*?<script type="application\/json"/, ''));
  texts.set('turn trace', JSON.stringify(events.map(toTurnTrace)));
  texts.set('metrics of tools', JSON.stringify(perTool.all()));
  texts.set('pino', logged.text());
  texts.set('prometheus', await prometheus.text());
  texts.set(
    'spans',
    JSON.stringify(
      finished().map(({ name, attributes, status, links, events: on }) => [name, attributes, status, links, on]),
    ),
  );
  texts.set('metrics and log records of OpenTelemetry', JSON.stringify(await Promise.all(told)));
  texts.set('file', readFileSync(path, 'utf8'));
  texts.set('warnings', layer.warnings.join('\n'));
  const admin = adminHandler(layer, { token: TOKEN, metrics: prometheus });
  const headers = { authorization: `Bearer ${TOKEN}` };
  for (const at of ['/debug/tool-reliability', '/metrics'])
    texts.set(`admin ${at}`, await (await admin.fetch(new Request(`http://localhost${at}`, { headers }))).text());
  texts.set('what a model reads', modelTexts(own).join('\n'));
  await layer.close();
  return { own: JSON.stringify(came), trace, texts };
}

const modelTexts = (own: ReadonlyArray<TurnEvent | ToolEvent>): string[] =>
  own.flatMap((event) => {
    if (event.type !== 'settled') return [];
    if (event.source === 'call') return [event.result.error?.modelText ?? ''];
    return [event.result.summary, ...event.result.nodes.map(({ result }) => result?.error?.modelText ?? '')];
  });
