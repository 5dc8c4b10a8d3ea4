import { Observable, concat, of, throwError } from 'rxjs';
import {
  ToolExecutionError,
  createSpillway,
  plan,
  tool,
  type AnyTool,
  type Spillway,
  type ToolContext,
  type ToolPolicy,
  type ToolResultEnvelope,
} from 'spillway';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { marbles } from '../marbles.ts';
import { handClock, transient } from '../support.ts';
import { World, noBackoff, once, traceFaults, typed } from './kit.ts';

const single: ToolPolicy = { retry: once };
const layerOf = (execute: (input: unknown, context: ToolContext) => unknown, rest: Partial<AnyTool> = {}): Spillway =>
  createSpillway({ tools: [{ name: 'tried', policy: single, ...rest, execute }] });
const run = (
  execute: (input: unknown, context: ToolContext) => unknown,
  rest: Partial<AnyTool> = {},
): Promise<ToolResultEnvelope> => layerOf(execute, rest).execute({ toolName: 'tried' });

async function* counted(): AsyncGenerator<number> {
  yield 1;
  yield await Promise.resolve(2);
}

describe('R-8.2 what a tool may give', () => {
  it.each<readonly [string, () => unknown, unknown]>([
    ['a value', () => 7, 7],
    ['undefined', () => undefined, undefined],
    ['null', () => null, null],
    ['false', () => false, false],
    ['a string', () => 'text', 'text'],
    ['an array', () => [1, 2], [1, 2]],
    ['a Map, which is iterable', () => new Map([[1, 2]]), new Map([[1, 2]])],
    ['a promise', () => Promise.resolve(7), 7],
    ['a promise of nothing', () => Promise.resolve(), undefined],
    ['a thenable that answers at once', () => ({ then: (give: (value: unknown) => void) => give(7) }), 7],
    ['a thenable that answers twice', () => ({ then: (give: (value: unknown) => void) => (give(7), give(8)) }), 7],
    [
      'a thenable that throws after it answered',
      () => ({
        then: (give: (value: unknown) => void) => {
          give(7);
          throw new Error('late');
        },
      }),
      7,
    ],
    ['an Observable', () => of(1, 2, 3), 3],
    ['an Observable without a value', () => of(), undefined],
    ['an async iterable', () => counted(), 2],
  ])('R-8.2 %s', async (_name, execute, expected) => {
    expect(await run(execute)).toMatchObject({ status: 'success', attempts: 1, output: { content: expected } });
  });

  it.each<readonly [string, () => unknown, string]>([
    [
      'a synchronous throw',
      () => {
        throw transient;
      },
      'transport_error',
    ],
    ['a rejection', () => Promise.reject(transient), 'transport_error'],
    [
      'an Observable’s error after a value',
      () =>
        concat(
          of(1),
          throwError(() => transient),
        ),
      'transport_error',
    ],
    [
      'an async iterable’s',
      // oxlint-disable-next-line require-yield
      async function* failing() {
        throw await Promise.resolve(transient);
      },
      'transport_error',
    ],
    ['a string', () => Promise.reject('plain text'), 'execution_error'],
    ['undefined', () => Promise.reject(undefined), 'execution_error'],
    [
      'null, thrown',
      () => {
        throw null;
      },
      'execution_error',
    ],
    ['a symbol', () => Promise.reject(Symbol('why')), 'execution_error'],
    ['an object without a prototype', () => Promise.reject(Object.create(null)), 'execution_error'],
    [
      'a getter that throws',
      () =>
        Promise.reject({
          get message() {
            throw new Error('no');
          },
        }),
      'execution_error',
    ],
    [
      'a `then` that throws when it is read',
      () => ({
        get then() {
          throw new Error('unreadable');
        },
      }),
      'execution_error',
    ],
    [
      'an iterator that throws when it is made',
      () => ({
        [Symbol.asyncIterator]: () => {
          throw new Error('no iterator');
        },
      }),
      'execution_error',
    ],
    ['an iterator without next', () => ({ [Symbol.asyncIterator]: () => ({}) }), 'execution_error'],
  ])('R-8.2 a failure is a value: %s', async (_name, execute, kind) => {
    const result = await run(execute);
    expect(result).toMatchObject({ attempts: 1, error: { code: kind } });
    expect(result).not.toHaveProperty('output');
    expect(result.error?.message).toBeTypeOf('string');
  });

  it(
    'R-3.3 output that fails its schema is permanent and uncertain, names the path, and counts as an answer',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        tool({
          name: 'tried',
          output: z.object({ price: z.number() }),
          execute: () => of({ price: 'dear' } as unknown as { price: number }),
        }),
      ]);
      const trace = world.watch(layer.trace$).events;
      const result = world.call(layer, 'tried');
      expect(result).toMatchObject({
        status: 'error',
        attempts: 1,
        error: { code: 'execution_error', terminal: true },
      });
      expect(result.error?.message).toContain('price');
      expect(typed(trace, 'attempt_failed')).toMatchObject([
        { classification: 'permanent', error: { uncertain: true } },
      ]);
      expect(layer.breakers.get('tried').state).toMatchObject({ measured: 1, failures: 0 });
    }),
  );

  it('R-8.2 the output is what its schema makes of it', async () => {
    expect(await run(() => '7', { output: z.coerce.number() })).toMatchObject({ output: { content: 7 } });
  });

  it.each<readonly [string, z.ZodType]>([
    [
      'throws',
      z.unknown().transform(() => {
        throw new Error('a schema’s own');
      }),
    ],
    ['can only answer later', z.unknown().refine(() => Promise.resolve(true))],
  ])('R-8.2 a schema that %s is a failure like any other, of the output and of the input', async (_name, schema) => {
    expect(await run(() => 7, { output: schema })).toMatchObject({
      status: 'error',
      attempts: 1,
      error: { code: 'execution_error', terminal: true },
    });
    expect(await run(() => 7, { input: schema })).toMatchObject({
      status: 'error',
      attempts: 0,
      error: { code: 'invalid_parameters', terminal: true },
    });
    expect(await run(() => Promise.resolve(7), { output: schema })).toMatchObject({ status: 'error', attempts: 1 });
  });
});

