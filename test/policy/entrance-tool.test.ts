import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOOL_ERROR_KIND_MEANINGS } from '../../src/contract/error-kind.ts';
import { ToolExecutionError, isToolExecutionError } from '../../src/contract/tool-error.ts';
import { parseRetryAfter } from '../../src/errors/structure.ts';
import { toToolExecutionError } from '../../src/errors/tool.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

const throwing = (): never => {
  throw new Error('hostile');
};
const cyclic = new Error('round and round');
cyclic.cause = new Error('and round', { cause: cyclic });
const own: { cause?: unknown } = {};
own.cause = own;
let deep: unknown = new Error('the bottom');
for (let i = 0; i < 100_000; i++) deep = { cause: deep };

const hostile: ReadonlyArray<readonly [string, unknown]> = [
  ['null', null],
  ['undefined', undefined],
  ['a string', 'boom'],
  ['an empty string', ''],
  ['a number', 42],
  ['NaN', Number.NaN],
  ['a bigint', 10n],
  ['a symbol', Symbol('s')],
  ['a boolean', false],
  ['an empty object', {}],
  ['no prototype', Object.create(null)],
  ['an array', [1, 2]],
  ['a function', () => 1],
  ['a class', Error],
  [
    'a getter that throws',
    Object.defineProperties(
      {},
      Object.fromEntries(
        ['message', 'name', 'code', 'status', 'cause', 'headers', 'response', 'retryAfterMs'].map((key) => [
          key,
          { get: throwing },
        ]),
      ),
    ),
  ],
  ['a proxy that throws', new Proxy({}, { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing })],
  ['a proxy of a function that throws', new Proxy(() => 1, { get: throwing })],
  ['a function with a hostile toString', Object.assign(() => 1, { toString: throwing })],
  [
    'a revoked proxy',
    (() => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    })(),
  ],
  [
    'a revoked proxy of a function',
    (() => {
      const { proxy, revoke } = Proxy.revocable(() => 1, {});
      revoke();
      return proxy;
    })(),
  ],
  ['an error that is its own cause', own],
  ['errors in a circle', cyclic],
  ['causes 100,000 deep', deep],
  ['a message that is no string', { message: { toString: throwing } }],
  ['headers that throw', { status: 429, headers: { get: throwing } }],
  ['headers as a proxy', { status: 429, headers: new Proxy({}, { ownKeys: throwing, get: throwing }) }],
  ['a hint that is an object', { retryAfterMs: {} }],
  ['a frozen error', Object.freeze(new Error('cold'))],
  ['an AggregateError', new AggregateError([new Error('a')], 'many')],
  ['a DOMException', new DOMException('x', 'AbortError')],
  ['one with our brand and nothing else', { [Symbol.for('spillway.ToolExecutionError')]: true }],
  [
    'one with our brand and a kind of tomorrow',
    { [Symbol.for('spillway.ToolExecutionError')]: true, kind: 'abducted', message: 'by aliens' },
  ],
];

describe('R-1.2 whatever was thrown', () => {
  it.each(hostile)('R-1.2 %s becomes an error with a kind, and can be classified', (_name, thrown) => {
    const error = toToolExecutionError(thrown);
    expect(isToolExecutionError(error)).toBe(true);
    expect(Object.keys(TOOL_ERROR_KIND_MEANINGS)).toContain(error.kind);
    expect(typeof error.message).toBe('string');
    expect(['transient', 'permanent']).toContain(classify(thrown).classification);
    expect(['transient', 'permanent']).toContain(classify(error).classification);
  });

  it('R-1.2 anything at all: it never throws', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withNullPrototype: true,
          withObjectString: true,
          withSparseArray: true,
          withTypedArray: true,
        }),
        (thrown) => {
          expect(isToolExecutionError(toToolExecutionError(thrown))).toBe(true);
          expect(['transient', 'permanent']).toContain(classify(thrown).classification);
        },
      ),
    );
  });

  it('R-1.2 what is typed already passes as it is', () => {
    const error = new ToolExecutionError('blocked', 'no');
    expect(toToolExecutionError(error)).toBe(error);
  });

  it('R-1.2 the thrown value is kept as the cause, the message as it was', () => {
    const thrown = new Error('City not found');
    expect(toToolExecutionError(thrown)).toMatchObject({ message: 'City not found', cause: thrown });
    expect(toToolExecutionError('plain words').message).toBe('plain words');
  });

  it.each(['a', 'timeout ', '((((', '404 ', 'connection ', 'rate_', ' '])(
    'R-12.1 a megabyte of "%s" takes under 10 ms',
    (text) => {
      const thrown = new Error(text.repeat(1_000_000 / text.length));
      toToolExecutionError(thrown);
      // The least of a few: the machine may be busy with something else.
      const tookMs = Array.from({ length: 12 }, () => {
        const startedMs = performance.now();
        toToolExecutionError(thrown);
        return performance.now() - startedMs;
      });
      expect(Math.min(...tookMs)).toBeLessThan(10);
    },
  );

  it('R-12.1 text is matched on the first 4 KB', () => {
    expect(toToolExecutionError(new Error(`${'x'.repeat(4_000)} invalid`)).classification).toBe('permanent');
    expect(toToolExecutionError(new Error(`${'x'.repeat(5_000)} invalid`)).classification).toBeUndefined();
  });
});

