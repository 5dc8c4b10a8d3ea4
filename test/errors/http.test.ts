import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { toToolError } from '../../src/errors/read-error.ts';

const now = Date.UTC(2026, 0, 1);
const hint = (thrown: unknown): number | undefined => toToolError(thrown, 'http', () => now).retryAfterMs;

describe('R-2.4 Retry-After, wherever a client keeps it', () => {
  it.each<[string, (headers: Record<string, string>) => unknown]>([
    ['a Response', (headers) => new Response(null, { status: 503, headers })],
    [
      'Headers on the error',
      (headers) => Object.assign(new Error('x'), { status: 503, headers: new Headers(headers) }),
    ],
    [
      'a plain object in any case',
      (headers) => ({
        response: {
          status: 503,
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])),
        },
      }),
    ],
    [
      'lists of values',
      (headers) => ({
        statusCode: 503,
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
      }),
    ],
    ['the AI SDK', (headers) => ({ statusCode: 503, responseHeaders: headers })],
    ['a cause', (headers) => new Error('x', { cause: { status: 503, headers } })],
  ])('%s', (_name, make) => {
    expect(hint(make({ 'retry-after': '7' }))).toBe(7_000);
    expect(hint(make({ 'retry-after': '1.5' }))).toBe(1_500);
    expect(hint(make({ 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' }))).toBe(9_000);
    expect(hint(make({ 'retry-after-ms': '30', 'retry-after': '7' }))).toBe(30);
    expect(hint(make({ 'retry-after': '-1' }))).toBeLessThan(0);
    expect(hint(make({ 'retry-after': 'soon' }))).toBeNaN();
    expect(hint(make({}))).toBeUndefined();
  });
});

describe('an answer', () => {
  it('has a message of its own', () => {
    expect(toToolError(new Response(null, { status: 404, statusText: 'Not Found' }), 'http').message).toBe(
      'HTTP 404 Not Found',
    );
    expect(toToolError({ status: 404 }, 'http').message).toBe('HTTP 404');
    expect(toToolError(Object.assign(new Error('mine'), { status: 404 }), 'http').message).toBe('mine');
  });

  it('is not executed nowhere: the tool ran, even if it only said no', () => {
    for (const status of [400, 401, 404, 429, 500, 503])
      expect(toToolError(new Response(null, { status }), 'http')).toMatchObject({
        kind: 'execution_error',
        executed: true,
        uncertain: false,
      });
    for (const status of [408, 504])
      expect(toToolError(new Response(null, { status }), 'http')).toMatchObject({ kind: 'timeout', uncertain: true });
  });

  it('a code that says more than its status', () => {
    expect(toToolError({ status: 400, name: 'ThrottlingException' }, 'http')).toMatchObject({
      code: 'ThrottlingException',
      classification: 'transient',
    });
    expect(toToolError({ status: 403, code: 'rate_limit_exceeded' }, 'http').classification).toBe('permanent');
  });

  it('an error of ours passes unchanged', () => {
    const ours = new ToolExecutionError('blocked', 'no');
    for (const where of ['llm', 'mcp', 'http', 'node', 'tool'] as const) expect(toToolError(ours, where)).toBe(ours);
  });
});

it('what nobody explains is the failure of who threw it; from Node, a fault of the process', () => {
  const kinds = (['llm', 'mcp', 'http', 'node', 'tool'] as const).map(
    (where) => toToolError(new Error('hm'), where).kind,
  );
  expect(kinds).toEqual(['execution_error', 'execution_error', 'execution_error', 'internal_error', 'execution_error']);
});
