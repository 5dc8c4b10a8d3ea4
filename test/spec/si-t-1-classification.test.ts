import { classify, type Classification, type ClassificationOverrides } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { World, answers, fails, noBackoff } from '../call/kit.ts';

interface Condition {
  readonly id: string;
  readonly name: string;
  readonly toolName: string;
  readonly message: string;
  readonly overrides?: ClassificationOverrides;
  readonly expected: Classification;
  readonly rule: string;
}
const CONDITIONS: readonly Condition[] = [
  {
    id: '1.1',
    name: 'network timeout is transient',
    toolName: 'flight_search',
    message: 'Connection timeout after 30s',
    expected: 'transient',
    rule: 'kind',
  },
  {
    id: '1.2',
    name: 'invalid input is permanent',
    toolName: 'flight_search',
    message: 'Invalid airport code: XYZ',
    expected: 'permanent',
    rule: 'words',
  },
  {
    id: '1.3',
    name: 'rate limit is transient',
    toolName: 'flight_search',
    message: 'Rate limit exceeded (429)',
    expected: 'transient',
    rule: 'status',
  },
  {
    id: '1.4',
    name: 'authentication failure is permanent',
    toolName: 'flight_search',
    message: 'Authentication failed (401)',
    expected: 'permanent',
    rule: 'status',
  },
  {
    id: '1.5',
    name: 'the manifest can override',
    toolName: 'custom_api',
    message: 'Service unavailable (503)',
    overrides: { '503': 'permanent' },
    expected: 'permanent',
    rule: 'override',
  },
];

describe('SI-T 1 error classification', () => {
  it.each(CONDITIONS)('SI-T $id $name', ({ toolName, message, overrides = {}, expected, rule }) =>
    marbles((m) => {
      expect(classify(new Error(message), overrides)).toMatchObject({ classification: expected, rule });
      expect(classify(new Error(message), overrides).reason).not.toBe('');

      const world = new World(m);
      const tried = world.scripted(toolName, [fails(10, new Error(message)), answers(10)], {
        retry: noBackoff,
        classification: overrides,
      });
      const result = world.call(world.layer([tried]), toolName);
      expect(tried.starts).toStrictEqual(expected === 'transient' ? [0, 10] : [0]);
      expect(result.status).toBe(expected === 'transient' ? 'success' : 'error');
    })(),
  );

  it('SI-T 1.5 without the override a 503 is transient', () => {
    expect(classify(new Error('Service unavailable (503)'))).toMatchObject({
      classification: 'transient',
      rule: 'status',
    });
  });
});
