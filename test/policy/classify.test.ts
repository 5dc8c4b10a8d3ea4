import { describe, expect, it } from 'vitest';
import { TOOL_ERROR_KIND_MEANINGS, type Classification, type ToolErrorKind } from '../../src/contract/error-kind.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { toToolExecutionError } from '../../src/errors/tool.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

const TRANSIENT = [408, 429, 500, 502, 503, 504, 529];
const PERMANENT = [400, 401, 402, 403, 404, 405, 409, 410, 413, 422];

describe('R-1.3 structured fields', () => {
  it.each([
    ...TRANSIENT.map((status) => [status, 'transient'] as const),
    ...PERMANENT.map((status) => [status, 'permanent'] as const),
  ])('R-1.3 status %i is %s', (status, classification) => {
    for (const error of [
      new ToolExecutionError('execution_error', '', { status }),
      Object.assign(new Error('no'), { status }),
      Object.assign(new Error('no'), { statusCode: status }),
      Object.assign(new Error('no'), { response: { status } }),
      new Error('no', { cause: { status: String(status) } }),
      new Error(`It failed (${status})`),
      new Error(`Request failed with status code ${status}`),
      new Error(`HTTP ${status}`),
    ]) {
      expect(classify(error)).toMatchObject({ classification, rule: 'status' });
    }
  });

  it.each([...TRANSIENT, ...PERMANENT])(
    'R-1.3 an answered %i is an execution_error, 408 and 504 a timeout',
    (status) => {
      const error = toToolExecutionError(Object.assign(new Error('no'), { status }));
      expect(error).toMatchObject({
        kind: status === 408 || status === 504 ? 'timeout' : 'execution_error',
        status,
        executed: true,
      });
    },
  );

  it.each([
    'ETIMEDOUT',
    'ECONNRESET',
    'ECONNREFUSED',
    'EPIPE',
    'EAI_AGAIN',
    'ENOTFOUND',
    'EAI_FAIL',
    'ESERVFAIL',
    'ENODATA',
  ])('R-1.3 code %s is transient', (code) => {
    for (const error of [
      Object.assign(new Error('no'), { code }),
      new Error('fetch failed', { cause: Object.assign(new Error('no'), { code }) }),
      { code },
    ]) {
      expect(classify(error).classification).toBe('transient');
    }
    expect(classify(new ToolExecutionError('execution_error', '', { code }))).toMatchObject({
      classification: 'transient',
      rule: 'code',
    });
  });

  it.each([
    'insufficient_quota',
    'invalid_api_key',
    'model_not_found',
    'unsupported_model',
    'unsupported_operation',
    '-32602',
    '-32601',
  ])('R-1.3 code %s is permanent', (code) => {
    expect(classify({ code })).toMatchObject({ classification: 'permanent', rule: 'code' });
  });

  it('R-1.3 a retry hint alone is transient', () => {
    expect(classify(new ToolExecutionError('execution_error', '', { retryAfterMs: 5 }))).toMatchObject({
      classification: 'transient',
      rule: 'retry_hint',
    });
    expect(
      classify(new ToolExecutionError('execution_error', '', { retryAfterMs: 5, classification: 'permanent' })),
    ).toMatchObject({ classification: 'transient', rule: 'retry_hint' });
  });
});

