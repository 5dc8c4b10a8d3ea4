import fc from 'fast-check';
import { defer, lastValueFrom, throwError } from 'rxjs';
import {
  LlmError,
  ToolExecutionError,
  circuitBreaker,
  classify,
  createBreaker,
  retryBackoff,
  toToolError,
} from 'spillway';
import * as mini from 'spillway/mini';
import { describe, expect, it } from 'vitest';

const status = (code: number, more: object = {}): Error =>
  Object.assign(new Error('answered'), { status: code, ...more });

/** How often a stream that always fails is asked, and what a breaker makes of one failure. */
const asked = async (
  thrown: unknown,
  {
    retryBackoff: retry,
    circuitBreaker: guarded,
    createBreaker: create,
  }: Pick<typeof mini, 'retryBackoff' | 'circuitBreaker' | 'createBreaker'>,
): Promise<object> => {
  let times = 0;
  const failing = defer(() => {
    times++;
    return throwError(() => thrown);
  });
  await expect(lastValueFrom(failing.pipe(retry({ initialDelayMs: 0, maxAttempts: 3 })))).rejects.toBe(thrown);
  const breaker = create();
  await expect(lastValueFrom(failing.pipe(guarded(breaker)))).rejects.toBe(thrown);
  return { times: times - 1, measured: breaker.state.measured, failures: breaker.state.failures };
};
const once = { times: 1, measured: 1, failures: 0 };
const again = { times: 3, measured: 1, failures: 1 };

describe('spillway/mini reads the fields of an error', () => {
  it.each<[string, unknown, object]>([
    ['a status that refuses', status(401), once],
    ['a status that refuses, of a response', Object.assign(new Error('x'), { response: { status: 404 } }), once],
    ['a status that refuses, of its cause', new Error('x', { cause: status(422) }), once],
    ['a status that may pass', status(503), again],
    ['a limited rate with a wait', status(429, { headers: { 'retry-after-ms': '0' } }), again],
    [
      'a server that asks not to be asked again',
      status(503, { headers: new Headers({ 'x-should-retry': 'false' }) }),
      { times: 1, measured: 1, failures: 1 },
    ],
    ['its maker’s word', Object.assign(new Error('x'), { isRetryable: false }), once],
    ['an abort', new DOMException('stopped', 'AbortError'), { times: 1, measured: 0, failures: 0 }],
    [
      'an abort behind an error',
      new Error('x', { cause: new DOMException('stopped', 'AbortError') }),
      { times: 1, measured: 0, failures: 0 },
    ],
    [
      'an error of ours, as another version makes it',
      Object.assign(new Error('x'), { kind: 'blocked', [Symbol.for('spillway.ToolExecutionError')]: true }),
      { times: 1, measured: 0, failures: 0 },
    ],
    ['a model’s error of ours', new LlmError('auth_error', 'x', { classification: 'permanent' }), once],
    ['an error of ours', new ToolExecutionError('execution_error', 'x', { classification: 'permanent' }), once],
    ['an error of ours that says nothing', new ToolExecutionError('execution_error', 'x'), again],
    [
      'a call that was not admitted',
      new ToolExecutionError('circuit_open', 'x', { retryAfterMs: 0 }),
      { times: 1, measured: 0, failures: 0 },
    ],
    ['nothing', new Error('it broke'), again],
    ['no error at all', undefined, again],
  ])('R-1.3 %s, as spillway does', async (_what, thrown, expected) => {
    expect(await asked(thrown, mini)).toStrictEqual(expected);
    expect(await asked(thrown, { retryBackoff, circuitBreaker, createBreaker })).toStrictEqual(expected);
  });

  it.each<[string, unknown, isWorded?: boolean]>([
    ['words', new Error('Invalid input'), true],
    ['a status in words', new Error('Authentication failed (401)')],
    ['a code', Object.assign(new Error('x'), { code: 'insufficient_quota' })],
    ['a name', Object.assign(new Error('x'), { name: 'ValidationError' })],
    ['one of several errors', new AggregateError([status(401)], 'x')],
  ])(
    'R-1.3 what says only by %s that it will fail again is asked again, and is not by spillway',
    async (_what, thrown, isWorded = false) => {
      expect(await asked(thrown, mini)).toStrictEqual(again);
      // What words alone say proves nothing to a breaker.
      const counted = isWorded ? { ...once, measured: 0 } : once;
      expect(await asked(thrown, { retryBackoff, circuitBreaker, createBreaker })).toStrictEqual(counted);
    },
  );

  it('R-1.3 any status, flag and hint mean what they mean to spillway', async () => {
    const fields = fc.record(
      {
        status: fc.integer({ min: 400, max: 599 }),
        isRetryable: fc.boolean(),
        retryAfterMs: fc.constantFrom(-1, 0),
        name: fc.constantFrom('AbortError', 'Error'),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(fields, fc.boolean(), async (own, wrapped) => {
        const error = Object.assign(new Error('x'), own);
        const thrown = wrapped ? new Error('y', { cause: error }) : error;
        expect(await asked(thrown, mini), classify(toToolError(thrown, 'tool')).reason).toStrictEqual(
          await asked(thrown, { retryBackoff, circuitBreaker, createBreaker }),
        );
      }),
      { numRuns: 300 },
    );
  });
});
