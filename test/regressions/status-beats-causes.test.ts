// Was: a 400 whose cause carried ETIMEDOUT was a timeout, and retried. Now: the outermost structured status or code
// decides.
import { describe, expect, it } from 'vitest';
import { toToolError, type Entrance } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { aws, error } from '../errors/thrown.ts';

const PLACES: readonly Entrance[] = ['llm', 'mcp', 'http', 'node', 'tool'];
const because = (cause: object, fields: object): Error => Object.assign(new Error('Bad request', { cause }), fields);
const codes = ['ETIMEDOUT', 'ECONNRESET', 'ThrottlingException', 'rate_limit_error', 'insufficient_quota'] as const;

describe('R-1.3 a status is not beaten by what lies behind it', () => {
  it.each(PLACES.flatMap((place) => codes.map((code) => [place, code] as const)))(
    'R-1.3 %s: a 400 whose cause says %s is permanent',
    (place, code) => {
      const read = toToolError(because(error('behind', { code }), { status: 400 }), place);
      expect(classify(read)).toMatchObject({ classification: 'permanent' });
      expect(read).toMatchObject({ kind: 'execution_error', status: 400, uncertain: false });
    },
  );

  it('R-1.3 nor by the cause of a cause', () => {
    expect(classify(because(because(error('x', { code: 'ETIMEDOUT' }), {}), { status: 422 })).classification).toBe(
      'permanent',
    );
  });

  it('R-1.3 AWS: a code and 400 on one error', () => {
    expect(classify(aws('ThrottlingException', 400, 'Rate exceeded')).classification).toBe('transient');
    expect(toToolError(aws('RequestTimeout', 400, 'idle'), 'tool').kind).toBe('timeout');
  });

  it('R-1.3 a code in front of a status is the outer word', () => {
    expect(toToolError(because(error('x', { status: 400 }), { code: 'ECONNRESET' }), 'tool')).toMatchObject({
      kind: 'transport_error',
    });
    expect(classify(because(error('x', { status: 400 }), { code: 'ECONNRESET' })).classification).toBe('transient');
  });

  it('R-1.3 a wrapper without either lets its cause speak', () => {
    expect(classify(new Error('Search failed', { cause: error('x', { status: 404 }) })).classification).toBe(
      'permanent',
    );
    expect(toToolError(new Error('Search failed', { cause: error('x', { code: 'ETIMEDOUT' }) }), 'tool').kind).toBe(
      'timeout',
    );
  });
});
