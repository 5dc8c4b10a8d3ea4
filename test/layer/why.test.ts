import {
  createSpillway,
  tool,
  type Spillway,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { scriptedTool, virtualRuntime, type ScriptedStep, type VirtualRuntime } from 'spillway/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { envelope } from '../call/kit.ts';
import {
  breakerAt,
  breakerAtStart,
  budgetLeftAt,
  holderOf,
  keptAway,
  mayRunMs,
  mayRunTwice,
  policyOf,
  recoveryOf,
  resultFrom,
  retriesOf,
  timeOf,
  whoseLimit,
  whyAnother,
  whyNotRetried,
  whyRefused,
  type Trace,
} from './why-questions.ts';

const reset = (): Error => Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' });
const retry = { maxAttempts: 3, initialDelayMs: 100, multiplier: 2, jitterPercent: 0, maxTotalTimeMs: 60_000 } as const;
const COOLDOWN_MS = 5_000;
const BUDGET = 20;
const LEASE_MS = 9_000;

/** What one call asks of a tool that does what its input says. */
interface Order {
  /** Fails so often, then answers. */
  readonly fails?: number;
  readonly takesMs?: number;
  readonly error?: unknown;
  readonly hangs?: boolean;
}

/** A layer with several tools, what was asked of it, and what its tools saw: the answers are held against that. */
class Day {
  readonly runtime: VirtualRuntime = virtualRuntime({ seed: 7 });
  readonly events: TraceEvent[] = [];
  readonly results = new Map<string, ToolResultEnvelope>();
  /** The names of calls by their ids, and when each tool was started and aborted for which. */
  readonly runs: Array<{ readonly tool: string; readonly order: string; readonly atMs: number; abortedAtMs?: number }> =
    [];
  readonly orders = new Map<string, Order>();
  readonly spillway: Spillway;

  constructor() {
    const read = (policy: ToolPolicy = {}): ToolPolicy => ({ effects: 'read', retry, timeoutMs: 1_000, ...policy });
    const ticket = tool({
      name: 'ticket',
      input: z.object({ seat: z.number() }),
      policy: read(),
      execute: ({ seat }) => seat,
    });
    const tools = [
      this.#tool('search', read()),
      this.#tool('book', { effects: 'mutating', retry, timeoutMs: 500 }),
      this.#tool(
        'prices',
        read({
          retry: { ...retry, maxAttempts: 1 },
          breaker: { failureThreshold: 4, failureRate: Infinity, cooldownMs: COOLDOWN_MS, successThreshold: 1 },
        }),
      ),
      this.#tool('seats', read({ retry: { ...retry, maxAttempts: 1 }, alternatives: ['seats_copy'], breaker: false })),
      this.#tool('seats_copy', read({ breaker: false })),
      this.#tool('pay', {
        effects: 'mutating',
        enforcesKey: true,
        retry,
        timeoutMs: 4_000,
        dedupe: { leaseMs: LEASE_MS },
      }),
      this.#tool('report', read({ retry: { ...retry, maxAttempts: 2 }, breaker: false })),
      ticket,
    ];
    const breakerKey = ({ name }: { readonly name: string }): string => (name === 'prices' ? 'fares.example' : name);
    this.spillway = createSpillway({
      runtime: this.runtime,
      tools,
      breakerKey,
      retryBudget: { ratio: 0, minPerSecond: BUDGET / 10, windowMs: 10_000 },
    });
    // As a file has it: what JSON cannot say is lost.
    this.spillway.trace$.subscribe((event) => this.events.push(JSON.parse(JSON.stringify(event)) as TraceEvent));
  }

  #tool(name: string, policy: ToolPolicy): ReturnType<typeof scriptedTool> {
    const script = (
      input: unknown,
      { attempt, signal }: { readonly attempt: number; readonly signal: AbortSignal },
    ): ScriptedStep => {
      const { order } = input as { readonly order: string };
      const { fails = 0, takesMs = 10, error = reset(), hangs = false } = this.orders.get(order) ?? {};
      const run: Day['runs'][number] = { tool: name, order, atMs: this.runtime.now() };
      this.runs.push(run);
      signal.addEventListener('abort', () => (run.abortedAtMs = this.runtime.now()));
      const isAlternative = name === 'seats_copy';
      return {
        afterMs: takesMs,
        ...(hangs ? { hangs } : {}),
        ...(attempt <= fails && !isAlternative ? { error } : { value: order }),
      };
    };
    return scriptedTool({ name, policy, script }, this.runtime.scheduler);
  }

  /** Begins a call by a name of ours, under which its result is found. */
  begin(order: string, toolName: string, what: Order = {}, more: Partial<ToolCallRequest> = {}): void {
    this.orders.set(order, what);
    this.#take(order, { toolName, input: { order }, ...more });
  }

  beginEnvelope(order: string, toolName: string, what: Order, parts: Partial<ToolCallEnvelope>): void {
    this.orders.set(order, what);
    this.#take(order, envelope(toolName, { requestId: `id of ${order}`, ...parts }));
  }

  #take(order: string, request: ToolCallRequest | ToolCallEnvelope): void {
    void this.spillway.execute(request).then((result) => this.results.set(order, result));
  }

  result(order: string): ToolResultEnvelope {
    const result = this.results.get(order);
    if (result === undefined) throw new Error(`${order} has not settled`);
    return result;
  }

  id(order: string): string {
    return this.result(order).requestId;
  }

  runsOf(order: string): Day['runs'] {
    return this.runs.filter((run) => run.order === order);
  }

  pass(ms: number): Promise<void> {
    return this.runtime.advance(ms);
  }
}

