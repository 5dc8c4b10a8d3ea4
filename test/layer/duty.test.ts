import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileOf, of, text, type File } from './audit-lines.ts';
import * as asked from './duty-questions.ts';
import { Duty } from './duty-world.ts';

const CALLS = 4_000;

describe('R-7.1 a trace of some thousand calls answers twenty more questions', { timeout: 120_000 }, () => {
  const duty = new Duty();
  let here: File;
  let there: File;
  let folder: string;
  const id = (order: string): string => duty.id(order);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spillway-duty-'));
    const paths = ['here', 'there'].map((name) => join(folder, `${name}.ndjson`));
    const files = await Promise.all(paths.map((path) => ndjsonSink(path, { maxWaitingBytes: 256 * 2 ** 20 })));
    for (const [at, layer] of [duty.here, duty.there].entries())
      layer.trace$.subscribe((event) => files[at]?.next(event));
    await duty.warmUp();
    await duty.traffic(CALLS / 2);
    await duty.failures();
    await duty.keys();
    await duty.traffic(CALLS / 2);
    await duty.turns();
    await Promise.all(files.map((file) => file.close()));
    [here, there] = (await Promise.all(paths.map((path) => readFile(path, 'utf8')))).map(fileOf) as [File, File];
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('R-6.2 why was no alternative tried?', () => {
    expect(asked.whyNoAlternative(here, id('no guide'))).toBe("the host's rule: the backup costs too much");
    expect(asked.whyNoAlternative(here, id('no gate'))).toBe('it would get round a refusal: blocked');
    expect(asked.whyNoAlternative(here, id('in doubt'))).toBe('it may have taken effect already');
    expect(asked.whyNoAlternative(here, id('gives up'))).toBeUndefined();
  });

  it('R-3.8 which other call is to blame that a breaker kept it away, and does its reason say so?', () => {
    expect(asked.keptAwayBy(here, id('while open'))).toBe(`${id('opens it')} opened it`);
    expect(asked.keptAwayBy(here, id('while probed'))).toBe(`${id('probes it')} probes`);
    expect(asked.keptAwayBy(here, id('ordered away 1'))).toBe('an order');
    const ramping = Array.from({ length: 10 }, (_, n) => id(`while ramping ${n}`));
    const kept = ramping.filter((callId) => asked.keptAwayBy(here, callId) !== undefined);
    expect(kept.length).toBeGreaterThan(5);
    for (const callId of kept)
      expect(asked.keptAwayBy(here, callId)).toBe(`${id('probes it')} closed it 10 of 60000 ms ago`);
    const reasons = of(here, 'decision').filter((line) => kept.includes(text(line, 'callId')));
    for (const line of reasons) expect(text(line, 'reason')).toBe('the circuit breaker is ramping up');
  });

  it('R-4.3 was it silent, or slow?', () => {
    expect(asked.silentOrSlow(here, id('silent'))).toBe('silent for 500 ms');
    expect(asked.silentOrSlow(here, id('slow'))).toBe('slow: 2000 ms');
  });

  it('R-4.4 what did each node do that its deadline cut off?', () => {
    expect(asked.atDeadline(here, 'cut')).toEqual([
      'runs: ran for 1500 ms',
      'hooked: its hooks had it for 1500 ms',
      'next: not begun',
    ]);
  });

  it('R-4.7 why did a turn take longer than its time?', () => {
    expect(asked.stoodStill(here, 'held')).toEqual({ held: 120_000, took: 120_010 });
    expect(asked.stoodStill(here, 'cut')).toEqual({ held: 0, took: 1_500 });
  });

  it('R-9.4 who was given its result or its failure, and how old was that?', () => {
    expect(asked.givenTo([here, there], id('kept'))).toEqual([id('kept again'), id('kept there')]);
    expect(asked.rememberedFailure(here, id('fails again'))).toBe(`${id('fails')}, 1000 ms before`);
    expect(asked.rememberedFailure(here, id('kept again'))).toBeUndefined();
    expect(asked.keyHeld(here, id('kept'))).toEqual({ ms: 700, waited: 1 });
  });

  it('R-4.2 which calls ended since the layer was closed, and not by their callers?', () => {
    expect(asked.endedByClose(here)).toEqual([`${id('at the end')} may have run`]);
    const line = of(here, 'decision').find((one) => text(one, 'callId') === id('at the end'));
    expect(text(line, 'reason')).toBe('the call was canceled');
  });

  it('R-22.2 whose budget was too small for it, and after which call?', () => {
    expect(asked.budgetThatRefused(here, id('too dear'))).toBe(`tenant oslo: 0.2 of 2 usd left after ${id('dear')}`);
  });

  it('R-18.1 who looked into it, and who undid it?', () => {
    expect(asked.lookedInto(here, id('doubtful'))).toEqual(['ledger after 5000 ms: done']);
    const [booked = ''] = of(here, 'call_started').flatMap((line) =>
      text(line, 'toolName') === 'book' ? [text(line, 'callId')] : [],
    );
    expect(asked.undoneBy(here, booked)).toEqual(['unbook: 2 attempts']);
  });

  it('R-3.7 whose breaker is open still, and what did an order keep away?', () => {
    expect(asked.notClosed(here)).toEqual(['rates of zeta: open']);
    expect(asked.heldByOrder(here, 'rates')).toEqual(['5000 ms, 3 calls']);
  });

  it('R-2.2 was each wait the one that its policy gives?', () => {
    expect(asked.waitsOfPolicy(here, id('gives up'))).toEqual([true, true, true]);
  });

  it('R-7.3 since when does a tool fail, and for whom?', () => {
    expect(asked.lastGoodBefore(here, 'stream')).toBeGreaterThan(4_000);
    const counted = asked.failuresByTenant(here, 'search');
    expect(counted).toEqual({ 'acme: execution_error 404': CALLS / 50, 'nobody: execution_error 404': 2 });
    expect(asked.lastGoodBefore(here, 'summarize')).toBeUndefined();
  });

  it('R-11.1 which calls had another input, and what became of the one that a model knows?', () => {
    expect(asked.reworded(here)).toEqual([`${id('reworded')} by prepareCall`]);
    expect(asked.ofModelCall(here, 'toolu_1')).toEqual(['success']);
  });

  it('R-7.1 how long did each call wait for what: nothing is left over', () => {
    const ids = of(here, 'settled').flatMap((line) => (line['source'] === 'call' ? [text(line, 'callId')] : []));
    expect(ids.length).toBeGreaterThan(CALLS);
    const left = ids.filter((callId) => Math.abs(asked.unaccounted(here, callId)) > 0.01);
    expect(left).toEqual([]);
  });
});