describe('R-4.2 the context of an attempt', () => {
  it('R-4.2 each attempt has a fresh signal, its number and the call’s key', async () => {
    const contexts: ToolContext[] = [];
    const layer = layerOf(
      (_input, context) => {
        // Read here, where the attempt is under way.
        contexts.push({ ...context });
        if (contexts.length < 3) throw transient;
        return 'ok';
      },
      { policy: { retry: noBackoff } },
    );
    const result = await layer.execute({ toolName: 'tried' });
    expect(contexts.map(({ attempt }) => attempt)).toStrictEqual([1, 2, 3]);
    expect(new Set(contexts.map(({ signal }) => signal)).size).toBe(3);
    expect(contexts.some(({ signal }) => signal.aborted)).toBe(false);
    expect(new Set(contexts.map(({ callKey }) => callKey))).toStrictEqual(new Set([result.requestId]));
  });

  it('R-4.2 a signal that is first asked for after the abort is aborted', () => {
    const clock = handClock();
    const contexts: ToolContext[] = [];
    const layer = createSpillway({
      runtime: clock.runtime,
      tools: [
        {
          name: 'slow',
          policy: { timeoutMs: 50, retry: once },
          execute: (_input: unknown, context: ToolContext) => {
            contexts.push(context);
            return new Promise(() => undefined);
          },
        },
      ],
    });
    layer.call({ toolName: 'slow' }).subscribe();
    clock.pass(50);
    expect(contexts[0]?.signal.aborted).toBe(true);
  });

  it('R-4.2 a tool’s own timeout error is its own end: its signal is not aborted after the fact', async () => {
    const signals: AbortSignal[] = [];
    const result = await run((_input, { signal }) => {
      signals.push(signal);
      return Promise.reject(new ToolExecutionError('timeout', 'the upstream took too long', { uncertain: true }));
    });
    expect(result.status).toBe('timeout');
    expect(signals[0]?.aborted).toBe(false);
  });

  it(
    'R-4.1 the overtaken attempt is aborted before the next one starts',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [() => new Observable(), () => of('ok')], {
        timeoutMs: 50,
        retry: noBackoff,
      });
      const log: string[] = [];
      const layer = world.layer([
        {
          ...tried.tool,
          execute: (input: never, context: ToolContext) => {
            log.push(`start ${context.attempt}`);
            context.signal.addEventListener('abort', () => log.push(`abort ${context.attempt}`));
            return tried.tool.execute(input, context);
          },
        },
      ]);
      world.call(layer, 'slow');
      expect(log).toStrictEqual(['start 1', 'abort 1', 'start 2']);
    }),
  );

  it(
    'R-4.1 a tool that throws while it is torn down does not keep its call',
    marbles((m) => {
      const world = new World(m);
      const hostile = new Observable<never>(() => () => {
        throw new Error('a teardown’s own');
      });
      const layer = world.layer([
        { name: 'hostile', policy: { timeoutMs: 50, retry: { ...noBackoff, maxAttempts: 2 } }, execute: () => hostile },
      ]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'hostile')).toMatchObject({ status: 'retry_exhausted', attempts: 2, durationMs: 100 });
      const seen = world.watch(layer.call({ toolName: 'hostile' }));
      expect(() => seen.unsubscribe()).not.toThrow();
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.2 a stream given by a tool that was ended while it started is not subscribed to',
    marbles((m) => {
      const world = new World(m);
      let subscribed = 0;
      const layer = world.layer([
        {
          name: 'late',
          execute: (_input: unknown, { progress }: ToolContext) => {
            progress({ message: 'hello' });
            return new Observable(() => void subscribed++);
          },
        },
      ]);
      layer.trace$.subscribe(({ type }) => {
        if (type === 'progress') controller.abort();
      });
      const controller = new AbortController();
      expect(world.call(layer, 'late', controller.signal).error?.code).toBe('canceled');
      expect(subscribed).toBe(0);
    }),
  );

  it('R-4.1 the time that a tool takes before it answers with a promise is in its timeout', () => {
    const clock = handClock();
    let endedAfterMs = NaN;
    const startedAtMs = clock.runtime.now();
    const layer = createSpillway({
      runtime: clock.runtime,
      tools: [
        {
          name: 'busy',
          policy: { timeoutMs: 50, retry: once },
          execute: () => {
            clock.pass(30);
            return new Promise(() => undefined);
          },
        },
      ],
    });
    layer.call({ toolName: 'busy' }).subscribe({ complete: () => (endedAfterMs = clock.runtime.now() - startedAtMs) });
    clock.pass(20);
    expect(endedAfterMs).toBe(50);
  });

  it(
    'R-4.3 progress resets the idle timeout, and never extends the hard one',
    marbles((m) => {
      const world = new World(m);
      const seen: number[] = [];
      const talkative = (untilMs: number): AnyTool => ({
        name: 'talkative',
        policy: { timeoutMs: 100, idleTimeoutMs: 30, retry: once },
        execute: (_input: unknown, { progress, signal }: ToolContext) => {
          signal.addEventListener('abort', () => seen.push(world.runtime.now()));
          for (let at = 20; at < untilMs; at += 20) world.at(at, () => progress({ progress: at }));
          return new Observable();
        },
      });
      world.watch(world.layer([talkative(1_000)]).call({ toolName: 'talkative' }));
      world.watch(world.layer([talkative(50)]).call({ toolName: 'talkative' }));
      world.flush();
      expect(seen).toStrictEqual([70, 100]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it('R-4.1 the runtime’s clock may be an object with methods of its own', () => {
    class Clock {
      readonly at = 1_000;
      now(): number {
        return this.at;
      }
      wallNow(): number {
        return this.at;
      }
      random(): number {
        return this.at / 2_000;
      }
      id(): string {
        return String(this.at);
      }
      after(): Observable<0> {
        return this.at > 0 ? new Observable() : of(0);
      }
    }
    const results: unknown[] = [];
    const layer = createSpillway({
      runtime: new Clock(),
      tools: [
        {
          name: 'limited',
          policy: { retry: { maxAttempts: 2 } },
          execute: () => {
            throw Object.assign(new Error('later'), {
              status: 429,
              headers: { 'retry-after': 'Thu, 01 Jan 1970 00:10:00 GMT' },
            });
          },
        },
      ],
    });
    layer.call({ toolName: 'limited' }).subscribe((event) => event.type === 'settled' && results.push(event.result));
    expect(results).toMatchObject([{ status: 'retriable_error', attempts: 1 }]);
  });

  it(
    'R-8.2 an input function that throws anything fails its node alone',
    marbles((m) => {
      const world = new World(m);
      const echo = tool({ name: 'echo', execute: (input: unknown) => input });
      const thrown = [new Error('no input'), 'text', null, Object.create(null) as unknown];
      const nodes = thrown.map((error, i) => ({
        id: `n${i}`,
        tool: echo,
        input: () => {
          throw error;
        },
      }));
      const result = world.turn(world.layer([]), plan.from([...nodes, { id: 'ok', tool: echo, input: () => 7 }]));
      expect(result.nodes.map(({ state }) => state)).toStrictEqual([
        'failed',
        'failed',
        'failed',
        'failed',
        'succeeded',
      ]);
      expect(result.nodes[0]?.reason).toBe('The input of n0 could not be made: no input');
      expect(result).toMatchObject({
        status: 'escalated',
        executedTools: 1,
        toolFailureKinds: ['invalid_parameters'],
        values: { ok: 7 },
      });
    }),
  );
});
