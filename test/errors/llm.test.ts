import { describe, expect, it } from 'vitest';
import { LLM_ERROR_KIND_MEANINGS, LlmError, isLlmError, type LlmErrorKind } from '../../src/contract/llm-error.ts';
import { toToolError } from '../../src/errors/read-error.ts';
import { toLlmError } from '../../src/errors/llm.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

/** Every pattern that AGENT lists for a model's errors, and the ordinary words they add to. */
const PATTERNS: Readonly<Record<LlmErrorKind, readonly string[]>> = {
  auth_error: ['invalid api key', 'unauthenticated', 'access denied', 'forbidden', 'unauthorized', 'authentication'],
  quota_exceeded: ['insufficient_quota', 'quota exceeded', 'payment required', 'credits', 'billing'],
  rate_limit: ['too many requests', 'ratelimit', 'rate_limit', 'overload', 'rate limit'],
  timeout: ['timed out', 'deadline exceeded', 'context deadline exceeded', 'etimedout', 'econnaborted', 'timeout'],
  network_error: [
    'socket hang up',
    'epipe',
    'eai_again',
    'dns',
    'tls',
    'ssl',
    'certificate',
    'network',
    'econnreset',
    'econnrefused',
    'enotfound',
  ],
  model_error: ['model not found', 'unknown model', 'invalid model', 'unsupported model', 'not available'],
};
const ORDER: readonly LlmErrorKind[] = [
  'auth_error',
  'quota_exceeded',
  'rate_limit',
  'timeout',
  'network_error',
  'model_error',
];
const patterns = ORDER.flatMap((kind) => PATTERNS[kind].map((pattern) => [pattern, kind] as const));

describe('R-12.1 the patterns', () => {
  it.each(patterns)('"%s" is %s', (pattern, kind) => {
    for (const text of [pattern, pattern.toUpperCase(), `It failed: ${pattern}.`]) {
      expect(toLlmError(new Error(text)).kind).toBe(kind);
      expect(toLlmError(text).kind).toBe(kind);
    }
  });

  it.each(['timeout', 'timed out', 'deadline exceeded', 'context deadline exceeded', 'etimedout'])(
    'mcp: "%s" is a timeout',
    (pattern) => {
      for (const text of [pattern, pattern.toUpperCase(), `MCP error -32000: ${pattern}`])
        expect(toToolError(new Error(text), 'mcp').kind).toBe('timeout');
    },
  );

  it('they are asked in order: a text of two kinds is the first', () => {
    for (const [place, kind] of ORDER.entries()) {
      for (const later of ORDER.slice(place + 1))
        expect(toLlmError(`${PATTERNS[later][0]}; ${PATTERNS[kind][0]}`).kind).toBe(kind);
    }
  });

  it('short ones count only as words', () => {
    for (const text of ['hassle', 'titles', 'dnsmasq', 'wassily', 'atlsx'])
      expect(toLlmError(text).kind).toBe('model_error');
  });
});

describe('R-12.1 structure first', () => {
  it('a 5xx is a network_error, whatever it says', () => {
    for (const status of [500, 501, 502, 503, 504, 520, 529]) {
      expect(toLlmError(Object.assign(new Error('rate limit, quota exceeded, unauthorized'), { status })).kind).toBe(
        'network_error',
      );
    }
  });

  it('a 429 with insufficient_quota is quota_exceeded, permanent', () => {
    for (const fields of [
      { code: 'insufficient_quota' },
      { error: { code: 'insufficient_quota' } },
      { error: { type: 'insufficient_quota' } },
      { type: 'insufficient_quota' },
    ]) {
      expect(toLlmError({ status: 429, ...fields })).toMatchObject({
        kind: 'quota_exceeded',
        classification: 'permanent',
        code: 'insufficient_quota',
      });
      expect(classify(toToolError({ status: 429, ...fields }, 'llm')).classification).toBe('permanent');
    }
  });

  it('a status beats the words', () => {
    expect(toLlmError(Object.assign(new Error('overloaded'), { status: 401 })).kind).toBe('auth_error');
    expect(toLlmError(Object.assign(new Error('quota exceeded'), { status: 429 }))).toMatchObject({
      kind: 'rate_limit',
      classification: 'transient',
    });
  });

  it('quota and model errors are permanent unless structure says otherwise', () => {
    expect(toLlmError('it made no sense').classification).toBe('permanent');
    expect(toLlmError('quota exceeded').classification).toBe('permanent');
    expect(toLlmError({ message: 'it made no sense', isRetryable: true }).classification).toBe('transient');
    expect(toLlmError({ message: 'it made no sense', headers: { 'retry-after': '3' } })).toMatchObject({
      kind: 'model_error',
      classification: 'transient',
      retryAfterMs: 3_000,
    });
    expect(toLlmError({ message: 'it made no sense', headers: { 'x-should-retry': 'true' } }).classification).toBe(
      'transient',
    );
  });

  it('every kind has its meaning, in the order asked', () => {
    expect(Object.keys(LLM_ERROR_KIND_MEANINGS)).toEqual(ORDER);
    expect(ORDER.filter((kind) => LLM_ERROR_KIND_MEANINGS[kind].retriable)).toEqual([
      'rate_limit',
      'timeout',
      'network_error',
    ]);
    for (const kind of ORDER) expect(LLM_ERROR_KIND_MEANINGS[kind].description).toMatch(/\.$/);
  });
});

describe('LlmError', () => {
  it('carries what was known, and keeps what was thrown', () => {
    const thrown = Object.assign(new Error('Too many requests'), {
      status: 429,
      headers: new Headers({ 'retry-after-ms': '250' }),
      error: { type: 'rate_limit_error' },
    });
    const error = toLlmError(thrown);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'LlmError',
      kind: 'rate_limit',
      classification: 'transient',
      retryAfterMs: 250,
      status: 429,
      code: 'rate_limit_error',
      message: 'Too many requests',
      cause: thrown,
    });
    expect(toLlmError(error)).toBe(error);
  });

  it('is known across duplicate installs', () => {
    const other = Object.assign(new Error('elsewhere'), {
      [Symbol.for('spillway.LlmError')]: true,
      kind: 'timeout',
      classification: 'transient',
    });
    expect(isLlmError(other)).toBe(true);
    expect(toLlmError(other)).toBe(other);
    expect(isLlmError(new Error('no'))).toBe(false);
    expect(
      isLlmError(
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('trap');
            },
          },
        ),
      ),
    ).toBe(false);
  });

  it('of a kind of tomorrow is read anew', () => {
    expect(toLlmError({ [Symbol.for('spillway.LlmError')]: true, kind: 'abducted', message: 'timed out' }).kind).toBe(
      'timeout',
    );
  });

  it('as a tool’s error says what it said before', () => {
    for (const where of ['llm', 'tool', 'node'] as const) {
      expect(toToolError(toLlmError(new DOMException('x', 'AbortError')), where).kind).toBe('canceled');
      expect(toToolError(toLlmError({ status: 503 }), where)).toMatchObject({ kind: 'execution_error', status: 503 });
      expect(toToolError(new LlmError('timeout', 'late'), where)).toMatchObject({ kind: 'timeout', uncertain: true });
      expect(toToolError(new LlmError('network_error', 'gone'), where)).toMatchObject({
        kind: 'transport_error',
        uncertain: true,
      });
      expect(toToolError(new LlmError('model_error', 'no'), where)).toMatchObject({
        kind: 'execution_error',
        classification: 'permanent',
      });
    }
  });
});
