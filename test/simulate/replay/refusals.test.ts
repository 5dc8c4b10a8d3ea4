import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { TraceEvent } from '../../../src/contract/event.ts';
import { liveRuntime } from '../../../src/runtime.ts';
import { ndjsonHeader, ndjsonLine, readNdjson } from '../../../src/sinks/ndjson.ts';
import { ReplayRefusal } from '../../../src/simulate/replay/refusal.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { recordStorm } from './storm.ts';

const folder = mkdtempSync(join(tmpdir(), 'refusals-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'trace.ndjson');
const storm = recordStorm({ calls: 60, outage: [200, 900] });
type Loose = Record<string, unknown>;
const loose = (): Loose[] => storm.map((event) => JSON.parse(JSON.stringify(event)) as Loose);
const codeOf = (events: readonly unknown[]): string => {
  try {
    replayTrace(events as TraceEvent[], { set: ['pay.retry.maxAttempts=2'] });
    return 'a number';
  } catch (error) {
    if (error instanceof ReplayRefusal) return error.code;
    throw error;
  }
};

describe('RPL-6 a trace of which nothing can be said is refused with its reason', () => {
  it('is replayed where nothing was done to it', () => expect(codeOf(loose())).toBe('a number'));

  it.each([
    ['nothing', [], 'empty'],
    ['one that begins later', loose().slice(1), 'late'],
    ['one that ends before its calls', loose().slice(0, 120), 'truncated'],
    ['one with a hole', loose().toSpliced(40, 1), 'incomplete'],
    ['two, one after the other', [...loose(), ...loose()], 'merged'],
    ['two, event by event', loose().flatMap((event) => [event, event]), 'merged'],
    ['one whose lines were moved', loose().toSpliced(50, 0, ...loose().slice(60, 61)), 'incomplete'],
    ['one of another version', loose().map(({ host: _, ...event }) => event), 'old'],
    ['one with hooks', loose().map((event, i) => (i === 0 ? { ...event, host: ['hooks'] } : event)), 'host'],
    [
      'one with a policy that no layer has',
      loose().map((event, i) =>
        i === 0 ? (JSON.parse(JSON.stringify(event).replace('"maxAttempts":', '"maxAttempts":-')) as Loose) : event,
      ),
      'malformed',
    ],
    ['another program’s lines', [{ ...loose()[0], tools: 'none' }, ...loose().slice(1)], 'malformed'],
  ])('%s', (_, events, code) => expect(codeOf(events)).toBe(code));

  const edited = (type: string, edit: (event: Loose) => Loose): Loose[] => {
    const events = loose();
    const index = events.findIndex((event) => event['type'] === type);
    return events.with(index, edit(events[index] as Loose));
  };

  it.each([
    ['a status', edited('settled', (e) => ({ ...e, result: { ...(e['result'] as Loose), status: 'error' } }))],
    ['a decision', edited('decision', (e) => ({ ...e, strategy: 'fail', delayMs: undefined }))],
    ['a wait', edited('decision', (e) => ({ ...e, delayMs: 107 }))],
    ['a failure', edited('attempt_failed', (e) => ({ ...e, error: { ...(e['error'] as Loose), status: 404 } }))],
    [
      'a limit',
      edited(
        'layer_started',
        (e) => JSON.parse(JSON.stringify(e).replace('"timeoutMs":1000', '"timeoutMs":900')) as Loose,
      ),
    ],
    ['an attempt’s length', edited('attempt_succeeded', (e) => ({ ...e, durationMs: 5_000 }))],
  ])('one in which %s was edited', (_, events) => expect(codeOf(events)).toBe('different'));

  it('one of whose calls was guarded otherwise than its tool', () => {
    expect(codeOf(edited('call_started', (e) => ({ ...e, mode: 'shadow' })))).toBe('switched');
    const open = edited('call_started', (e) => ({ ...e, breaker: { ...(e['breaker'] as Loose), state: 'open' } }));
    expect(codeOf(open)).toBe('switched');
  });

  it('names the first difference', () => {
    const events = edited('decision', (e) => ({ ...e, code: 'permanent' }));
    const seq = events.find(({ type }) => type === 'decision')?.['seq'];
    expect(() => replayTrace(events as unknown as TraceEvent[])).toThrow(
      `first at event ${String(seq)}: call 00000000-0000-7000-8000-`,
    );
  });

  it('never gives a number for, nor stumbles over, an event that lost or changed a field', () => {
    const values = fc.oneof(fc.constant(null), fc.integer(), fc.string(), fc.constant([]), fc.constant({}));
    fc.assert(
      fc.property(fc.nat(storm.length - 1), fc.nat(30), fc.option(values), (place, nth, value) => {
        const events = loose();
        const event = events[place] as Loose;
        const names = Object.keys(event).filter((name) => !['seq', 'message', 'reason', 'version'].includes(name));
        const name = names[nth % names.length] as string;
        const { [name]: _, ...rest } = event;
        const outcome = codeOf(events.with(place, value === null ? rest : { ...rest, [name]: value }));
        // What is no part of any decision may be lost: what a number is said of is what was decided.
        expect(outcome === 'a number' ? name : 'refused').toMatch(
          /^(refused|breaker|budgetLeft|draw|untilMs|callId|dueAtMs|host|choices)$/,
        );
      }),
      { numRuns: 300, seed: 11 },
    );
  });

  it('never gives another number for a trace that was edited with care, its events counted anew', () => {
    const told = (events: readonly unknown[]): string => {
      try {
        const { candidates } = replayTrace(events as TraceEvent[], { set: ['pay.retry.maxAttempts=2'] });
        return JSON.stringify([candidates[0]?.verdict, candidates[0]?.bounds, candidates[0]?.unknown]);
      } catch (error) {
        if (error instanceof ReplayRefusal && error.message !== '') return 'refused';
        throw error;
      }
    };
    const other = recordStorm({ calls: 60, outage: [200, 900], seed: 8 }).map((event): Loose => ({ ...event }));
    const edits: ReadonlyArray<(events: Loose[], at: number, by: number) => Loose[]> = [
      (events, at) => events.toSpliced(at, 1),
      (events, at) => events.toSpliced(at, 0, { ...events[at] }),
      (events, at, by) => events.toSpliced(at, 1 + (by % 5)),
      (events, at, by) => events.toSpliced(at, 0, { ...other[by % other.length], atMs: events[at]?.['atMs'] }),
      (events, at) => events.with(at, events[at + 1] as Loose).with(at + 1, events[at] as Loose),
      (events, at, by) => events.with(at, { ...events[at], callId: events[by % events.length]?.['callId'] }),
      (events, at) => events.slice(0, at + 1),
    ];
    const unedited = told(loose());
    fc.assert(
      fc.property(fc.nat(edits.length - 1), fc.integer({ min: 1, max: storm.length - 2 }), fc.nat(), (kind, at, by) => {
        const edited = edits[kind]?.(loose(), at, by).map((event, seq) => ({ ...event, seq })) ?? [];
        expect([unedited, 'refused']).toContain(told(edited));
      }),
      { numRuns: 200, seed: 12 },
    );
  });

  it('never gives another number for a file whose lines were cut, doubled, moved, mixed or changed', async () => {
    const linesOf = (events: readonly TraceEvent[]): string[] => [
      ndjsonHeader(liveRuntime).trimEnd(),
      ...events.map((event) => ndjsonLine(event).trimEnd()),
      ndjsonLine({ source: 'sink', type: 'file_ended', lastSeq: events.at(-1)?.seq }).trimEnd(),
    ];
    const own = linesOf(storm);
    const other = linesOf(recordStorm({ calls: 60, outage: [200, 900], seed: 9 }));
    const told = async (lines: readonly string[]): Promise<string> => {
      const text = lines.map((line) => `${line}\n`).join('');
      writeFileSync(file, text);
      try {
        const trace = await readNdjson(file);
        const { candidates } = replayTrace(trace, { set: ['pay.retry.maxAttempts=2'] });
        return JSON.stringify([candidates[0]?.verdict, candidates[0]?.bounds, candidates[0]?.unknown]);
      } catch (error) {
        if (error instanceof ReplayRefusal && error.message !== '') return 'refused';
        throw error;
      }
    };
    const edits: Readonly<Record<string, (lines: string[], at: number, by: number) => string[]>> = {
      dropped: (lines, at) => lines.toSpliced(at, 1),
      doubled: (lines, at) => lines.toSpliced(at, 0, lines[at] ?? ''),
      swapped: (lines, at) => lines.with(at, lines[at + 1] ?? '').with(at + 1, lines[at] ?? ''),
      'another number': (lines, at, by) => lines.with(at, (lines[at] ?? '').replace(/\d{2,}/, String(by % 100_000))),
      'another outcome': (lines, at) =>
        lines.with(
          at,
          (lines[at] ?? '')
            .replace('"status":"success"', '"status":"error"')
            .replace('attempt_succeeded', 'attempt_failed')
            .replace('"transient"', '"permanent"'),
        ),
      'two files mixed': (lines, at) => lines.flatMap((line, i) => (i < at ? [line] : [line, other[i] ?? ''])),
      'the end of another': (lines, at) => [...lines.slice(0, at), ...other.slice(at)],
      'cut in a line': (lines, at, by) => [...lines.slice(0, at), (lines[at] ?? '').slice(0, by % 40)],
      'another format': (lines, at) => lines.with(at, `{"level":30,"time":1,"msg":"call settled","line":${at}}`),
    };
    const unedited = await told(own);
    expect(unedited).not.toBe('refused');
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(edits)),
        fc.integer({ min: 1, max: own.length - 3 }),
        fc.nat(),
        async (kind, at, by) => {
          expect([unedited, 'refused']).toContain(await told(edits[kind]?.([...own], at, by) ?? []));
        },
      ),
      { numRuns: 60, seed: 13 },
    );
  });
});
