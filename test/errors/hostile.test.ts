import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOOL_ERROR_KIND_MEANINGS } from '../../src/contract/error-kind.ts';
import { LLM_ERROR_KIND_MEANINGS } from '../../src/contract/llm-error.ts';
import { isToolExecutionError } from '../../src/contract/tool-error.ts';
import { toToolError, type Entrance } from '../../src/errors/read-error.ts';
import { readFields } from '../../src/errors/fields.ts';
import { toLlmError } from '../../src/errors/llm.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

const EVERYWHERE: readonly Entrance[] = ['llm', 'mcp', 'http', 'node', 'tool'];
const throwing = (): never => {
  throw new Error('hostile');
};
const revoked = (target: object): object => {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
};
const endless: object = new Proxy(() => undefined, { get: () => endless });
const KEYS = [
  'message',
  'name',
  'code',
  'status',
  'statusCode',
  'type',
  'error',
  'cause',
  'errors',
  'lastError',
  'headers',
  'response',
  'responseHeaders',
  'metadata',
  'details',
  'isError',
  'content',
  'kind',
  'constructor',
  'isRetryable',
  'retryAfterMs',
  '$metadata',
  'data',
  'statusText',
];
const cyclic = new Error('round');
/** Each of its errors is itself again. */
const manifold = new AggregateError([]);
manifold.errors = Array.from({ length: 100 }, () => manifold);
cyclic.cause = cyclic;

const survives = (thrown: unknown): void => {
  for (const where of EVERYWHERE) {
    const error = toToolError(thrown, where);
    expect(isToolExecutionError(error)).toBe(true);
    expect(Object.keys(TOOL_ERROR_KIND_MEANINGS)).toContain(error.kind);
    expect(typeof error.message).toBe('string');
    expect(['transient', 'permanent']).toContain(classify(error).classification);
  }
  const { error: read, classification } = readFields(thrown, () => 0);
  expect(Object.keys(TOOL_ERROR_KIND_MEANINGS)).toContain(read.kind);
  expect(['transient', 'permanent']).toContain(classification);
  const error = toLlmError(thrown);
  expect(Object.keys(LLM_ERROR_KIND_MEANINGS)).toContain(error.kind);
  expect(['transient', 'permanent']).toContain(error.classification);
};

describe('R-1.2 whatever was thrown', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['a symbol', Symbol('s')],
    ['a bigint', 10n],
    ['NaN', Number.NaN],
    ['no prototype', Object.create(null)],
    ['its own cause', cyclic],
    ['a revoked proxy', revoked({})],
    ['errors that are revoked', { errors: revoked([]) }],
    ['errors that throw', { errors: new Proxy([{}], { get: throwing }) }],
    ['errors with holes', { errors: Array(3) }],
    ['errors of errors without end', manifold],
    ['a revoked function', revoked(() => 1)],
    ['a result whose content is revoked', { isError: true, content: revoked([]) }],
    ['a result whose content throws', { isError: true, content: new Proxy([{}], { get: throwing }) }],
    ['a result of a million contents', { isError: true, content: Array.from({ length: 1_000_000 }, () => ({})) }],
    ['a result that says it is endless', { isError: true, content: { length: Number.POSITIVE_INFINITY } }],
    ['an object without end', endless],
    ['an error without end', { isError: true, content: endless, headers: endless, cause: endless, status: endless }],
    [
      'getters that throw',
      Object.defineProperties({}, Object.fromEntries(KEYS.map((key) => [key, { get: throwing }]))),
    ],
    [
      'a proxy that throws',
      new Proxy({}, { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing }),
    ],
    ['headers that throw', { status: 429, headers: { get: throwing } }],
    ['headers whose keys throw', { status: 429, headers: new Proxy({}, { ownKeys: throwing }) }],
    [
      'a model error with a hostile cause',
      { [Symbol.for('spillway.LlmError')]: true, kind: 'timeout', cause: revoked({}) },
    ],
    [
      'a model error in a circle',
      (() => {
        const own: Record<PropertyKey, unknown> = { [Symbol.for('spillway.LlmError')]: true, kind: 'timeout' };
        own['cause'] = own;
        return own;
      })(),
    ],
    [
      'a model error whose fields throw',
      Object.defineProperties(
        { [Symbol.for('spillway.LlmError')]: true },
        Object.fromEntries(KEYS.map((key) => [key, { get: key === 'kind' ? () => 'timeout' : throwing }])),
      ),
    ],
  ])('%s', (_name, thrown) => survives(thrown));

  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
  });

  it('anything at all', () => {
    fc.assert(fc.property(anything, survives), { numRuns: 200 });
  });

  it('anything in any field that is read', () => {
    const fields = fc.dictionary(
      fc.constantFrom(...KEYS),
      fc.oneof(
        anything,
        fc.integer({ min: -33_000, max: 700 }),
        fc.constantFrom('rate limit', '429', 'ECONNRESET', 'insufficient_quota', true),
      ),
      { noNullPrototype: false },
    );
    fc.assert(
      fc.property(fields, fc.boolean(), (own, wrapped) =>
        survives(wrapped ? { cause: own, error: own, response: own } : own),
      ),
      { numRuns: 300 },
    );
  });
});

