import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import type { TraceEvent } from 'spillway';
import { addEvent, emptyTrace, toOtlp, toPerfetto, type TraceModel } from 'spillway/inspect';
import { recordedWorld } from './recorded-worlds.ts';

const WORLDS = 30;
const modelOf = (events: readonly TraceEvent[]): TraceModel => events.reduce(addEvent, emptyTrace());

const record = (properties: object, required: readonly string[] = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const listOf = (items: object) => ({ type: 'array', items });
const TEXT = { type: 'string' };
/** Ids are hex in OTLP/JSON, where the protobuf mapping has base64; one of zeros alone is none. */
const hex = (digits: number) => ({ type: 'string', pattern: `^(?!0+$)[0-9a-f]{${digits}}$` });
/** 64 bits are text in JSON. */
const FIXED64 = { type: 'string', pattern: '^(0|[1-9][0-9]{0,19})$' };
const INT64 = { type: 'string', pattern: '^(0|-?[1-9][0-9]{0,18})$' };
const UINT32 = { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 };
const KEY_VALUE = record({
  key: { type: 'string', minLength: 1 },
  value: {
    oneOf: [
      record({ stringValue: TEXT }),
      record({ boolValue: { type: 'boolean' } }),
      record({ intValue: INT64 }),
      record({ doubleValue: { type: 'number' } }),
    ],
  },
});
const ATTRIBUTES = listOf(KEY_VALUE);
/** `ExportTraceServiceRequest` of opentelemetry-proto as JSON: lowerCamelCase, numbers for enums, nothing unknown. */
const OTLP = record({
  resourceSpans: listOf(
    record(
      {
        resource: record({ attributes: ATTRIBUTES, droppedAttributesCount: UINT32 }, ['attributes']),
        schemaUrl: TEXT,
        scopeSpans: listOf(
          record(
            {
              scope: record({ name: TEXT, version: TEXT, attributes: ATTRIBUTES }, ['name']),
              schemaUrl: TEXT,
              spans: listOf(
                record(
                  {
                    traceId: hex(32),
                    spanId: hex(16),
                    parentSpanId: hex(16),
                    traceState: TEXT,
                    flags: UINT32,
                    name: { type: 'string', minLength: 1 },
                    kind: { type: 'integer', minimum: 1, maximum: 5 },
                    startTimeUnixNano: FIXED64,
                    endTimeUnixNano: FIXED64,
                    attributes: ATTRIBUTES,
                    droppedAttributesCount: UINT32,
                    status: record({ code: { type: 'integer', minimum: 0, maximum: 2 }, message: TEXT }, ['code']),
                  },
                  ['traceId', 'spanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano'],
                ),
              ),
            },
            ['scope', 'spans'],
          ),
        ),
      },
      ['resource', 'scopeSpans'],
    ),
  ),
});

interface Slice {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
}
const MICROS = { type: 'integer', minimum: 0 };
const ON = { name: TEXT, pid: MICROS, tid: MICROS };
/** What Perfetto's importer of Chrome's JSON reads of the three kinds of events that we write. */
const PERFETTO = record({
  displayTimeUnit: { enum: ['ms', 'ns'] },
  traceEvents: listOf({
    oneOf: [
      record({ ...ON, ph: { const: 'X' }, ts: MICROS, dur: MICROS, cat: TEXT, args: { type: 'object' } }),
      record({ ...ON, ph: { const: 'i' }, ts: MICROS, s: { enum: ['g', 'p', 't'] } }),
      record({
        ...ON,
        name: { enum: ['process_name', 'thread_name'] },
        ph: { const: 'M' },
        args: record({ name: TEXT }),
      }),
    ],
  }),
});

/** Slices of one track that overlap and do not nest, which Perfetto's importer drops. */
const badlyNested = (slices: readonly Slice[]): string[] =>
  [...Map.groupBy(slices, ({ pid, tid }) => `${pid}/${tid}`)].flatMap(([track, own]) => {
    const open: number[] = [];
    return own
      .toSorted((a, b) => a.ts - b.ts || b.dur - a.dur)
      .flatMap(({ name, ts, dur }) => {
        while ((open.at(-1) ?? Infinity) <= ts) open.pop();
        const isBad = ts + dur > (open.at(-1) ?? Infinity);
        open.push(ts + dur);
        return isBad ? [`${track} ${name}`] : [];
      });
  });

const ajv = new Ajv({ allErrors: true });
const objections = (schema: object, value: unknown): unknown =>
  ajv.validate(schema, value) ? [] : ajv.errors?.slice(0, 3);

describe('SEE-6 what other tools open', () => {
  it('SEE-6 is OTLP/JSON as the protobuf mapping has it, which a wrong field is not', async () => {
    for (let seed = 1; seed <= WORLDS; seed++) {
      const request: unknown = JSON.parse(toOtlp(modelOf(await recordedWorld(seed)), { originMs: 1.8e12 }));
      expect(objections(OTLP, request), `seed ${seed}`).toEqual([]);
    }
    const one = toOtlp(modelOf(await recordedWorld(1)));
    for (const [from, to] of [
      ['"traceId"', '"trace_id"'],
      [/"startTimeUnixNano":"(\d+)"/, '"startTimeUnixNano":$1'],
      [/"intValue":"(\d+)"/, '"intValue":$1'],
      [/"kind":\d/, '"kind":"SPAN_KIND_CLIENT"'],
      [/"spanId":"../, '"spanId":"=='],
    ] as const) {
      const spoilt = one.replace(from, to);
      expect(spoilt).not.toBe(one);
      expect(objections(OTLP, JSON.parse(spoilt))).not.toEqual([]);
    }
  });

  it('SEE-6 is Perfetto’s: each process named, slices nested, also where a wait was cut short', async () => {
    const own = { source: 'call', callId: 'c', toolName: 'search', turnId: 't', nodeId: 'a' } as const;
    const error = { kind: 'transport_error', message: 'reset' };
    const cut = [
      {
        atMs: 0,
        source: 'turn',
        turnId: 't',
        type: 'turn_started',
        timeoutMs: 50.5,
        nodes: [{ id: 'a', toolName: 'search', needs: [] }],
      },
      { ...own, atMs: 0.0004, type: 'call_started' },
      { ...own, atMs: 0.0006, type: 'attempt_started', attempt: 1 },
      {
        ...own,
        atMs: 20.0004,
        type: 'attempt_failed',
        attempt: 1,
        durationMs: 20,
        error,
        classification: 'transient',
        rule: 'code',
      },
      {
        ...own,
        atMs: 20.0005,
        type: 'decision',
        attempt: 1,
        strategy: 'retry',
        code: 'transient',
        reason: '',
        delayMs: 400,
        error,
        classification: 'transient',
      },
      { ...own, atMs: 50.5, type: 'settled', result: { status: 'error' } },
    ].map((event, seq) => ({ ...event, seq }) as unknown as TraceEvent);
    const traces = [cut];
    for (let seed = 1; seed <= WORLDS; seed++) traces.push(await recordedWorld(seed));
    for (const [index, trace] of traces.entries()) {
      const file = JSON.parse(toPerfetto(modelOf(trace))) as { readonly traceEvents: readonly Slice[] };
      expect(objections(PERFETTO, file), `trace ${index}`).toEqual([]);
      const { traceEvents } = file;
      const slices = traceEvents.filter(({ ph }) => ph === 'X');
      expect(badlyNested(slices), `trace ${index}`).toEqual([]);
      const named = new Set(traceEvents.filter(({ ph }) => ph === 'M').map(({ pid }) => pid));
      expect(traceEvents.filter(({ pid }) => !named.has(pid))).toEqual([]);
    }
    expect(
      badlyNested([
        { name: 'a', ph: 'X', pid: 1, tid: 1, ts: 0, dur: 5 },
        { name: 'b', ph: 'X', pid: 1, tid: 1, ts: 3, dur: 5 },
      ]),
    ).toEqual(['1/1 b']);
  });
});
