// Was: pino joined what an invisible character had cut, words lost the `_` of a secret name, a named secret left the
// rest of its token. Now: none does, in any sink.
import * as api from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { escalationOf } from 'spillway/policy';
import { bufferedSink } from 'spillway/sinks/buffered';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { pinoSink } from 'spillway/sinks/pino';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toolMetrics } from 'spillway/sinks/tool-metrics';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventLine } from '../../src/cli/show/event-line.ts';
import { nodeTable, sentence } from '../../src/cli/show/report.ts';
import { styleOf } from '../../src/cli/show/terminal.ts';
import { adminHandler } from '../../src/gateway/admin.ts';
import { visible } from '../../src/policy/redact/invisible.ts';
import { textRedactor } from '../../src/policy/redact/text.ts';
import { recorder } from '../sinks/otel-kit.ts';

const [HEAD, TAIL] = ['ghp_A1b2C3d4E5', 'f6G7h8J9k0L1m2'];
/** What cuts a secret where nobody sees it. */
const CUTS: Readonly<Record<string, string>> = {
  'zero-width space': '\u200b',
  'soft hyphen': '\u00ad',
  colour: '\u001b[31m',
  'colour of C1': '\u009b31m',
  title: '\u001b]0;x\u0007',
  'title without an end': '\u001b]',
  NUL: '\u0000',
  'right-to-left mark': '\u200f',
  BOM: '\ufeff',
  'joiner of graphemes': '\u034f',
  'Hangul filler': '\u3164',
  'variation selector': '\ufe0f',
  tag: '\u{e0041}',
  'half of a pair': '\ud83d',
  'private use': '\ue000',
  backspace: '\b',
  several: '\u200b\u001b[0m\u00ad',
};
const NAMED = 'C4naryV4lue';
const NAMES = [
  'ghp_Q1w2E3r4T5y6U7i8O9p0',
  'github_pat_11ABCDEFG0zxcvbnmasdf',
  'sk_live_Z1x2C3v4B5n6M7q8',
  `my_${NAMED}_rest`,
];
/** Only what a secret is made of: whatever stands between its parts does not hide it. */
const letters = (text: string): string =>
  text
    .replaceAll(/\\u[\da-f]{4}|\\[bntr]/gi, '')
    .replaceAll(/[^\da-z]/gi, '')
    .toLowerCase();
const SECRETS = [`${HEAD}${TAIL}`, ...NAMES, 'Zq7head', 'Zq7tail'].map(letters);

