import * as api from '@opentelemetry/api';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { pino } from 'pino';
import { firstValueFrom, timer } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type Tool, type ToolEvent, type TraceEvent } from 'spillway';
import { bufferedSink } from 'spillway/sinks/buffered';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { pinoSink } from 'spillway/sinks/pino';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toolMetrics } from 'spillway/sinks/tool-metrics';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { eventLine } from '../../src/cli/show/event-line.ts';
import { ndjsonLine } from '../../src/sinks/ndjson.ts';
import { recorder } from '../sinks/otel-kit.ts';

/** Looks like a token wherever it stands. */
const TOKEN = 'sk-canary-7f3a9c51e2';
/** A word like any other: what stands around it gives it away. */
const WORD = 'marzipan';
const FORGED = `\n{"event":"tool_call_end","level":30}\u001b[2J\u009b31m`;
const LEAKS = `password=${WORD} at https://ann:${WORD}@db.example/q?api_key=${WORD}&sig=${WORD}, Authorization: Bearer ${WORD}x1\nwith {"client_secret":"${WORD}"} and ${TOKEN}${FORGED}`;

/** An error as HTTP clients make them: it carries the request. */
const leaky = (): Error => {
  const error = new Error(LEAKS, { cause: new Error(`cause ${TOKEN}`) });
  const request = {
    headers: { authorization: `Bearer ${TOKEN}`, cookie: WORD },
    url: `https://x.example/?token=${WORD}`,
    data: { password: WORD },
  };
  return Object.assign(error, {
    code: 'ECONNRESET',
    stack: `Error: ${LEAKS}\n    at ${TOKEN}`,
    config: request,
    request,
    response: { headers: request.headers },
  });
};

const failing = (name: string, policy: Tool['policy'] = {}): Tool =>
  tool({
    name,
    policy: { retry: { maxAttempts: 2, initialDelayMs: 1 }, ...policy },
    execute: (_: unknown, { progress }) => {
      progress({ message: LEAKS, progress: 1, details: { password: WORD } } as never);
      throw leaky();
    },
  });
const giving: Tool = tool({ name: 'giving', execute: () => ({ apiKey: WORD, note: TOKEN }) });
const blocked: Tool = tool({ name: 'blocked', execute: () => 1 });

