import { describe, expect, it } from 'vitest';
import {
  createSpillway,
  tool,
  type Spillway,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { asked } from './tr-02-stores.ts';

const COOLDOWN_MS = 30_000;

/** A tool that is down until it is told otherwise; each call is one attempt, and not deduped. */
const world = (policy: ToolPolicy = {}) => {
  const runtime: VirtualRuntime = virtualRuntime();
  const state = { up: false, runs: 0 };
  const events: TraceEvent[] = [];
  const flaky = tool({
    name: 't',
    policy: { effects: 'mutating', ...policy },
    execute: () => {
      state.runs++;
      if (!state.up) throw Object.assign(new Error('unavailable'), { status: 503 });
      return 'ok';
    },
  });
  const layer: Spillway = createSpillway({ tools: [flaky], runtime });
  layer.trace$.subscribe((event) => events.push(event));
  const call = async (maxAttempts = 1): Promise<ToolResultEnvelope> => {
    const result = layer.execute({
      ...asked({ mode: 'disabled' }),
      transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts, maxElapsedMs: 60_000 } },
    });
    await runtime.advance(maxAttempts === 1 ? 0 : 1_000);
    return result;
  };
  const breaker = (): string => layer.breakers.get('t').state.type;
  const changes = (): string[] =>
    events.flatMap((event) => (event.type === 'breaker_changed' ? [`${event.from} ${event.to}`] : []));
  const opened = async (): Promise<void> => {
    for (let failure = 0; failure < 5; failure++) await call();
  };
  return { runtime, state, layer, call, breaker, changes, opened, events };
};

describe('TR-8 consecutive failures open the breaker', () => {
  it('TR-8 five failing mutations: open, and the next call fails fast without the tool', async () => {
    const { state, call, breaker, opened, changes } = world();
    await opened();
    expect([breaker(), state.runs, changes()]).toEqual(['open', 5, ['closed open']]);
    const tookMs: number[] = [];
    let rejected = await call();
    // The least of a few: the machine may be busy with something else.
    for (let times = 0; times < 12; times++) {
      const startedMs = performance.now();
      rejected = await call();
      tookMs.push(performance.now() - startedMs);
    }
    expect(Math.min(...tookMs)).toBeLessThan(10);
    expect(rejected).toMatchObject({
      status: 'circuit_open',
      attempts: 0,
      durationMs: 0,
      error: { code: 'circuit_open', breakerState: 'open' },
    });
    // The tool would be well again, and is not asked.
    state.up = true;
    expect((await call()).status).toBe('circuit_open');
    expect(state.runs).toBe(5);
  });

  it('TR-8 four and a success in between do not open it', async () => {
    const { state, call, breaker } = world();
    for (const up of [false, false, false, false, true, false, false, false, false]) {
      state.up = up;
      await call();
    }
    expect(breaker()).toBe('closed');
  });
});

describe('TR-9 recovery after the cooldown', () => {
  it('TR-9 half-open, two good probes, closed; and calls are as quick as before', async () => {
    const { runtime, state, call, breaker, opened, changes } = world();
    await opened();
    state.up = true;
    await runtime.advance(COOLDOWN_MS - 1);
    expect((await call()).status).toBe('circuit_open');
    await runtime.advance(1);
    expect(breaker()).toBe('half_open');
    expect((await call()).status).toBe('success');
    expect(breaker()).toBe('half_open');
    expect((await call()).status).toBe('success');
    expect(breaker()).toBe('closed');
    for (let n = 0; n < 50; n++) expect(await call()).toMatchObject({ status: 'success', durationMs: 0, attempts: 1 });
    expect(changes()).toEqual(['closed open', 'open half_open', 'half_open closed']);
  });
});

describe('TR-10 a probe that fails', () => {
  it('TR-10 open again, the cooldown starts anew, and one more probe closes nothing by itself', async () => {
    const { runtime, state, call, breaker, opened } = world();
    await opened();
    await runtime.advance(COOLDOWN_MS);
    expect((await call()).status).toBe('retriable_error');
    expect(breaker()).toBe('open');
    state.up = true;
    await runtime.advance(COOLDOWN_MS - 1);
    expect((await call()).status).toBe('circuit_open');
    await runtime.advance(1);
    expect([(await call()).status, (await call()).status]).toEqual(['success', 'success']);
    expect(breaker()).toBe('closed');
    expect(state.runs).toBe(5 + 1 + 2);
  });

  it('TR-10 a good probe before the bad one counts no more', async () => {
    const { runtime, state, call, breaker, opened } = world();
    await opened();
    await runtime.advance(COOLDOWN_MS);
    for (const up of [true, false]) {
      state.up = up;
      await call();
    }
    await runtime.advance(COOLDOWN_MS);
    state.up = true;
    await call();
    expect(breaker()).toBe('half_open');
  });
});

describe('TR-11 breaker and retries together', () => {
  it('TR-11 a call whose failures open the breaker stops retrying, and says why', async () => {
    const { state, call, breaker, events } = world({
      retry: { strategy: 'constant', initialDelayMs: 10, jitterPercent: 0 },
    });
    const result = await call(50);
    expect(result).toMatchObject({ status: 'retry_exhausted', attempts: 5 });
    expect([state.runs, breaker()]).toEqual([5, 'open']);
    expect(events.filter((event) => event.type === 'decision').map(({ code }) => code)).toEqual([
      'transient',
      'transient',
      'transient',
      'transient',
      'circuit_open',
    ]);
  });

  it('TR-11 no retry while it is open: no storm during an outage of five minutes', async () => {
    const { runtime, state, call, opened } = world({
      retry: { strategy: 'constant', initialDelayMs: 10, jitterPercent: 0 },
    });
    await opened();
    const before = state.runs;
    for (let second = 0; second < 300; second++) {
      expect(['circuit_open', 'retriable_error']).toContain((await call(1)).status);
      await runtime.advance(1_000);
    }
    // One probe for each cooldown.
    expect(state.runs - before).toBeLessThanOrEqual(10);
  });

  it('TR-11 a probe of a half-open breaker is retried only as far as the breaker lets it', async () => {
    const { runtime, state, call, breaker, opened } = world({
      retry: { strategy: 'constant', initialDelayMs: 10, jitterPercent: 0 },
    });
    await opened();
    await runtime.advance(COOLDOWN_MS);
    expect((await call(10)).attempts).toBe(1);
    expect([state.runs, breaker()]).toEqual([6, 'open']);
  });
});
