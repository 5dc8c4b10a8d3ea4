import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ndjsonSink } from 'spillway/sinks/ndjson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doubts, keys, outage, storm, turns } from './audit-incidents.ts';
import { fileOf, of, text, type File } from './audit-lines.ts';
import * as asked from './audit-questions.ts';
import { Audit, drawn, traffic } from './audit-world.ts';

const CALLS = 10_000;
const SEED = 20_261_124;

describe('R-7.1 a file of ten thousand calls answers an auditor', { timeout: 300_000 }, () => {
  let audit: Audit;
  let east: File;
  let west: File;
  let folder: string;
  let texts: string[];
  let names: ReadonlyMap<string, string>;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spillway-audit-'));
    audit = new Audit(SEED);
    const draw = drawn(SEED);
    const paths = ['east', 'west'].map((name) => join(folder, `${name}.ndjson`));
    const { runtime } = audit;
    const files = await Promise.all(paths.map((path) => ndjsonSink(path, { maxWaitingBytes: 2 ** 28, runtime })));
    for (const [index, layer] of [audit.east, audit.west].entries())
      layer.trace$.subscribe((event) => files[index]?.next(event));
    await traffic(audit, CALLS / 2, draw);
    for (const happens of [doubts, outage, keys, storm, turns]) await happens(audit);
    await traffic(audit, CALLS / 2, draw);
    await Promise.all([audit.east.close(), audit.west.close()]);
    await audit.pass(1);
    await Promise.all(files.map((file) => file.close()));
    texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
    [east, west] = texts.map(fileOf) as [File, File];
    const ranFor = Map.groupBy(audit.runs, ({ tool, order }) => `${tool} ${order}`);
    runs = new Map([...ranFor].map(([what, { length }]) => [what, length]));
    names = new Map([...audit.results].map(([order, { requestId }]) => [requestId, order]));
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const name = (callId: string | undefined): string | undefined => names.get(callId ?? '');
  let runs: ReadonlyMap<string, number>;
  const ran = (tool: string, order: string): number => runs.get(`${tool} ${order}`) ?? 0;

  it('R-7.1 is the file whole?', () => {
    expect(of(east, 'settled').length).toBeGreaterThanOrEqual(CALLS);
    expect([asked.isWhole(east), asked.isWhole(west)]).toEqual([
      [0, 0, true],
      [0, 0, true],
    ]);
    const [whole = ''] = texts;
    const lines = whole.split('\n');
    expect(asked.isWhole(fileOf([...lines.slice(0, 70), ...lines.slice(73, -3)].join('\n')))).toEqual([3, 0, false]);
  });

  it('R-2.5 was an effect possibly made twice, and who allowed it?', () => {
    expect(asked.possiblyTwice(east).map(name)).toEqual(['twice']);
    expect([ran('pay', 'twice'), ran('pay', 'once'), ran('wire', 'wired'), ran('refund', 'refunded')]).toEqual([
      2, 1, 2, 1,
    ]);
    expect(asked.whoAllowedIt(east, audit.id('twice'))).toBe('its caller, agent clerk');
    expect(asked.whoAllowedIt(east, audit.id('once'))).toBe('nobody');
  });

  it('R-1.4 which rule classified the error?', () => {
    expect(asked.whichRule(east, audit.id('is 503'))).toBe('permanent by override, as the tool says');
    expect(asked.whichRule(east, audit.id('is 503 elsewhere'))).toBe('transient by status');
  });

  it('R-3.10 did a call, an order, time, or another process change the breaker, and until when is it open?', () => {
    expect(asked.openings(west, 'rates')).toEqual([
      'closed to open by a call for 5000 ms',
      'open to half_open by time',
      'half_open to open by another process for 10000 ms',
      'open to half_open by time',
      'half_open to closed by another process',
    ]);
    expect(asked.openings(east, 'rates')).toEqual([
      expect.stringMatching(/^closed to open by another process for \d{4} ms$/) as string,
      'open to half_open by a call',
      'half_open to open by a call for 10000 ms',
      'open to half_open by a call',
      'half_open to closed by a call',
      'closed to forced_open by an order',
      'forced_open to closed by an order',
    ]);
  });

  it('R-3.10 which call of the other process opened it?', () => {
    expect(name(asked.openedElsewhere(east, [west], 'rates'))).toBe('rates 3');
  });

  it('R-7.1 which policy was in force, also of a plan’s own tool; were its effects said or presumed?', () => {
    expect(asked.inForce(east, 'errand')).toBe('mutating; 1 attempts of 700 ms');
    expect(asked.inForce(east, 'unsaid')).toBe('read, presumed; 3 attempts of 5000 ms');
    expect(asked.inForce(east, 'search')).toBe('read; 3 attempts of 5000 ms');
    // Told once, and not with each call.
    expect(of(east, 'call_started').filter((line) => 'tool' in line)).toHaveLength(1);
  });

  it('R-9.4 which call led to the result that another process was given?', () => {
    expect(asked.leaderOf({ east, west }, audit.id('follower'))).toBe(`${audit.id('shared')} in west: success`);
    expect(ran('wire', 'shared')).toBe(1);
  });

  it('R-9.6 whose key was taken over, and when?', () => {
    const [loser, became, lateMs] = asked.tookOver([east, west], audit.id('successor')) ?? [];
    expect([name(loser), became]).toEqual(['left behind', 'it was not heard of']);
    // Two clocks of other kinds would be years apart; a busy machine is late by seconds.
    expect(Math.abs(lateMs ?? NaN)).toBeLessThan(10_000);
  });

  it('R-9.5 who used the key first that a call was refused for?', () => {
    expect(name(asked.firstUser([east, west], audit.id('conflicting')))).toBe('shared');
  });

  it('R-2.6 how many calls were not tried again since retries were used up, and how many had been?', () => {
    const { calls, allowedBefore } = asked.refusedForBudget(east);
    expect(calls).toBe(20);
    expect(ran('search', 'storm')).toBe(20 + allowedBefore);
  });

  it('R-2.6 which tenant made the retries?', () => {
    const counts = asked.retriesByTenant(east);
    const again: Record<string, number> = {};
    for (const [order, tenant] of audit.tenants) again[tenant] = (again[tenant] ?? 0) + ran('search', order) - 1;
    again['calm'] = (again['calm'] ?? 0) + ran('search', 'storm') - 20;
    expect(counts).toMatchObject(again);
    expect(counts['loud']).toBeGreaterThan(2 * (counts['still'] ?? 0));
  });

  it('R-2.4 was each wait kept that a server asked for, and who gave up for it?', () => {
    const { kept, broken, tooLong } = asked.hints(east);
    expect([kept, broken, tooLong.map(name)]).toEqual([1, [], ['hinted too long']]);
  });

  it('R-22.1 what did each person approve or deny, and what came of it?', () => {
    expect(asked.decidedBy(east, 'Ada')).toEqual(['approved after 3000 ms: success, ran 1 times']);
    expect(asked.decidedBy(east, 'Grace')).toEqual([
      'approved after 3000 ms: success, ran 1 times',
      'denied after 3000 ms: error, ran 0 times',
    ]);
  });

  it('R-11.1 what did it wait for before anything ran: hooks that let it pass, or a person?', () => {
    expect(asked.beforeItRan(east, audit.id('screened'))).toEqual({ hooks: 4_000, person: 0, rest: 0 });
    expect(asked.beforeItRan(east, audit.id('screened again'))).toEqual({ hooks: 4_000, person: 0, rest: 0 });
    expect(asked.beforeItRan(east, audit.id('wipe a'))).toEqual({ hooks: 0, person: 3_000, rest: 0 });
    expect(of(east, 'settled').filter((line) => 'hooksMs' in line)).toHaveLength(2);
  });

  it('R-4.1 whose limit cut it off?', () => {
    expect(asked.cutOffBy(east, audit.id('hurried'))).toBe('its caller, who gives it 1500 of 5000 ms');
    expect(asked.cutOffBy(east, audit.id('once'))).toBe('its tool: 1000 ms');
    expect(asked.cutOffBy(east, audit.id('is 503'))).toBe('neither');
  });

  it('R-11.2 what would have been done to a tool that is only watched, and what did callers get?', () => {
    expect(asked.watched(east, 'trial')).toEqual([
      'would retry (transport_error), gave retriable_error',
      'would time_out (timeout), gave success',
    ]);
  });

  it('R-7.1 how many attempts at a tool ran at a time?', () => {
    // That of a cut-off process ran in the west.
    const here = audit.runs.filter(({ tool, endMs }) => tool === 'search' && endMs !== Infinity);
    const moves = here.flatMap(({ atMs, endMs }) => [[atMs, 1] as const, [endMs, -1] as const]);
    let running = 0;
    const most = Math.max(...moves.toSorted(([a, x], [b, y]) => a - b || x - y).map(([, move]) => (running += move)));
    expect(asked.atOnce(east, 'search')).toBe(most);
    expect(most).toBe(100);
  });

  it('R-5.2 how long did node B wait for A?', () => {
    expect(asked.heldUpBy(east, 'waits', 'B')).toEqual([
      ['A', 2_500],
      ['X', 300],
    ]);
  });

  it('R-5.3 why did the turn end with a part, and where does a default stand in?', () => {
    expect(asked.whyPartial(east, 'part')).toEqual([
      'weather failed: execution_error 404',
      'photo failed: execution_error 404',
      'album skipped: without photo',
      'plan defaulted: without weather',
    ]);
  });

  it('R-7.1 of a file that was cut off: what was running, and what may it have done?', () => {
    expect([asked.leftOpen(east), asked.leftOpen(west)]).toEqual([[], []]);
    const cutAfter = (whole: string, fragment: string): File => {
      const from = whole.indexOf(fragment);
      return fileOf(whole.slice(0, whole.indexOf('\n', from)));
    };
    const [ofEast = '', ofWest = ''] = texts;
    const wired = cutAfter(ofEast, `"callId":"${audit.id('wired')}","toolName":"wire","type":"attempt_started"`);
    expect(asked.leftOpen(wired)).toEqual([
      'mutating, may have run',
      'mutating, may have run, its key is free 120000 ms after it stopped',
    ]);
    const west1 = cutAfter(ofWest, `"callId":"${audit.id('left behind')}","toolName":"search","type":"dedupe"`);
    expect(asked.leftOpen(west1)).toEqual(['read, did not run, its key is free 120000 ms after it stopped']);
  });

  it('R-7.1 at what time of the day did the breaker open?', () => {
    const [opened] = of(west, 'breaker_changed');
    const run = audit.runs.find(({ order }) => order === 'rates 3');
    const offsetMs = audit.runtime.wallNow() - audit.runtime.now();
    const told = opened === undefined ? '' : asked.timeOf(west, opened);
    expect(text(opened, 'to')).toBe('open');
    expect(told).toBe(new Date(offsetMs + (run?.atMs ?? NaN)).toISOString());
  });
});
