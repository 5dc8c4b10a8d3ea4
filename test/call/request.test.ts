import { createSpillway, type ToolCallEnvelope, type ToolCallRequest, type ToolContext } from 'spillway';
import { toolCallEnvelopeSchema, toolResultEnvelopeSchema } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { marbles } from '../marbles.ts';
import { handClock, permanent, transient } from '../support.ts';
import { World, answers, envelope, fails, hangs, noBackoff, noJitter, once, typed } from './kit.ts';

const whole = envelope('flight_search');
const without = (path: string): unknown => {
  const [first = '', second] = path.split('.');
  const drop = (from: object, key: string): Record<string, unknown> =>
    Object.fromEntries(Object.entries(from).filter(([own]) => own !== key));
  return second === undefined ? drop(whole, first) : { ...whole, [first]: drop(whole[first as 'target'], second) };
};

describe('R-8.1 the envelope', () => {
  it.each<readonly [string, unknown]>([
    ['contractVersion', without('contractVersion')],
    ['requestId', without('requestId')],
    ['toolName', without('toolName')],
    ['toolNamespace', without('toolNamespace')],
    ['target', without('target')],
    ['target.sessionKey', without('target.sessionKey')],
    ['target.actorId', without('target.actorId')],
    ['payload', without('payload')],
    ['payload.params', without('payload.params')],
    ['payload.version', { ...whole, payload: { ...whole.payload, version: '2.0' } }],
    ['payload.callHints.timeoutMs', { ...whole, payload: { ...whole.payload, callHints: { timeoutMs: -1 } } }],
    ['transport', without('transport')],
    ['transport.dedupeMode', { ...whole, transport: { ...whole.transport, dedupeMode: 'sometimes' } }],
    ['transport.retryBudget', without('transport.retryBudget')],
    [
      'transport.retryBudget.maxAttempts',
      { ...whole, transport: { ...whole.transport, retryBudget: { maxAttempts: 0, maxElapsedMs: 1 } } },
    ],
    ['control', without('control')],
    ['control.deadlineAtMs', { ...whole, control: { deadlineAtMs: 'soon' } }],
    ['control.requestTags', { ...whole, control: { requestTags: 'one' } }],
    ['trace', without('trace')],
    ['unheard', { ...whole, unheard: 1 }],
  ])('TR-1 malformed at %s: a terminal result that names it, no attempt', (path, malformed) =>
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [answers(1)], { alternatives: ['other'] });
      const layer = world.layer([tried, world.scripted('other', [answers(1)])]);
      const trace = world.watch(layer.trace$).events;
      const result = world.call(layer, malformed as ToolCallEnvelope);
      expect(result).toMatchObject({
        status: 'error',
        attempts: 0,
        fromCache: false,
        error: { code: 'invalid_parameters', terminal: true, retriable: false },
      });
      expect(result.error?.message).toContain(path);
      expect(tried.starts).toStrictEqual([]);
      expect(typed(trace, 'attempt_started')).toStrictEqual([]);
      expect(toolResultEnvelopeSchema.parse(result)).toStrictEqual(result);
      if (path !== 'requestId') expect(result.requestId).toBe(whole.requestId);
    })(),
  );

  it.each<readonly [string, unknown]>([
    ['null', null],
    ['a number', 7],
    ['an empty object', {}],
    ['an unknown field', { toolName: 'flight_search', tenent: 'x' }],
    ['an empty key', { toolName: 'flight_search', idempotencyKey: '' }],
  ])('R-8.1 a short form that is %s is refused likewise', (_name, request) =>
    marbles((m) => {
      const world = new World(m);
      expect(
        world.call(world.layer([world.scripted('flight_search', [answers(1)])]), request as ToolCallRequest),
      ).toMatchObject({ attempts: 0, error: { code: 'invalid_parameters', terminal: true } });
    })(),
  );

  it(
    'R-8.1 is well as it is, and its id is the result’s',
    marbles((m) => {
      const world = new World(m);
      expect(toolCallEnvelopeSchema.parse(whole)).toStrictEqual(whole);
      const tried = world.scripted('flight_search', [answers(1, { id: 7 })]);
      const result = world.call(world.layer([tried]), {
        ...whole,
        payload: { version: '1.0', params: { from: 'HEL' } },
      });
      expect(result).toMatchObject({ requestId: whole.requestId, status: 'success', output: { content: { id: 7 } } });
      expect(tried.inputs).toStrictEqual([{ from: 'HEL' }]);
    }),
  );

  it('R-8.1 the short form takes any input, and gets an id of its own', async () => {
    const layer = createSpillway({
      tools: [{ name: 'echo', execute: (input: unknown, { callKey }: ToolContext) => [input, callKey] }],
    });
    const [first, second] = [
      await layer.execute({ toolName: 'echo', input: [1] }),
      await layer.execute({ toolName: 'echo', input: 'x', idempotencyKey: 'mine' }),
    ];
    expect(first.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(first.requestId).not.toBe(second.requestId);
    expect([first.output?.content, second.output?.content]).toStrictEqual([
      [[1], first.requestId],
      ['x', 'mine'],
    ]);
  });

  it(
    'R-12.2 input that does not fit its schema is refused before anything runs, with its path; what fits is what the schema made',
    marbles((m) => {
      const world = new World(m);
      const scripted = world.scripted('flight_search', [answers(1)]);
      const layer = world.layer([
        { ...scripted.tool, input: z.object({ legs: z.array(z.object({ to: z.string().trim() })) }) },
      ]);
      const refused = world.call(layer, { toolName: 'flight_search', input: { legs: [{ to: 'NRT' }, { to: 7 }] } });
      expect(refused).toMatchObject({ attempts: 0, error: { code: 'invalid_parameters', terminal: true } });
      expect(refused.error?.message).toContain('legs[1].to');
      world.call(layer, { toolName: 'flight_search', input: { legs: [{ to: ' NRT ' }] } });
      expect(scripted.inputs).toStrictEqual([{ legs: [{ to: 'NRT' }] }]);
      expect(layer.breakers.get('flight_search').state.measured).toBe(1);
    }),
  );

  it(
    'R-1.1 an unknown tool is an error, permanent, not executed',
    marbles((m) => {
      const world = new World(m);
      const result = world.call(world.layer([]), 'constructor');
      expect(result).toMatchObject({
        status: 'error',
        attempts: 0,
        toolName: 'constructor',
        error: { code: 'unknown_tool', terminal: true },
      });
      expect(result.error?.message).toBe('No tool is named constructor');
    }),
  );
});

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