const folder = mkdtempSync(join(tmpdir(), 'spillway-canary-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('TR-15 sensitive fields are redacted', () => {
  const written = new Map<string, string>();
  const own: ToolEvent[] = [];
  let events: TraceEvent[] = [];

  beforeAll(async () => {
    const tools = [
      failing('failing', { alternatives: ['spare'] }),
      failing('spare'),
      failing('shaded', { mode: 'shadow' }),
      giving,
      blocked,
    ];
    const spillway = createSpillway({
      tools,
      hooks: {
        beforeToolCall: ({ toolName }) => (toolName === 'blocked' ? { block: LEAKS } : undefined),
        afterToolCall: () => {
          throw leaky();
        },
      },
    });
    const { processor, finished } = recorder();
    const provider = new TracerProvider({ spanProcessors: [processor] });
    const otel = openTelemetrySink({
      api: {
        ...api,
        trace: {
          getTracer: (name) => provider.getTracer(name),
          setSpan: api.trace.setSpan,
          setSpanContext: api.trace.setSpanContext,
        },
      },
      claw: true,
      tools,
    });
    let logged = '';
    const log = pino(
      { base: null },
      new Writable({
        write: (chunk: Buffer, _, done) => {
          logged += chunk.toString();
          done();
        },
      }),
    );
    const prometheus = prometheusSink({ tools, inspect: () => spillway.inspect() });
    const perTool = toolMetrics();
    const path = join(folder, 'trace.ndjson');
    const file = await ndjsonSink(path);
    const seen: TraceEvent[] = [];
    const buffered = bufferedSink({ next: (event) => seen.push(event) });
    events = seen;
    for (const sink of [otel, pinoSink(log), prometheus, perTool, file, buffered]) spillway.trace$.subscribe(sink);

    const input = { password: WORD, token: TOKEN, url: `https://u:${WORD}@x.example` };
    const all = (name: string, more: object = {}): Promise<unknown> =>
      new Promise<void>((done) => {
        spillway
          .call({ toolName: name, input, toolCallId: TOKEN, ...more })
          .subscribe({ next: (event) => own.push(event), complete: done });
      });
    for (const name of ['failing', 'shaded', 'giving', 'blocked', `no ${TOKEN}`]) await all(name);
    for (const more of [{}, {}, { input: 'other' }])
      await all('giving', {
        idempotencyKey: `key ${TOKEN}`,
        session: `session ${TOKEN}`,
        tenant: TOKEN,
        actor: TOKEN,
        ...more,
      });
    await spillway.execute({
      contractVersion: '1.1',
      requestId: 'r',
      toolName: 'failing',
      toolNamespace: 'n',
      target: {
        sessionKey: TOKEN,
        actorId: TOKEN,
        agentId: TOKEN,
        workspaceId: TOKEN,
        correlationId: `c\n${TOKEN}`,
      },
      payload: { version: '1.0', params: input },
      transport: { dedupeMode: 'enforced', retryBudget: { maxAttempts: 2, maxElapsedMs: 1_000 } },
      control: { requestTags: [TOKEN, LEAKS], fromHook: TOKEN },
      trace: { traceparent: TOKEN, baggage: { token: WORD } },
    });
    await new Promise<void>((done) => {
      const trip = plan.from([
        { id: `n-${TOKEN}`, tool: 'failing', input },
        { id: 'after', tool: 'giving', input, needs: [`n-${TOKEN}`] },
      ]);
      spillway.turn(trip).subscribe({ complete: done });
    });
    await firstValueFrom(timer(20));
    buffered.flush();
    await file.close();
    const lines = events.filter((event) => event.source !== 'layer').map((event) => eventLine(event) ?? '');
    written.set('trace', JSON.stringify(events));
    written.set('turn-trace', JSON.stringify(events.map(toTurnTrace)));
    written.set('tool-metrics', JSON.stringify(perTool.all()));
    written.set('pino', logged);
    written.set('prometheus', await prometheus.text());
    written.set(
      'opentelemetry',
      JSON.stringify(finished().map(({ name, attributes, status, links }) => [name, attributes, status, links])),
    );
    written.set('ndjson', readFileSync(path, 'utf8'));
    written.set('cli lines', lines.join('\n'));
    written.set('cli --trace', events.map((event) => ndjsonLine(event)).join(''));
  });

  it('TR-15 the canaries were there: the caller’s own stream has them', () => {
    const told = JSON.stringify(own);
    expect(told.split(TOKEN).length).toBeGreaterThan(10);
    expect(told.split(WORD).length).toBeGreaterThan(10);
    expect(new Set(events.map(({ type }) => type)).size).toBeGreaterThan(14);
  });

  it.each([
    'trace',
    'turn-trace',
    'tool-metrics',
    'pino',
    'prometheus',
    'opentelemetry',
    'ndjson',
    'cli lines',
    'cli --trace',
  ])('TR-15 %s holds neither', (sink) => {
    const text = written.get(sink) ?? '';
    expect(text.length).toBeGreaterThan(50);
    for (const canary of [TOKEN, WORD, Buffer.from(TOKEN).toString('base64').slice(0, 16)]) {
      const place = text.indexOf(canary);
      expect(place === -1 ? 'nowhere' : text.slice(Math.max(0, place - 60), place + 60)).toBe('nowhere');
    }
  });

  it('TR-15 what was said beside a secret is still there', () => {
    for (const sink of ['trace', 'pino', 'opentelemetry', 'ndjson'])
      expect(written.get(sink)).toContain('db.example/q?api_key=[redacted]');
  });

  it.each(['pino', 'ndjson', 'cli lines', 'cli --trace', 'prometheus'])(
    'TR-15 nothing in %s can forge a line or drive a terminal',
    (sink) => {
      const lines = (written.get(sink) ?? '').trimEnd().split('\n');
      expect(lines.filter((line) => /\p{Cc}/u.test(line))).toEqual([]);
      expect(lines.filter((line) => line.startsWith('{"event"'))).toEqual([]);
      if (sink === 'pino') expect(lines.filter((line) => /\\n|\\u001b/.test(line))).toEqual([]);
    },
  );
});
