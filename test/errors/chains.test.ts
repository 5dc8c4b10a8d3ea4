import { toToolExecutionError } from 'spillway';
import { describe, expect, it } from 'vitest';

/** Errors, each the cause of the one before it. */
const chain = (...links: readonly object[]): Error => {
  let cause: Error | undefined;
  for (const fields of links.toReversed())
    cause = Object.assign(new Error('it failed', cause === undefined ? {} : { cause }), fields);
  return cause ?? new Error('it failed');
};

describe('R-1.3 of several errors, one the cause of the other', () => {
  it.each([
    [[{ status: 503 }, { status: 404 }], 503],
    [[{ status: 404 }, { status: 503 }], 404],
    [[{}, { statusCode: 429 }, { status: 401 }], 429],
    [[{ status: 200 }, { response: { status: 502 } }, { status: 400 }], 502],
  ])('R-1.3 %j: the status of the outermost that has one', (links, status) => {
    expect(toToolExecutionError(chain(...links)).status).toBe(status);
  });

  it('R-2.4 so with the hint when to ask again', () => {
    expect(
      toToolExecutionError(chain({ status: 503, headers: { 'retry-after': '2' } }, { headers: { 'retry-after': '9' } }))
        .retryAfterMs,
    ).toBe(2_000);
    expect(toToolExecutionError(chain({ status: 503 }, { headers: { 'retry-after': '9' } })).retryAfterMs).toBe(9_000);
  });
});

describe('R-1.2 an abort in mid-call', () => {
  it.each([
    ['of the platform', new DOMException('This operation was aborted', 'AbortError')],
    ['of Node', Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' })],
    ['of axios', Object.assign(new Error('canceled'), { name: 'CanceledError', code: 'ERR_CANCELED' })],
  ])('R-1.2 %s: the tool ran, and may have taken effect', (_name, thrown) => {
    expect(toToolExecutionError(thrown)).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
  });
});