describe('R-1.2 what is read', () => {
  it.each([
    ['ECONNREFUSED', { kind: 'transport_error', executed: false, uncertain: false }],
    ['ENOTFOUND', { kind: 'transport_error', executed: false, uncertain: false }],
    ['ECONNRESET', { kind: 'transport_error', executed: true, uncertain: true }],
    ['EPIPE', { kind: 'transport_error', executed: true, uncertain: true }],
    ['ETIMEDOUT', { kind: 'timeout', executed: true, uncertain: true }],
    ['ABORT_ERR', { kind: 'canceled' }],
  ])('R-1.1 %s', (code, meaning) => {
    expect(toToolExecutionError(Object.assign(new Error('no'), { code }))).toMatchObject({ code, ...meaning });
  });

  it('R-4.2 an abort is canceled, a timeout of the platform is a timeout', () => {
    expect(toToolExecutionError(new DOMException('This operation was aborted', 'AbortError')).kind).toBe('canceled');
    expect(toToolExecutionError(new DOMException('timed out', 'TimeoutError')).kind).toBe('timeout');
    expect(toToolExecutionError(Object.assign(new Error('The operation timed out'), { name: 'AbortError' })).kind).toBe(
      'canceled',
    );
  });

  it('R-2.4 Retry-After in all its forms', () => {
    const wallNow = (): number => Date.UTC(2026, 0, 1);
    for (const [value, ms] of [
      ['7', 7_000],
      ['0', 0],
      [' 7 ', 7_000],
      ['1.5', 1_500],
      [7, 7_000],
      ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
      ['Thu, 01 Jan 2015 00:01:00 GMT', 0],
      [undefined, undefined],
      [null, undefined],
    ] as const) {
      expect(parseRetryAfter(value, wallNow)).toBe(ms);
    }
    for (const value of ['-1', -1]) expect(parseRetryAfter(value, wallNow)).toBeLessThan(0);
    for (const value of ['', 'soon', '1e3', '7 seconds', '1'.repeat(1_000_000), {}, true, Number.NaN])
      expect(parseRetryAfter(value, wallNow)).toBeNaN();
    expect(parseRetryAfter('70', wallNow, 1)).toBe(70);
  });
});

describe('R-1.2 the brand', () => {
  it('R-1.2 isToolExecutionError knows the errors of another copy of the package', () => {
    class Other extends Error {
      readonly kind = 'timeout';
      readonly retryAfterMs = undefined;
    }
    const other = Object.assign(new Other('from elsewhere'), { [Symbol.for('spillway.ToolExecutionError')]: true });
    expect(other).not.toBeInstanceOf(ToolExecutionError);
    expect(isToolExecutionError(other)).toBe(true);
    expect(toToolExecutionError(other).kind).toBe('timeout');
  });

  it('R-1.2 it is true for nothing else, and never throws', () => {
    for (const [name, value] of hostile)
      if (!name.includes('our brand')) expect(isToolExecutionError(value)).toBe(false);
    expect(isToolExecutionError(new Error('no'))).toBe(false);
    expect(isToolExecutionError({ name: 'ToolExecutionError', kind: 'timeout' })).toBe(false);
  });

  it('R-1.2 a ToolExecutionError is an Error that carries everything it was given', () => {
    const cause = new Error('why');
    const options = {
      code: 'C',
      status: 503,
      retryAfterMs: 5,
      uncertain: true,
      executed: false,
      classification: 'permanent',
      cause,
      details: { a: 1 },
      safeMessage: 'sorry',
    } as const;
    const error = new ToolExecutionError('execution_error', 'message', options);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'ToolExecutionError',
      kind: 'execution_error',
      message: 'message',
      ...options,
    });
    expect(new ToolExecutionError('timeout', 'm')).toMatchObject({ uncertain: false, executed: true });
    expect('cause' in new ToolExecutionError('timeout', 'm')).toBe(false);
  });
});
