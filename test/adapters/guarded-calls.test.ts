import fc from 'fast-check';
import { inspect } from 'node:util';
import {
  ToolExecutionError,
  createSpillway,
  tool,
  type ToolErrorKind,
  type ToolPolicy,
  type TraceEvent,
} from 'spillway';
import { TOOL_ERROR_KIND_MEANINGS } from 'spillway/contract';
import { ToolFailure, guardTools } from 'spillway/adapters/ai-sdk';
import { virtualRuntime } from 'spillway/testing';
import { z } from 'zod';
import { describe, expect, it } from 'vitest';
import { refuseMismatch } from '../../src/adapters/guarded/finished.ts';
import { createValueQueue } from '../../src/adapters/guarded/value-queue.ts';
import { failureText } from '../../src/policy/model-text.ts';
import { CANARY } from './frameworks/kit.ts';

const KINDS = Object.keys(TOOL_ERROR_KIND_MEANINGS) as ToolErrorKind[];
const once: ToolPolicy = { retry: { maxAttempts: 1 } };
/** What a guarded tool that throws this fails with. */
const failing = async (thrown: unknown, policy: ToolPolicy = once): Promise<ToolFailure> => {
  const { t } = guardTools({ t: { execute: () => Promise.reject(thrown) } }, { policies: { t: policy } });
  const failure: unknown = await t.execute().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ToolFailure);
  return failure as ToolFailure;
};

