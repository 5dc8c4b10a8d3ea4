// Was: another process said that its breaker was closed while it refused. Now: each shows what all are in.
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore, type TraceEvent } from 'spillway';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { stateOf, world } from './shared-world.ts';

describe('R-3.10 each process shows what all are in', () => {
  it('R-3.10 state, state$, inspect(), breaker_changed, results and metrics of the one that refuses', async () => {
    const {
      layers: [a, b],
      dependency,
      runtime,
      call,
      open,
    } = world({ successThreshold: 1 });
    const events: TraceEvent[] = [];
    const states: string[] = [];
    b.trace$.subscribe((event) => events.push(event));
    b.breakers.get('t').state$.subscribe(({ type }) => states.push(type));
    const sink = prometheusSink({ tools: ['t'], runtime, inspect: () => b.inspect() });
    b.trace$.subscribe(sink);
    dependency.retryAfterMs = 5_000;
    await open(a);
    const result = b.execute({ toolName: 't' });
    await runtime.advance(0);
    expect(await result).toMatchObject({ status: 'circuit_open', error: { breakerState: 'open' } });
    expect(b.breakers.get('t').state).toEqual({ ...a.breakers.get('t').state });
    expect(b.breakers.get('t').state).toMatchObject({
      type: 'open',
      consecutiveFailures: 2,
      measured: 2,
      failures: 2,
      retryAfterMs: 5_000,
    });
    expect((await b.inspect()).breakers).toMatchObject([
      { toolName: 't', state: { type: 'open', retryAfterMs: 5_000 } },
    ]);
    expect(await sink.text()).toContain('spillway_tool_circuit_breaker_state{tool="t",state="open"} 1');
    dependency.up = true;
    await runtime.advance(5_000);
    expect(await call(a)).toBe('success');
    expect(states).toEqual(['closed', 'open', 'half_open', 'closed']);
    expect(events.flatMap((event) => (event.type === 'breaker_changed' ? [`${event.from} ${event.to}`] : []))).toEqual([
      'closed open',
      'open half_open',
      'half_open closed',
    ]);
  });

  it('R-3.10 inspect() asks, in a process that makes no call', async () => {
    const {
      layers: [a, b],
      dependency,
      runtime,
      call,
      open,
    } = world({ successThreshold: 1 }, () => ({ changes: undefined as never }));
    b.breakers.get('t');
    const shown = async (): Promise<unknown> => (await b.inspect()).breakers.map(({ state }) => state.type);
    await open(a);
    expect(await shown()).toEqual(['open']);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(a)).toBe('success');
    expect(await shown()).toEqual(['closed']);
  });

  it('R-3.10 what one process opened again while another was idle is no probe’s turn there', async () => {
    const {
      layers: [a, b],
      runtime,
      call,
      open,
      dependency,
    } = world({}, () => ({ changes: undefined as never }));
    await open(a);
    expect(await call(b)).toBe('circuit_open');
    await runtime.advance(1_000);
    expect(await call(a)).toBe('retriable_error');
    await runtime.advance(500);
    expect(stateOf(b)).toBe('half_open');
    expect([await call(b), stateOf(b)]).toEqual(['circuit_open', 'open']);
    expect(dependency.runs).toBe(3);
  });
});

describe('R-3.10 our own breaker shows a probe’s end before the others are told', () => {
  it('R-2.5 no retry follows a bad probe; the breaker is open when that is decided', async () => {
    let slow = false;
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    const compareAndSet: DedupeStore['compareAndSet'] = (key, version, outcome) => {
      const record = memory.compareAndSet(key, version, outcome);
      return slow ? firstValueFrom(runtime.after(500)).then(() => record) : record;
    };
    const execute = (): never => {
      // From here on the store takes its time: it hears of the end after the decision.
      slow = true;
      throw new Error('ECONNRESET');
    };
    const down = tool({
      name: 't',
      policy: { retry: { maxAttempts: 3 }, breaker: { failureThreshold: 1, cooldownMs: 1_000 } },
      execute,
    });
    const spillway = createSpillway({
      tools: [down],
      store: { ...memory, compareAndSet },
      runtime,
      shareBreakers: true,
    });
    const codes: string[] = [];
    spillway.trace$.subscribe((event) => event.type === 'decision' && codes.push(event.code));
    for (let round = 0; round < 2; round++) {
      const failing = spillway.execute({ toolName: 't' });
      await runtime.advance(0);
      expect((await failing).attempts).toBe(1);
      await runtime.advance(1_000);
      slow = false;
    }
    expect(codes).toEqual(['circuit_open', 'circuit_open']);
  });
});

describe('R-3.8 a person’s word, where breakers are shared', () => {
  it('R-3.8 an order to reset closes it for all, at their next call', async () => {
    const {
      layers: [a, b],
      runtime,
      dependency,
      open,
      call,
    } = world({});
    await open(a);
    expect(await call(b)).toBe('circuit_open');
    dependency.up = true;
    const order = b.orderBreakers('reset', { tool: 't' });
    await runtime.advance(0);
    await order;
    expect([await call(b), await call(a)]).toEqual(['success', 'success']);
  });

  it('R-3.8 forced open is this process’s own, and what was told of a probe meanwhile reaches the others', async () => {
    const {
      layers: [a, b],
      runtime,
      dependency,
      open,
      call,
    } = world({ successThreshold: 1 });
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 100 });
    const probe = a.execute({ toolName: 't' });
    await runtime.advance(1);
    a.breakers.get('t').forceOpen();
    await runtime.advance(100);
    expect((await probe).status).toBe('success');
    expect([await call(b, 100), await call(a), stateOf(a)]).toEqual(['success', 'circuit_open', 'forced_open']);
    a.breakers.get('t').reset();
    expect(await call(a, 100)).toBe('success');
  });
});

describe('R-3.10 a record that stands for what somebody had no time to say', () => {
  it('R-3.10 a process that died while it told of an outage told enough: open for its cooldown, then half-open', async () => {
    const {
      layers: [a, b],
      runtime,
      dependency,
      open,
      call,
    } = world({}, (memory) => ({
      compareAndSet: (key, version, outcome) => (died ? undefined : memory.compareAndSet(key, version, outcome)),
    }));
    let died = true;
    await open(a);
    died = false;
    expect([await call(b), stateOf(b)]).toEqual(['circuit_open', 'open']);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(b)).toBe('success');
  });

  it('R-3.10 a record that nobody can read is probed', async () => {
    const {
      layers: [a, b],
      store,
      dependency,
      open,
      call,
    } = world({ successThreshold: 1 });
    await open(a);
    const record = (await store.get('breaker:0:t'))?.record;
    for (const payload of ['', '{', '[]', '{"type":"open","sinceMs":"soon"}']) {
      const version = (await store.get('breaker:0:t'))?.record.version ?? 0;
      await store.compareAndSet('breaker:0:t', version, { state: 'done', ttlMs: 60_000, payload });
    }
    expect(record?.state).toBe('done');
    dependency.up = true;
    expect(await call(b)).toBe('success');
    expect(await store.get('breaker:0:t')).toBeUndefined();
  });
});
