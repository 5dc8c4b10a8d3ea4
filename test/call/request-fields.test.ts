import { createSpillway, type ToolCallEnvelope, type ToolCallRequest, type ToolContext } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { handClock, permanent, transient } from '../support.ts';
import { World, answers, envelope, fails, hangs, noBackoff, noJitter, once } from './kit.ts';

describe('R-8.3 no field is decoration', () => {
  it(
    'R-8.3 deadlineAtMs ends the call at that instant, and aborts its attempt',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [hangs]);
      const result = world.call(world.layer([tried]), envelope('slow', { control: { deadlineAtMs: 250 } }));
      expect(result).toMatchObject({
        status: 'timeout',
        durationMs: 250,
        attempts: 1,
        error: { code: 'deadline_exceeded', terminal: false },
      });
      expect(tried.aborts).toStrictEqual([250]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it('R-8.3 deadlineAtMs is wall time, read once: a clock that jumps later moves nothing', () => {
    const clock = handClock();
    const layer = createSpillway({
      runtime: clock.runtime,
      tools: [{ name: 'slow', execute: () => new Promise(() => undefined) }],
    });
    let ended = false;
    layer
      .call(envelope('slow', { control: { deadlineAtMs: clock.runtime.wallNow() + 250 } }))
      .subscribe({ complete: () => (ended = true) });
    clock.jumpWall(3_600_000);
    clock.pass(249);
    expect(ended).toBe(false);
    clock.pass(1);
    expect(ended).toBe(true);
  });

  it(
    'R-8.3 a deadline that has passed: no attempt',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [answers(1)]);
      expect(world.call(world.layer([tried]), envelope('slow', { control: { deadlineAtMs: 0 } }))).toMatchObject({
        attempts: 0,
        error: { code: 'deadline_exceeded' },
      });
    }),
  );

  it(
    'R-4.2 leaves no timer once the call has ended',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('quick', [answers(5)])]);
      let timers = NaN;
      world.watch(layer.call(envelope('quick', { control: { deadlineAtMs: 60_000 } })));
      world.at(6, () => (timers = world.runtime.timers));
      world.flush();
      // The timer of this test itself is under way.
      expect(timers).toBe(1);
      expect(world.runtime.now()).toBe(6);
    }),
  );

  it(
    'R-8.3 no retry waits past it',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flaky', [fails(5, transient)], { retry: noJitter });
      expect(world.call(world.layer([tried]), envelope('flaky', { control: { deadlineAtMs: 300 } }))).toMatchObject({
        attempts: 2,
        durationMs: 110,
        status: 'retry_exhausted',
      });
    }),
  );

  it(
    'R-8.3 a result at the instant of the deadline beats it',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [answers(250)])]);
      expect(world.call(layer, envelope('slow', { control: { deadlineAtMs: 250 } })).status).toBe('success');
    }),
  );

  it(
    'R-8.3 retryBudget replaces the tool’s attempts and total time, up and down',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flaky', [fails(100, transient)], { retry: { ...noBackoff, maxAttempts: 3 } });
      const layer = world.layer([tried]);
      const budget = (maxAttempts: number, maxElapsedMs: number): number =>
        world.call(
          layer,
          envelope('flaky', { transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts, maxElapsedMs } } }),
        ).attempts;
      layer.breakers.get('flaky').disable();
      expect(budget(1, 10_000)).toBe(1);
      expect(budget(6, 10_000)).toBe(6);
      expect(budget(6, 250)).toBe(3);
      expect(budget(6, 0)).toBe(1);
    }),
  );

  it(
    'R-8.3 callHints.timeoutMs shortens the attempt’s timeout, never lengthens it',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [hangs], { timeoutMs: 200, retry: once });
      const layer = world.layer([tried]);
      const hint = (timeoutMs: number): unknown =>
        world.call(
          layer,
          envelope('slow', {
            payload: { version: '1.0', params: {}, callHints: { timeoutMs } },
            transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 1, maxElapsedMs: 9_000 } },
          }),
        );
      expect(hint(50)).toMatchObject({ durationMs: 50, error: { message: 'Tool timeout after 50ms' } });
      expect(hint(5_000)).toMatchObject({ durationMs: 200, error: { message: 'Tool timeout after 200ms' } });
    }),
  );

  it(
    'R-8.3 timeoutMs of the short form shortens the attempt’s timeout, never lengthens it',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [hangs], { timeoutMs: 200, retry: once })]);
      const ask = (timeoutMs: number): unknown => world.call(layer, { toolName: 'slow', timeoutMs });
      expect(ask(50)).toMatchObject({ durationMs: 50, error: { message: 'Tool timeout after 50ms' } });
      expect(ask(5_000)).toMatchObject({ durationMs: 200, error: { message: 'Tool timeout after 200ms' } });
    }),
  );

  it.each([0, -1, Number.NaN, Infinity, '50', null, undefined])(
    'R-8.1 timeoutMs of %s is refused, and named',
    async (timeoutMs) => {
      const layer = createSpillway({ tools: [{ name: 'quick', execute: () => 1 }] });
      const { status, error } = await layer.execute({ toolName: 'quick', timeoutMs } as never);
      expect({ status, message: error?.message }).toMatchObject({
        status: 'error',
        message: expect.stringContaining('timeoutMs') as string,
      });
    },
  );

  it(
    'R-8.3 R-2.5 expectedRetrySafe lets an uncertain mutation be retried, safetyCritical forbids it',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('book', [hangs], {
        effects: 'mutating',
        timeoutMs: 20,
        retry: { ...noBackoff, maxAttempts: 2 },
      });
      const careful = world.scripted('pay', [hangs], {
        effects: 'mutating',
        safetyCritical: true,
        enforcesKey: true,
        timeoutMs: 20,
        retry: noBackoff,
      });
      const keyed = world.scripted('keyed', [hangs], {
        effects: 'mutating',
        enforcesKey: true,
        timeoutMs: 20,
        retry: { ...noBackoff, maxAttempts: 2 },
      });
      const layer = world.layer([tried, careful, keyed]);
      const attempts = (toolName: string, callHints: NonNullable<ToolCallEnvelope['payload']['callHints']>): number =>
        world.call(
          layer,
          envelope(toolName, {
            payload: { version: '1.0', params: {}, idempotencyKey: 'k', callHints },
            transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 2, maxElapsedMs: 2_000 } },
          }),
        ).attempts;
      expect(attempts('book', {})).toBe(1);
      expect(attempts('book', { expectedRetrySafe: true })).toBe(2);
      expect(attempts('book', { expectedRetrySafe: true, safetyCritical: true })).toBe(1);
      expect(attempts('pay', { expectedRetrySafe: true })).toBe(1);
      expect(attempts('keyed', {})).toBe(2);
      expect(attempts('keyed', { safetyCritical: true })).toBe(1);
    }),
  );

  it(
    'R-2.5 a mutation that surely had no effect may be retried',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted(
        'book',
        [fails(1, Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })), answers(1)],
        { effects: 'mutating', retry: noBackoff },
      );
      expect(world.call(world.layer([tried]), 'book')).toMatchObject({ status: 'success', attempts: 2 });
    }),
  );

  it(
    'R-8.3 circuitBreakerHint picks the breaker: tool, dependency or global',
    marbles((m) => {
      const world = new World(m);
      const breaker = { failureThreshold: 1 } as const;
      const db = (name: string): ReturnType<World['scripted']>['tool'] => ({
        ...world.scripted(name, [fails(1, transient)], { breaker, retry: once }).tool,
        dependency: 'postgres',
      });
      const layer = world.layer([db('read'), db('write'), world.scripted('other', [answers(1)])]);
      const call = (toolName: string, circuitBreakerHint?: 'tool' | 'dependency' | 'global'): string =>
        world.call(
          layer,
          envelope(toolName, {
            transport: {
              dedupeMode: 'disabled',
              retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 },
              ...(circuitBreakerHint === undefined ? {} : { circuitBreakerHint }),
            },
          }),
        ).status;
      expect(call('read', 'dependency')).toBe('retriable_error');
      expect(call('write', 'dependency')).toBe('circuit_open');
      expect(call('write', 'tool')).toBe('retriable_error');
      expect(call('write')).toBe('circuit_open');
      for (let i = 0; i < 5; i++) expect(call('read', 'global')).toBe('retriable_error');
      expect(call('other', 'global')).toBe('circuit_open');
      expect(call('other')).toBe('success');
    }),
  );

  it('R-8.3 traceparent and baggage are passed on to the tool', async () => {
    const layer = createSpillway({
      tools: [
        {
          name: 'echo',
          execute: (_input: unknown, { traceparent, baggage }: ToolContext) => ({ traceparent, baggage }),
        },
      ],
    });
    const trace = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', baggage: { tier: 'gold' } };
    expect((await layer.execute(envelope('echo', { trace }))).output?.content).toStrictEqual(trace);
    expect((await layer.execute({ toolName: 'echo' })).output?.content).toStrictEqual({
      traceparent: undefined,
      baggage: undefined,
    });
  });

  it('R-8.2 a tool’s failure is a value, on every form', async () => {
    const layer = createSpillway({ tools: [{ name: 'broken', execute: () => Promise.reject(permanent) }] });
    await expect(layer.execute({ toolName: 'broken' })).resolves.toMatchObject({ status: 'error' });
    await expect(layer.execute({ toolName: 'nobody' })).resolves.toMatchObject({ status: 'error' });
    await expect(layer.execute(null as unknown as ToolCallRequest)).resolves.toMatchObject({ status: 'error' });
  });
});