describe('R-1.3 the order of the rules', () => {
  const cases: ReadonlyArray<
    readonly [string, ToolExecutionError, Record<string, Classification>, Classification, string]
  > = [
    [
      'an override beats a status',
      new ToolExecutionError('execution_error', '', { status: 503 }),
      { 503: 'permanent' },
      'permanent',
      'override',
    ],
    [
      'an override beats a status the other way',
      new ToolExecutionError('execution_error', '', { status: 404 }),
      { 404: 'transient' },
      'transient',
      'override',
    ],
    [
      'an override names a code',
      new ToolExecutionError('transport_error', '', { code: 'ECONNRESET' }),
      { ECONNRESET: 'permanent' },
      'permanent',
      'override',
    ],
    [
      'an override names a kind',
      new ToolExecutionError('timeout', ''),
      { timeout: 'permanent' },
      'permanent',
      'override',
    ],
    [
      'an override of something else does nothing',
      new ToolExecutionError('timeout', ''),
      { 503: 'permanent' },
      'transient',
      'kind',
    ],
    [
      'an override of a name that every object has does nothing',
      new ToolExecutionError('execution_error', '', { code: 'constructor' }),
      {},
      'transient',
      'default',
    ],
    [
      'a status beats the entrance',
      new ToolExecutionError('execution_error', '', { status: 503, classification: 'permanent' }),
      {},
      'transient',
      'status',
    ],
    ['a status beats the kind', new ToolExecutionError('timeout', '', { status: 404 }), {}, 'permanent', 'status'],
    [
      'a permanent status beats a hint',
      new ToolExecutionError('execution_error', '', { status: 403, retryAfterMs: 5 }),
      {},
      'permanent',
      'status',
    ],
    [
      'a code beats the entrance',
      new ToolExecutionError('execution_error', '', { code: 'EPIPE', classification: 'permanent' }),
      {},
      'transient',
      'code',
    ],
    [
      'an unknown status leaves it to the entrance',
      new ToolExecutionError('execution_error', '', { status: 418, classification: 'permanent' }),
      {},
      'permanent',
      'entrance',
    ],
    [
      'the entrance beats the kind',
      new ToolExecutionError('timeout', '', { classification: 'permanent' }),
      {},
      'permanent',
      'entrance',
    ],
    ['the kind beats the default', new ToolExecutionError('invalid_parameters', ''), {}, 'permanent', 'kind'],
    [
      'a negative hint is no sign of recovery',
      new ToolExecutionError('invalid_parameters', '', { retryAfterMs: -1 }),
      {},
      'permanent',
      'kind',
    ],
    ['transient is the safe default', new ToolExecutionError('execution_error', ''), {}, 'transient', 'default'],
    ['for our own unknown too', new ToolExecutionError('internal_error', ''), {}, 'transient', 'default'],
  ];
  it.each(cases)('R-1.3 %s', (_name, error, overrides, classification, rule) => {
    const said = classify(error, overrides);
    expect(said).toMatchObject({ classification, rule });
    expect(said.reason).not.toBe('');
  });

  it('R-1.1 every kind has the class of the table', () => {
    const table: Readonly<Record<ToolErrorKind, readonly [boolean, Classification | undefined]>> = {
      unknown_tool: [false, 'permanent'],
      not_permitted: [false, 'permanent'],
      invalid_parameters: [false, 'permanent'],
      limit_exceeded: [false, 'permanent'],
      canceled: [false, 'permanent'],
      timeout: [true, 'transient'],
      transport_error: [true, 'transient'],
      execution_error: [true, undefined],
      internal_error: [true, undefined],
      circuit_open: [false, 'transient'],
      dependency_failed: [false, 'permanent'],
      deadline_exceeded: [false, 'transient'],
      conflict: [false, 'permanent'],
      duplicate_in_flight: [false, 'transient'],
      blocked: [false, 'permanent'],
      retry_budget_exhausted: [false, 'transient'],
      store_unavailable: [false, 'transient'],
    };
    const said = Object.fromEntries(
      Object.entries(TOOL_ERROR_KIND_MEANINGS).map(([kind, { executed, classification }]) => [
        kind,
        [executed, classification],
      ]),
    );
    expect(said).toStrictEqual(table);
    for (const [kind, [executed, classification]] of Object.entries(table)) {
      expect(classify(new ToolExecutionError(kind as ToolErrorKind, '')).classification).toBe(
        classification ?? 'transient',
      );
      expect(new ToolExecutionError(kind as ToolErrorKind, '').executed).toBe(executed);
      expect(new ToolExecutionError(kind as ToolErrorKind, '', { executed: !executed }).executed).toBe(!executed);
    }
  });
});

describe('SI-T 1 the seed’s messages', () => {
  it.each([
    ['SI-T 1.1', 'Connection timeout after 30s', {}, 'transient'],
    ['SI-T 1.2', 'Invalid airport code: XYZ', {}, 'permanent'],
    ['SI-T 1.3', 'Rate limit exceeded (429)', {}, 'transient'],
    ['SI-T 1.4', 'Authentication failed (401)', {}, 'permanent'],
    ['SI-T 1.5', 'Service unavailable (503)', { '503': 'permanent' }, 'permanent'],
    ['SI-T 1.5, without the override', 'Service unavailable (503)', {}, 'transient'],
  ] as const)('%s %s', (_id, message, overrides, classification) => {
    expect(classify(new Error(message), overrides).classification).toBe(classification);
    expect(classify(message, overrides).classification).toBe(classification);
    expect(classify(new Error(message.toUpperCase()), overrides).classification).toBe(classification);
  });

  it.each([
    ['Rate limit exceeded', 'transient'],
    ['Too many requests', 'transient'],
    ['The server is overloaded', 'transient'],
    ['Request timed out', 'transient'],
    ['read ECONNRESET', 'transient'],
    ['socket hang up', 'transient'],
    ['Connection reset by peer', 'transient'],
    ['network error', 'transient'],
    ['getaddrinfo ENOTFOUND api.example.com', 'transient'],
    ['DNS lookup failed', 'transient'],
    ['TLS handshake failed', 'transient'],
    ['Service temporarily unavailable', 'transient'],
    ['Unauthorized', 'permanent'],
    ['Invalid API key', 'permanent'],
    ['Authentication failed', 'permanent'],
    ['insufficient_quota', 'permanent'],
    ['Quota exceeded', 'permanent'],
    ['Payment required', 'permanent'],
    ['Validation failed: date', 'permanent'],
    ['City not found', 'permanent'],
    ['Unsupported operation: refund', 'permanent'],
    ['Response does not match the schema', 'permanent'],
    ['something else', 'transient'],
  ] as const)('R-12.1 "%s" is %s', (message, classification) => {
    expect(classify(new Error(message)).classification).toBe(classification);
  });

  it('R-12.1 structure wins over text, and short words count only as words', () => {
    expect(classify(Object.assign(new Error('Rate limit exceeded'), { status: 400 })).classification).toBe('permanent');
    expect(classify(Object.assign(new Error('Invalid input'), { code: 'ECONNRESET' })).classification).toBe(
      'transient',
    );
    expect(toToolExecutionError(new Error('hassle with titles')).kind).toBe('execution_error');
  });
});