const payload = (order: string, callHints: { readonly timeoutMs?: number } = {}): Partial<ToolCallEnvelope> => ({
  payload: { version: '1.0', params: { order }, callHints },
  transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 1, maxElapsedMs: 60_000 } },
});

/** Some hundred calls: good ones all along, and one thing after the other that goes wrong. */
const lived = async (): Promise<{ readonly day: Day; readonly openUntilMs: number; readonly openedAtMs: number }> => {
  const day = new Day();
  // 60 that go well, at the first attempt or after one or two retries.
  for (let n = 0; n < 60; n++) {
    day.begin(
      `good ${n}`,
      'search',
      { fails: n % 6 === 0 ? (n % 12 === 0 ? 2 : 1) : 0, takesMs: 5 + (n % 7) },
      n % 5 === 0 ? { tenant: `tenant ${n % 3}` } : {},
    );
    await day.pass(400);
  }
  day.begin('refused for good', 'search', {
    fails: 9,
    error: Object.assign(new Error('no such place'), { status: 404 }),
  });
  day.begin('doubtful', 'book', { hangs: true });
  day.begin('exhausted', 'report', { fails: 9 });
  day.begin('misfit', 'ticket');
  day.begin('elsewhere', 'seats', { fails: 9 });
  await day.pass(2_000);
  day.beginEnvelope('short of time', 'search', { hangs: true }, payload('short of time', { timeoutMs: 300 }));
  day.beginEnvelope(
    'out of time',
    'search',
    { hangs: true },
    { ...payload('out of time'), control: { deadlineAtMs: day.runtime.wallNow() + 200 } },
  );
  await day.pass(2_000);
  day.begin('paid', 'pay', { takesMs: 700 }, { idempotencyKey: 'order 7', session: 's' });
  await day.pass(100);
  day.begin('paid twice', 'pay', {}, { input: { order: 'paid' }, idempotencyKey: 'order 7', session: 's' });
  await day.pass(2_000);
  day.begin('paid later', 'pay', {}, { input: { order: 'paid' }, idempotencyKey: 'order 7', session: 's' });
  day.begin('paid otherwise', 'pay', {}, { idempotencyKey: 'order 7', session: 's' });
  await day.pass(10_000);
  // An outage of `prices`: four failures open its breaker, ten calls are kept away, then it is well again.
  for (let n = 0; n < 4; n++) {
    day.begin(`outage ${n}`, 'prices', { fails: 9 });
    await day.pass(50);
  }
  const { retryAfterMs = NaN } = day.spillway.breakers.get('fares.example').state;
  const openUntilMs = day.runtime.now() + retryAfterMs;
  for (let n = 0; n < 10; n++) {
    day.begin(`kept away ${n}`, 'prices');
    await day.pass(100);
  }
  await day.pass(COOLDOWN_MS);
  day.begin('probe', 'prices');
  await day.pass(50);
  day.begin('well again', 'prices');
  await day.pass(15_000);
  // More failures at once than the budget has retries for.
  for (let n = 0; n < BUDGET + 5; n++) day.begin(`flood ${n}`, 'report', { fails: 9 });
  await day.pass(60_000);
  return { day, openUntilMs, openedAtMs: openUntilMs - COOLDOWN_MS };
};