describe('R-12.1 linear time', () => {
  const unit = [
    'a',
    ' ',
    '4',
    '\n',
    '-',
    '(',
    '"',
    '’',
    'İ',
    '😀',
    '404 ',
    '404 a',
    '429: ',
    'timeout ',
    'connection ',
    'network x ',
    'rate_',
    'invalid ',
    'invalid required ',
    'no credits ',
    'a credits ',
    'quota exceeded your ',
    'exceeded your aaaaaaaaaaaaaaa ',
    'certificate ',
    '"status": ',
    'status code ',
    'error an http status code ',
    'http/1.',
    'only a are ',
    'no a b c d ',
    'expected a',
    'mcp error -32602: ',
    'tool aaa ',
    'ssl 1.2',
    'dns a b c d e ',
    'per ',
    'token has been ',
    'unparse',
    'request was ',
    'not aaed ',
    'no a ',
    '"a b" ',
    "'a b ",
    '/a/b ',
    'https://a ',
    'exceeded the max ',
    'limit per ',
    'as per a_',
    '451 4.3.',
    'directory a ',
    'another a b ',
    'auth a b ',
    'field failed ',
    'could not be a ',
    'has been already ',
    'cannot a ',
    'could not load a a credentials ',
    'exceeded a size ',
    'exceeded in flight a ',
    'more a than ',
    'neither a nor b ',
    'check a b and ',
    'no a provided ',
    'no a was ',
    'there is no a ',
    'cannot be aaaa ',
    'cannot a b for ',
    'cannot apply a on ',
    'only a b c d e f ',
    'not a correct ',
    'is an a not',
    'birth a ',
    'you need a ',
    'missing a a ',
    'has no a a a ',
    'rate a a a ',
    'quota for a ',
    'empty a response',
    'server did not ',
    'by another concurrent ',
    'could not parse the ',
    'response a b c ',
  ];

  it.each(unit)('a megabyte of "%s" takes under 10 ms', (text) => {
    const megabyte = text.repeat(Math.ceil(1_000_000 / text.length));
    const made: readonly unknown[] = [
      megabyte,
      new Error(megabyte),
      { isError: true, content: [{ type: 'text', text: megabyte }] },
      new Error('x', { cause: new Error(megabyte) }),
      {
        name: megabyte,
        code: megabyte,
        type: megabyte,
        status: megabyte,
        statusText: megabyte,
        error: { message: megabyte, type: megabyte },
        headers: { 'retry-after': megabyte, 'retry-after-ms': megabyte },
      },
    ];
    for (const where of EVERYWHERE) {
      for (const thrown of made) {
        // The least of as many as it takes: the machine may be busy with something else for a while.
        let leastMs = Infinity;
        for (let tries = 0; tries < 200 && leastMs >= 10; tries += 1) {
          const startMs = performance.now();
          toToolError(thrown, where);
          leastMs = Math.min(leastMs, performance.now() - startMs);
        }
        expect(leastMs).toBeLessThan(10);
      }
    }
  });
});