describe('what a failure says', () => {
  it.each(KINDS)('R-12.4 %s: its description, and whether it ran, said once', (kind) => {
    const { description, executed } = TOOL_ERROR_KIND_MEANINGS[kind];
    for (const state of ['ran', 'did_not_run', 'may_have_run'] as const) {
      const text = failureText(kind, state);
      // A tool that was called and did not run cannot have run and failed.
      expect(
        text.startsWith(kind === 'execution_error' && state === 'did_not_run' ? 'The tool call failed.' : description),
      ).toBe(true);
      // A kind of calls that were never made says so by itself.
      if (executed || state !== 'did_not_run')
        expect(text).toMatch({ ran: /ran/, did_not_run: /not/, may_have_run: /may have/ }[state]);
      expect(failureText(kind, state, { safeMessage: '' })).toBe(text);
      expect(failureText(kind, state, { safeMessage: 'Try Espoo.' })).toBe('Try Espoo.');
      expect(failureText(kind, state, { safeMessage: 'cut \ud83d' }).isWellFormed()).toBe(true);
    }
  });

  it.each([
    [
      new Error('boom'),
      'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    ],
    [
      'boom',
      'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    ],
    [
      Object.assign(new Error('gone'), { status: 404 }),
      'The tool ran and failed. Its service answered 404: what was asked for was not found. Do not try again with the same input: correct it first.',
    ],
    [
      Object.assign(new Error('connect'), { code: 'ECONNRESET' }),
      'The connection to the tool failed. The tool may have run and taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    ],
    [
      new ToolExecutionError('transport_error', 'refused', { executed: false }),
      'The connection to the tool failed. The tool did not run. You can try again.',
    ],
    [new ToolExecutionError('not_permitted', 'no'), 'This tool may not be used here. Do not try again.'],
    [
      new ToolExecutionError('execution_error', 'half done', { uncertain: true }),
      'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    ],
    [new ToolExecutionError('execution_error', 'no', { safeMessage: 'Sold out.' }), 'Sold out.'],
  ])('R-12.4 %s', async (thrown, text) => {
    expect((await failing(thrown)).message).toBe(text);
  });

  it('R-12.4 what an earlier attempt may have done is not forgotten when a later one never began', async () => {
    const runtime = virtualRuntime();
    let attempts = 0;
    const execute = (): Promise<never> =>
      attempts++ === 0
        ? new Promise(() => undefined)
        : Promise.reject(
            new ToolExecutionError('transport_error', 'refused', { executed: false, classification: 'permanent' }),
          );
    const { t } = guardTools(
      { t: { execute } },
      { runtime, profile: 'resilient', defaults: { effects: 'read', timeoutMs: 1_000 } },
    );
    const failed = t.execute().catch((error: unknown) => error);
    await runtime.run();
    expect(await failed).toMatchObject({
      kind: 'transport_error',
      message:
        'The connection to the tool failed. The tool may have run and taken effect. Do not try again with the same input.',
    });
  });

  it('R-3.8 an open breaker says that the tool was not called', async () => {
    let calls = 0;
    const execute = (): Promise<never> => {
      calls++;
      return Promise.reject(new Error('down'));
    };
    const { t } = guardTools({ t: { execute } }, { defaults: { ...once, breaker: { failureThreshold: 2 } } });
    for (let i = 0; i < 2; i++) await t.execute().catch(() => undefined);
    await expect(t.execute()).rejects.toMatchObject({
      kind: 'circuit_open',
      message: 'The tool has failed repeatedly and is resting; it was not called. Try again in 30 s, not before.',
    });
    expect(calls).toBe(2);
  });

  it('R-11.4 nothing of what was thrown is in it, wherever a framework looks', async () => {
    class Nested extends Error {
      readonly secret = CANARY;
    }
    const thrown = new Nested(`password ${CANARY}`, { cause: new Error(CANARY) });
    for (const error of [
      thrown,
      CANARY,
      { message: CANARY },
      new ToolExecutionError('execution_error', CANARY, { cause: thrown, details: CANARY, code: CANARY }),
    ]) {
      const failure = await failing(error);
      const all = [
        inspect(failure, { depth: Infinity, showHidden: true }),
        String(failure),
        failure.stack,
        JSON.stringify(failure),
        failure.message,
        inspect(failure.cause),
      ].join();
      expect(all).not.toContain(CANARY);
      expect(String(failure)).toBe(failure.message);
      expect(failure.stack).toBe(failure.message);
    }
  });
});

describe('the layer of guarded calls', () => {
  it('R-7.1 a layer given hears everything, shares its breakers, and its own policy stands', async () => {
    const spillway = createSpillway({ defaults: once });
    const events: TraceEvent[] = [];
    const failures: unknown[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    spillway.failures$.subscribe(({ error }) => failures.push(error.message));
    const { t } = guardTools(
      {
        t: { execute: (_input: object, _options: { toolCallId: string }) => Promise.reject(new Error('told in full')) },
      },
      { spillway },
    );
    await expect(t.execute({}, { toolCallId: 'toolu_7' })).rejects.toThrow('The tool ran and failed.');
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({ toolName: 't', toolCallId: 'toolu_7' });
    expect(failures).toEqual(['told in full']);
    expect(spillway.breakers.get('t')?.state.consecutiveFailures).toBe(1);
    await spillway.close();
    await expect(t.execute({}, { toolCallId: 'toolu_8' })).rejects.toMatchObject({ kind: 'canceled' });
  });

  it('R-6.2 an alternative of the layer answers', async () => {
    const backup = tool({ name: 'backup', execute: (input) => ['from the backup', input] });
    const { t } = guardTools(
      { t: { execute: (_input: string) => Promise.reject(new Error('down')) } },
      { tools: [backup], policies: { t: { ...once, effects: 'read', alternatives: ['backup'] } } },
    );
    await expect(t.execute('x')).resolves.toEqual(['from the backup', 'x']);
  });

  it('R-2.9 wrong options are refused when they are given', () => {
    const tools = { t: { execute: () => 1 } };
    expect(() => guardTools(tools, { policies: { typo: {} } })).toThrow(/policies has no option "typo"; it takes t/);
    expect(() => guardTools(tools, { policies: { t: { timeoutMs: -1 } } })).toThrow(
      /tool t: timeoutMs must be a duration above 0/,
    );
    expect(() => guardTools(tools, { policies: { t: { alternatives: ['b'] } } })).toThrow(
      /policies\.t: its alternative b is no tool of the layer/,
    );
    expect(() => guardTools(tools, { spillway: createSpillway(), defaults: {} })).toThrow(
      /guardTools with a spillway has no option "defaults"/,
    );
    expect(() => guardTools(tools, { profile: 'slow' as never })).toThrow(/profile must be one of/);
  });
});

describe('who stops waiting for a guarded call', () => {
  it('R-4.3 ends its tool: the signal of the attempt that runs is aborted, and nothing more is made', async () => {
    const signals: AbortSignal[] = [];
    const execute = async function* (_input: object, { abortSignal }: { abortSignal: AbortSignal }) {
      signals.push(abortSignal);
      yield 'first';
      await new Promise((resolve) => abortSignal.addEventListener('abort', resolve));
    };
    const { t } = guardTools({ t: { execute } });
    for await (const value of t.execute({}, { abortSignal: new AbortController().signal })) {
      expect(value).toBe('first');
      expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
      break;
    }
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });
});

describe('input of a tool that reads it itself', () => {
  const ofZod = z.object({ cents: z.number() });
  const ofJson = { type: 'object', properties: { cents: { type: 'number' } } };
  const throwing = { '~standard': { validate: () => Promise.reject(new Error('down')) } };

  it.each([
    ['input that fits', ofZod, { cents: 5 }],
    ['a JSON Schema, which tells a model what to write', ofJson, { cents: 'five' }],
    ['a schema that cannot be used', throwing, { cents: 5 }],
    ['no schema', undefined, { cents: 5 }],
  ])('R-2.5 is not refused: %s', async (_case, known, input) => {
    await expect(refuseMismatch(known, input)).resolves.toBeUndefined();
  });

  it('R-2.5 is refused where it does not fit: nothing has run', async () => {
    const told = await refuseMismatch(ofZod, { cents: 'five' }).catch((error: unknown) => error);
    expect(told).toMatchObject({ kind: 'invalid_parameters', executed: false, uncertain: false });
    expect((told as ToolExecutionError).safeMessage).toContain('cents');
  });
});

describe('a queue of values', () => {
  it('R-4.3 gives every value in order, however pushing and asking interleave', async () => {
    const steps = fc.array(fc.constantFrom('push', 'ask'), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (order, fails) => {
        let left = 0;
        let pushed = 0;
        const queue = createValueQueue(() => left++);
        const iterator = queue.values[Symbol.asyncIterator]();
        const asked: Array<Promise<IteratorResult<unknown>>> = [];
        for (const step of order) {
          if (step === 'push') queue.push(pushed++);
          else asked.push(iterator.next());
          await Promise.resolve();
        }
        queue.end(fails ? { thrown: 'the end' } : undefined);
        const missing = Math.max(0, pushed + 1 - asked.length);
        for (let i = 0; i < missing; i++) asked.push(iterator.next());
        const settled = await Promise.allSettled(asked);
        const values = settled.flatMap((each) =>
          each.status === 'fulfilled' && each.value.done !== true ? [each.value.value] : [],
        );
        expect(values).toEqual(Array.from({ length: pushed }, (_, n) => n));
        expect(settled.filter(({ status }) => status === 'rejected').length).toBe(fails ? 1 : 0);
        expect(left).toBe(1);
      }),
    );
  });
});
