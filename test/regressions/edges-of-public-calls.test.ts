// Was: getters, keys and listeners that throw ended a call or the process, and deadlines, cancels and abandoned turns
// went untold. Now: each is refused or gives a result, and is told.
import { NEVER, Observable, firstValueFrom, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ToolExecutionError,
  createBreaker,
  createSpillway,
  hedge,
  plan,
  tool,
  type FailureNotification,
  type ToolCallRequest,
  type TraceEvent,
} from '../../src/index.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';

describe('edges of public calls', () => {
  it('RSC-1 hedge links an endless synchronous source to its subscriber', () => {
    let pulled = 0;
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && pulled < 1000) subscriber.next(pulled++);
    });
    endless.pipe(hedge({ delayMs: 10 }), take(1)).subscribe();
    expect(pulled).toBe(1);
  });

  it('R-4.2 a tool that aborts itself was not canceled by the caller: its alternative is used', async () => {
    const quits = tool({
      name: 'quits',
      policy: { retry: { maxAttempts: 1 }, alternatives: ['spare'] },
      execute: (): never => {
        throw new DOMException('gave up', 'AbortError');
      },
    });
    const spillway = createSpillway({ tools: [quits, tool({ name: 'spare', execute: () => 'spare' })] });
    expect(await spillway.execute({ toolName: 'quits' })).toMatchObject({
      status: 'success',
      output: { content: 'spare' },
    });
  });

  it(
    'R-6.1 a deadline and a cancel are failures that are told, with a decision',
    marbles((m) => {
      const spillway = createSpillway({
        tools: [tool({ name: 'hangs', execute: () => NEVER })],
        runtime: runtimeOn(m.scheduler),
      });
      const failures: FailureNotification[] = [];
      const codes: string[] = [];
      spillway.failures$.subscribe((failure) => failures.push(failure));
      spillway.trace$.subscribe((event) => event.type === 'decision' && codes.push(`${event.strategy} ${event.code}`));
      const abort = new AbortController();
      spillway.call({ toolName: 'hangs' }, { signal: abort.signal }).subscribe();
      spillway.turn(plan.from([{ id: 'a', tool: 'hangs' }], { timeoutMs: 10, onDeadline: 'abort' })).subscribe();
      m.scheduler.schedule(() => abort.abort(), 5);
      m.flush();
      expect(failures.map(({ error }) => error.kind)).toEqual(['canceled', 'deadline_exceeded']);
      expect(codes).toEqual(['fail canceled', 'partial turn_deadline']);
    }),
  );

  it('R-8.2 a request whose getters throw gives a result', async () => {
    const spillway = createSpillway({ tools: [] });
    const hostile = {
      get toolName(): string {
        throw new Error('no');
      },
    };
    const { proxy, revoke } = Proxy.revocable({ toolName: 'x' }, {});
    revoke();
    for (const request of [hostile, proxy])
      expect(await spillway.execute(request as ToolCallRequest)).toMatchObject({
        status: 'error',
        error: { code: 'invalid_parameters' },
      });
  });

  it('R-1.2 what only wears the brand of a typed error is read like a stranger', async () => {
    const hostile = new ToolExecutionError('timeout', 'x');
    Object.defineProperty(hostile, 'status', {
      get: () => {
        throw new Error('no');
      },
    });
    const dressed = { [Symbol.for('spillway.ToolExecutionError')]: true, kind: 'timeout' };
    for (const thrown of [hostile, dressed]) {
      const throwing = tool({
        name: 'throwing',
        policy: { retry: { maxAttempts: 1 } },
        execute: () => Promise.reject(thrown as Error),
      });
      const result = await createSpillway({ tools: [throwing] }).execute({ toolName: 'throwing' });
      expect(result.status).not.toBe('success');
      expect(typeof result.error?.message).toBe('string');
    }
  });

  it('R-3.7 a breakerKey that throws is refused when the layer is made', () => {
    const bad = (): string => {
      throw new RangeError('no key');
    };
    expect(() => createSpillway({ tools: [tool({ name: 'a', execute: () => 1 })], breakerKey: bad })).toThrow(
      'tool a: no key',
    );
  });

  it('R-7.1 listeners of state$, inputs$ and failures$ that throw change nothing and end no process', async () => {
    const breaker = createBreaker({ failureThreshold: 1 });
    const throws = (): never => {
      throw new Error('listener');
    };
    breaker.state$.subscribe(throws);
    breaker.inputs$.subscribe(throws);
    const seen: string[] = [];
    breaker.state$.subscribe(({ type }) => seen.push(type));
    const admission = breaker.admit();
    if (admission.admitted) admission.failure(new ToolExecutionError('timeout', 'late'));
    expect(seen).toEqual(['closed', 'open']);
    const spillway = createSpillway({ tools: [] });
    spillway.failures$.subscribe(throws);
    expect((await spillway.execute({ toolName: 'none' })).error?.code).toBe('unknown_tool');
  });

  it('R-6.1 the error handler may be an async function', async () => {
    const failing = tool({
      name: 'failing',
      execute: (): never => {
        throw new ToolExecutionError('transport_error', 'reset');
      },
    });
    const spillway = createSpillway({
      tools: [failing],
      errorHandler: async () => ({ strategy: 'fail', code: 'guidance', reason: 'asked' }),
    });
    const reasons: string[] = [];
    spillway.trace$.subscribe((event) => event.type === 'decision' && reasons.push(event.reason));
    expect((await spillway.execute({ toolName: 'failing' })).attempts).toBe(1);
    expect(reasons).toEqual(['asked']);
  });

  it('R-3.8 a breaker that a person opened is not evicted', async () => {
    const one = (name: string): ReturnType<typeof tool<number, string>> => tool({ name, execute: () => 1 });
    const spillway = createSpillway({ tools: [one('a'), one('b'), one('c')], maxBreakers: 2 });
    spillway.breakers.get('a').forceOpen();
    for (const toolName of ['b', 'c']) await spillway.execute({ toolName });
    expect((await spillway.execute({ toolName: 'a' })).status).toBe('circuit_open');
  });

  it('R-2.9 what was accepted in silence is refused, and undefined hides no default', async () => {
    const made =
      (policy: object): (() => unknown) =>
      () =>
        createSpillway({ tools: [tool({ name: 't', policy, execute: () => 1 })] });
    expect(made({ classification: { 503: 'permenant' } })).toThrow(
      /tool t: classification of 503 must be one of transient, permanent, not "permenant"/,
    );
    expect(made({ effects: 'write' })).toThrow(/effects must be one of read, mutating, not "write"/);
    expect(() => createSpillway({ tools: [undefined as never] })).toThrow(RangeError);
    expect(() => plan.from([{ id: 'a', tool: 't', need: ['b'] } as never])).toThrow(/need/);
    const slow = tool({ name: 'slow', policy: { timeoutMs: undefined } as object, execute: () => NEVER });
    const spillway = createSpillway({ tools: [slow], defaults: { timeoutMs: 20, retry: { maxAttempts: 1 } } });
    expect((await spillway.execute({ toolName: 'slow' })).error?.message).toBe('Tool timeout after 20ms');
  });

  it('R-7.1 an abandoned call and turn end in the trace', () => {
    const spillway = createSpillway({ tools: [tool({ name: 'hangs', execute: () => NEVER })] });
    const trace: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => trace.push(event));
    spillway
      .turn(plan.from([{ id: 'a', tool: 'hangs' }]))
      .subscribe()
      .unsubscribe();
    expect(trace.slice(-3).map(({ source, type }) => `${source} ${type}`)).toEqual([
      'call attempt_canceled',
      'call abandoned',
      'turn abandoned',
    ]);
  });

  it('R-5.1 callers are typed by what a schema takes, tools by what it gives', async () => {
    const day = tool({
      name: 'day',
      input: z.object({ when: z.string().transform((text) => new Date(text)), days: z.number().default(1) }),
      execute: ({ when, days }) => when.getUTCDate() + days,
    });
    const spillway = createSpillway({ tools: [day] });
    const settled = await firstValueFrom(spillway.turn(plan().call('d', day, { when: '2026-01-01' })).pipe(take(100)), {
      defaultValue: undefined,
    });
    expect(settled).toBeDefined();
    expect((await spillway.execute({ toolName: 'day', input: { when: '2026-01-01' } })).output?.content).toBe(2);
  });
});