describe('R-7.1 a trace of a hundred calls answers why', () => {
  let day: Day;
  let trace: Trace;
  let openUntilMs: number;
  let openedAtMs: number;
  beforeAll(async () => {
    ({ day, openUntilMs, openedAtMs } = await lived());
    trace = day.events;
  });

  it('R-7.1 of all of them, and every one has settled', () => {
    expect(day.results.size).toBe(day.orders.size);
    expect(day.results.size).toBeGreaterThanOrEqual(100);
  });

  it.each([
    ['refused for good', { code: 'permanent', made: 1, allowed: 3 }],
    ['doubtful', { code: 'uncertain_mutation', made: 1, allowed: 3 }],
    ['exhausted', { code: 'attempts_exhausted', made: 2, allowed: 2 }],
    ['kept away 3', { code: 'circuit_open', made: 0, allowed: 1 }],
    [`flood ${BUDGET + 1}`, { code: 'budget_exhausted', made: 1, allowed: 2 }],
    ['good 1', undefined],
  ])('R-2.5 why was “%s” not retried?', (order, why) => {
    expect(whyNotRetried(trace, day.id(order))).toEqual(why);
    if (why !== undefined) expect(day.runsOf(order)).toHaveLength(why.made);
  });

  it('R-2.1 after what was a call retried, and after how long?', () => {
    expect(retriesOf(trace, day.id('good 12'))).toEqual([
      { attempt: 1, kind: 'transport_error', delayMs: 100 },
      { attempt: 2, kind: 'transport_error', delayMs: 200 },
    ]);
    for (const { requestId, retriedBy = [] } of day.results.values()) {
      expect(
        retriesOf(trace, requestId)
          .slice(0, retriedBy.length)
          .map(({ attempt, delayMs }) => [attempt, delayMs]),
      ).toEqual(retriedBy.map(({ attempt, delayMs }) => [attempt, delayMs]));
    }
  });

  it('R-4.1 how long may attempt 2 run, and how long an attempt whose caller is in a hurry?', () => {
    expect(mayRunMs(trace, day.id('good 12'), 2)).toBe(1_000);
    expect(mayRunMs(trace, day.id('doubtful'), 1)).toBe(500);
    expect(mayRunMs(trace, day.id('short of time'), 1)).toBe(300);
    expect(mayRunMs(trace, day.id('out of time'), 1)).toBe(200);
    // It is so: each was aborted at that very instant.
    for (const order of ['doubtful', 'short of time', 'out of time']) {
      const [run] = day.runsOf(order);
      expect((run?.abortedAtMs ?? NaN) - (run?.atMs ?? NaN), order).toBe(mayRunMs(trace, day.id(order), 1));
    }
  });

  it('R-4.1 whose limit cut an attempt off?', () => {
    expect(
      ['doubtful', 'short of time', 'out of time', 'good 12'].map((order) => whoseLimit(trace, day.id(order))),
    ).toEqual(['tool', 'caller', 'deadline', undefined]);
  });

  it('R-3.4 until when was the breaker of prices open, which call opened it, and by what failure?', () => {
    const { seq } = trace.find((event) => event.source === 'call' && event.callId === day.id('kept away 9')) ?? {
      seq: NaN,
    };
    const { state, untilMs, by, after } = breakerAt(trace, { key: 'fares.example', seq });
    expect({ state, untilMs, by }).toEqual({ state: 'open', untilMs: openUntilMs, by: day.id('outage 3') });
    expect(after).toMatchObject({ kind: 'transport_error', code: 'ECONNRESET' });
    expect(untilMs).toBe(openedAtMs + (policyOf(trace, 'prices')?.breaker?.cooldownMs ?? NaN));
    expect(breakerAt(trace, { key: 'fares.example' }).state).toBe(
      day.spillway.breakers.get('fares.example').state.type,
    );
    expect(breakerAt(trace, { key: 'search', tenant: 'tenant 1' })).toEqual({ state: 'closed' });
  });

  it('R-3.8 why was a call refused without an attempt?', () => {
    expect(whyRefused(trace, day.id('kept away 0'))).toMatchObject({ kind: 'circuit_open', since: day.id('outage 3') });
    expect(whyRefused(trace, day.id('misfit'))).toMatchObject({
      kind: 'invalid_parameters',
      message: expect.stringContaining('seat') as string,
    });
    expect(whyRefused(trace, day.id('paid otherwise'))).toMatchObject({ kind: 'conflict' });
    expect(whyRefused(trace, day.id('good 1'))).toBeUndefined();
  });

  it('R-3.8 which calls were kept away from prices?', () => {
    expect(keptAway(trace, 'fares.example')).toEqual(Array.from({ length: 10 }, (_, n) => day.id(`kept away ${n}`)));
    expect(keptAway(trace, 'search')).toEqual([]);
  });

  it('R-3.7 which breaker guarded a call, and how did it stand when that began?', () => {
    const stood = ['outage 0', 'kept away 0', 'probe', 'well again', 'good 1', 'elsewhere'].map((order) =>
      breakerAtStart(trace, day.id(order)),
    );
    expect(stood).toEqual([
      'fares.example closed',
      'fares.example open',
      'fares.example half_open',
      'fares.example closed',
      'search closed',
      undefined,
    ]);
  });

  it('R-3.5 which call probed, and which closed the breaker?', () => {
    expect(recoveryOf(trace, 'fares.example')).toEqual({ firstProbe: day.id('probe'), closedBy: day.id('probe') });
  });

  it('R-9.4 who holds the key that a call waits for, and until when?', () => {
    const [run] = day.runsOf('paid');
    expect(holderOf(trace, day.id('paid twice'))).toEqual({
      callId: day.id('paid'),
      untilMs: (run?.atMs ?? NaN) + LEASE_MS,
    });
    expect(holderOf(trace, day.id('paid'))).toBeUndefined();
  });

  it('R-9.2 whose result did a call get?', () => {
    expect(['paid twice', 'paid later', 'paid'].map((order) => resultFrom(trace, day.id(order)))).toEqual([
      day.id('paid'),
      day.id('paid'),
      undefined,
    ]);
    expect(day.runs.filter((run) => run.tool === 'pay')).toHaveLength(1);
  });

  it('R-2.6 how much of the retry budget was left?', () => {
    const left = Array.from({ length: BUDGET + 5 }, (_, n) => {
      const id = day.id(`flood ${n}`);
      const first = trace.find((event) => event.source === 'call' && event.callId === id && event.type === 'decision');
      return first?.type === 'decision' ? first.budgetLeft : undefined;
    });
    // Each retry that is ordered takes one of them; nothing else has been retried for ten seconds.
    expect(left).toEqual(Array.from({ length: BUDGET + 5 }, (_, n) => Math.max(0, BUDGET - n)));
    expect(budgetLeftAt(trace, day.id(`flood ${BUDGET + 1}`))).toBe(0);
    expect(budgetLeftAt(trace, day.id('good 1'))).toBeUndefined();
  });

  it('R-6.2 why did another tool answer?', () => {
    expect(whyAnother(trace, day.id('elsewhere'))).toEqual({
      from: 'seats',
      to: 'seats_copy',
      kind: 'transport_error',
      isDeclared: true,
    });
    expect(day.result('elsewhere')).toMatchObject({ status: 'success', toolName: 'seats_copy' });
    expect(whyAnother(trace, day.id('exhausted'))).toBeUndefined();
  });

  it('R-7.1 what was a call’s time spent on?', () => {
    expect(timeOf(trace, day.id('good 12'))).toEqual({ attemptsMs: 30, waitsMs: 300, totalMs: 330 });
    for (const { requestId, durationMs } of day.results.values())
      expect(timeOf(trace, requestId).totalMs).toBe(durationMs);
  });

  it('R-7.1 which policy was in force?', () => {
    expect(policyOf(trace, 'prices')).toMatchObject({
      timeoutMs: 1_000,
      retry: { ...retry, maxAttempts: 1, strategy: 'exponential', maxDelayMs: 800 },
      breaker: { failureThreshold: 4, cooldownMs: COOLDOWN_MS, windowSize: 20, probes: 1, successThreshold: 1 },
      alternatives: [],
    });
    // A rule that is off is not there, instead of `null`.
    expect(policyOf(trace, 'prices')?.breaker).not.toHaveProperty('failureRate');
    expect(policyOf(trace, 'seats')).not.toHaveProperty('breaker');
    expect(policyOf(trace, 'pay')).toMatchObject({
      enforcesKey: true,
      dedupe: { leaseMs: LEASE_MS, scope: 'session' },
    });
    expect(policyOf(trace, 'unknown')).toBeUndefined();
  });

  it('R-2.5 which tools may be run twice?', () => {
    expect(mayRunTwice(trace)).toEqual(['search', 'seats_copy', 'report', 'ticket']);
  });
});
