import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TraceEvent } from 'spillway';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Night, TRACE_ID, incidents, traffic, turns } from './night.ts';
import * as asked from './on-call-questions.ts';

const CALLS = 10_000;

describe('R-7.1 a trace of ten thousand calls answers who is on call', { timeout: 300_000 }, () => {
  let night: Night;
  let trace: asked.Trace;
  let desk: asked.Trace;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spillway-night-'));
    night = new Night();
    const paths = ['night', 'desk'].map((name) => join(folder, `${name}.ndjson`));
    const files = await Promise.all(paths.map((path) => ndjsonSink(path, { maxWaitingBytes: 256 * 2 ** 20 })));
    for (const [at, layer] of [night.spillway, night.desk].entries())
      layer.trace$.subscribe((event) => files[at]?.next(event));
    await traffic(night, CALLS / 2);
    await incidents(night);
    await turns(night);
    await traffic(night, CALLS / 2);
    // A deploy, while one call runs; and one whose caller has left.
    night.does('endless', () => new Promise(() => undefined));
    night.begin('at the end', 'search');
    night.does('at the end', () => new Promise(() => undefined));
    await night.spillway.close();
    await night.pass(1);
    await Promise.all(files.map((file) => file.close()));
    const read = await Promise.all(paths.map((path) => readNdjson(path)));
    expect(read.map(({ leftOutCount, dropped }) => leftOutCount + dropped)).toEqual([0, 0]);
    [trace = [], desk = []] = read.map(({ events }) => events);
  }, 300_000);
  afterAll(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  it('R-7.1 all of it is there', () => {
    const settled = trace.filter((event: TraceEvent) => event.source === 'call' && event.type === 'settled');
    expect(settled.length).toBeGreaterThanOrEqual(CALLS);
    expect(asked.missing(trace)).toBe(0);
    expect(asked.missing(trace.filter(({ seq }) => seq % 1_000 !== 7))).toBeGreaterThan(30);
  });

  it('R-7.1 why did it take 31 seconds?', () => {
    expect(asked.timeSpent(trace, night.id('long'))).toEqual({
      attempts: 2_000,
      backoffs: 9_000,
      person: 20_000,
      looks: 0,
      key: 0,
      total: 31_000,
    });
    const { key, total } = asked.timeSpent(trace, night.id('second'));
    expect(key).toBe(total);
    expect(key).toBeGreaterThan(9_000);
  });

  it('R-2.4 was a retry’s wait ours, or what the tool asked for?', () => {
    expect(asked.whoseWait(trace, night.id('long'))).toEqual(['the tool’s']);
    expect(asked.whoseWait(trace, night.id('plain 0 0'))).toEqual(['ours']);
  });

  it('R-3.2 whose failures in a row opened the breaker of fares?', () => {
    const ids = asked.opening(trace, 'fares');
    expect(ids[0]).toBe(night.id('patient'));
    expect(new Set(ids)).toEqual(new Set([night.id('patient'), night.id('fare 1'), night.id('fare 2')]));
    expect(night.runs.filter((run) => run.startsWith('fares '))).toHaveLength(ids.length);
  });

  it('R-3.8 why was it refused though its breaker was closed when it began?', () => {
    expect(asked.openedMeanwhile(trace, night.id('patient'))).toBe(night.id('fare 2'));
    expect(asked.openedMeanwhile(trace, night.id('long'))).toBeUndefined();
  });

  it('R-7.1 who or what refused it, if it was no breaker?', () => {
    expect(asked.refusedBy(desk, night.id('refused'))).toMatch(/^budget of tenant acme: 0(\.\d+)? of 2 usd$/);
    expect(asked.refusedBy(trace, night.id('too much'))).toBe('Grace denied it: more than the order');
    expect(asked.refusedBy(trace, night.id('blocked'))).toBe('prepareCall blocked it: this customer is suspended');
  });

  it('R-7.1 who used the budget up?', () => {
    expect(asked.spentBy(desk, 'acme')).toEqual({ summarize: 1.6, search: 0 });
  });

  it('R-7.1 what approval was waited for?', () => {
    expect(asked.approvalOf(trace, night.id('long'))).toBe('needed: approved by Grace after 20000 ms');
  });

  it('R-6.2 why did the second alternative answer, and not the first?', () => {
    expect(asked.triedInstead(trace, night.id('elsewhere'))).toEqual([
      ['quote', 'transport_error'],
      ['quote_b', 'circuit_open'],
    ]);
    expect(night.results.get('elsewhere')).toMatchObject({ status: 'success', toolName: 'quote_c' });
  });

  it('R-11.2 when was the layer switched off, and for how many calls?', () => {
    const { calls, fromMs, toMs } = asked.switchedOff(trace);
    expect([calls, toMs - fromMs]).toEqual([10, 900]);
  });

  it('R-18.1 was a doubtful call looked into, what was found, and did it run again?', () => {
    expect(asked.lookedInto(trace, night.id('doubtful'))).toBe('done, not tried again');
    expect(asked.lookedInto(trace, night.id('long'))).toBeUndefined();
  });

  it('R-18.3 who asked for the call of the ledger that no agent made?', () => {
    const looks = trace.filter((event) => event.type === 'call_started' && event.toolName === 'ledger');
    expect(looks).toHaveLength(1);
    expect(looks.map((event) => event.source === 'call' && asked.onBehalfOf(trace, event.callId))).toEqual([
      night.id('doubtful'),
    ]);
  });

  it('R-9.4 who held the key, and what did that call come to; was it answered from memory?', () => {
    expect(asked.holder(trace, night.id('second'))).toBe(`${night.id('long')} success`);
    expect(asked.fromMemory(trace, night.id('third'))).toEqual([night.id('long'), 5_500]);
    expect(asked.fromMemory(trace, night.id('long'))).toBeUndefined();
  });

  it('R-10.3 how long was the store away, and which calls were refused for it?', () => {
    const { ms, refused } = asked.storeLost(trace);
    expect(ms).toBe(7_000);
    expect(refused).toEqual([night.id('unstored')]);
  });

  it('R-5.5 why did the turn end before its time?', () => {
    expect(asked.whyEarly(trace, 'early')).toMatch(/^place failed: no such place/);
    expect(asked.whyEarly(trace, 'late')).toBe('its time was over');
    expect(asked.whyEarly(trace, 'narrow')).toBe('it had everything');
  });

  it('R-5.3 what is at the bottom of a node that did not run?', () => {
    expect(asked.rootCause(trace, 'early', 'map')).toBe('place: execution_error: permanent');
  });

  it('R-5.2 why did a node without needs begin late?', () => {
    expect(asked.waitedForPlace(trace, 'narrow', 'c')).toEqual({ ms: 3_000, isFull: true });
    expect(asked.waitedForPlace(trace, 'narrow', 'a')).toEqual({ ms: 0, isFull: false });
  });

  it('R-18.5 what did the turn undo, by what, and what stays?', () => {
    const { undone, by, stays } = asked.undoing(trace, 'undone');
    expect(undone).toEqual(['car']);
    expect(by).toEqual(['unbook', 'unbook']);
    expect(stays).toEqual([expect.stringMatching(/^hotel: .*too late/) as string]);
  });

  it('R-4.4 what became of the call that went on after its turn’s deadline?', () => {
    expect(asked.afterDeadline(trace, 'late')).toEqual([['a', 'success']]);
  });

  it('R-7.1 who ended the call that was running at the end?', () => {
    expect(asked.canceledBy(trace, night.id('at the end'))).toBe('The layer was closed');
  });

  it('R-8.3 which calls are of the trace that a user complains about?', () => {
    expect(asked.callsOf(trace, TRACE_ID)).toEqual([night.id('patient'), night.id('fare 1')]);
  });
});