const folder = mkdtempSync(join(tmpdir(), 'spillway-secrets-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('R-11.4 a secret that was cut, worded or part of a token', () => {
  const written = new Map<string, string>();

  beforeAll(async () => {
    const said = [
      ...Object.values(CUTS).map((cut) => `refused ${HEAD}${cut}${TAIL} here`),
      `token acme-Zq7head${NAMED}Zq7tail here`,
    ];
    const once = { retry: { maxAttempts: 1 }, breaker: false } as const;
    const failing = said.map((message, index) =>
      tool({
        name: `failing${index}`,
        policy: once,
        execute: (): never => {
          throw new Error(message);
        },
      }),
    );
    const named = NAMES.map((name) =>
      tool({
        name,
        policy: once,
        execute: (): never => {
          throw new Error('down');
        },
      }),
    );
    const tools = [...failing, ...named];
    const spillway = createSpillway({
      tools,
      redact: { secrets: [NAMED] },
      errorHandler: () => ({ strategy: 'escalate', code: 'permanent', reason: 'a person decides' }),
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
      tools: failing,
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
    const prometheus = prometheusSink({ tools: failing, inspect: () => spillway.inspect() });
    const perTool = toolMetrics();
    const path = join(folder, 'trace.ndjson');
    const file = await ndjsonSink(path);
    const events: TraceEvent[] = [];
    const buffered = bufferedSink({ next: (event) => events.push(event) });
    for (const sink of [otel, pinoSink(log), prometheus, perTool, file, buffered]) spillway.trace$.subscribe(sink);
    for (const { name } of tools)
      await spillway.execute({ toolName: name, input: {}, session: `${HEAD}\u200b${TAIL}` });
    await spillway.execute({ toolName: `unknown_${NAMES[0]}`, input: {} });
    const { result } = await new Promise<{ result: Parameters<typeof nodeTable>[0] }>((resolve) => {
      const nodes = NAMES.map((name, index) => ({ id: `${NAMES[index]}`, tool: name, input: {} }));
      spillway.turn(plan.from(nodes)).subscribe((event) => {
        if (event.source === 'turn' && event.type === 'settled') resolve(event);
      });
    });
    buffered.flush();
    await file.close();
    const admin = adminHandler(spillway, { token: 'a'.repeat(32), metrics: prometheus });
    const metrics = await admin.fetch(
      new Request('http://localhost/metrics', { headers: { authorization: `Bearer ${'a'.repeat(32)}` } }),
    );
    const style = styleOf(process.stdout, { color: false, ascii: true });
    written.set('trace', JSON.stringify(events));
    written.set('turn-trace', JSON.stringify(events.map(toTurnTrace)));
    written.set('tool-metrics', JSON.stringify(perTool.all()));
    written.set('pino', logged);
    written.set('prometheus', await prometheus.text());
    written.set('admin metrics', await metrics.text());
    written.set(
      'opentelemetry',
      JSON.stringify(finished().map(({ name, attributes, status, links }) => [name, attributes, status, links])),
    );
    written.set('ndjson', readFileSync(path, 'utf8'));
    written.set(
      'cli lines',
      events
        .filter((event) => event.source !== 'layer')
        .map((event) => eventLine(event) ?? '')
        .join('\n'),
    );
    written.set('cli sentence', sentence(result, style));
    expect(events.map(({ type }) => type)).toContain('escalated');
    expect(nodeTable(result, style)).not.toBe('');
  });

  it.each([
    'trace',
    'turn-trace',
    'tool-metrics',
    'pino',
    'prometheus',
    'admin metrics',
    'opentelemetry',
    'ndjson',
    'cli lines',
    'cli sentence',
  ])('R-11.4 %s holds none', (sink) => {
    const text = letters(written.get(sink) ?? '');
    expect(text.length).toBeGreaterThan(20);
    expect(SECRETS.filter((secret) => text.includes(secret))).toEqual([]);
  });

  it('R-11.4 what stands beside it is still there', () => {
    for (const sink of ['trace', 'pino', 'ndjson']) {
      expect(written.get(sink)).toContain('refused [redacted] here');
      expect(written.get(sink)).toContain('token [redacted] here');
    }
    expect(written.get('trace')).toContain('[redacted] failed after 1 attempt');
  });
});

describe('R-11.4 a text without what nobody sees', () => {
  it.each(Object.entries(CUTS))('R-11.4 is whole again where %s had cut it', (_, cut) => {
    expect(textRedactor()(`x ${HEAD}${cut}${TAIL} y`)).toBe('x [redacted] y');
    expect(textRedactor(['two words'])(`x two${cut} words y`)).toBe('x [redacted] y');
  });

  it('R-11.4 keeps lines, letters of all alphabets and pairs', () => {
    for (const text of ['a\n\tb\r\n', 'Ääkköset, ελληνικά, 日本語', 'party 🎉', 'cafe\u0301', 'it\u2019s 5\u00a0%'])
      expect(visible(text)).toBe(text);
    expect(visible('\u001b[1mbold\u001b[0m \u001b]8;;https://x.example\u001b\\link\u001b]8;;\u001b\\')).toBe(
      'bold link',
    );
  });

  it('R-11.4 a secret at the edge of what is read is not shown by half', () => {
    const redact = textRedactor();
    for (let place = 3_990; place <= 4_200; place += 7) {
      const cut = `${'. '.repeat(place / 2)}${'\u200b'.repeat(4_000)}${HEAD}${TAIL}${' .'.repeat(9_000)}`;
      expect(redact(cut)).not.toContain('ghp_A');
    }
    expect(redact(`${'\u200b'.repeat(32_760)}${HEAD}${TAIL}`)).not.toContain('ghp_');
  });

  it('R-11.4 a named value takes its token along, and no more', () => {
    const redact = textRedactor(['delta', 'two words']);
    expect(redact('a-two words-b, key=delta')).toBe('[redacted], key=[redacted]');
    expect(redact('x-delta-y z delta. https://h/delta/q')).toBe('[redacted] z [redacted] https://h/[redacted]/q');
  });

  it('R-11.4 escalationOf alone knows what looks like a secret', () => {
    const failure = {
      toolName: NAMES[0] ?? '',
      error: { kind: 'timeout', uncertain: false },
      attempt: 2,
      classification: 'transient',
      alternatives: [],
    } as unknown as Parameters<typeof escalationOf>[0];
    expect(escalationOf(failure).message).toBe('[redacted] failed after 2 attempts (timeout)');
  });
});
