import { decideCascade, turnStatus, type SettledNode } from 'spillway/policy';
import { describe, expect, it } from 'vitest';

const node = (state: SettledNode['state'], differs: Partial<SettledNode> = {}): SettledNode => ({
  state,
  optional: false,
  covered: false,
  ...differs,
});

describe('R-5.3 a node one of whose needs has no value', () => {
  it('R-5.3 its default is asked first, then whether it is optional', () => {
    expect(decideCascade({ hasDefault: true, optional: true })).toBe('use_default');
    expect(decideCascade({ hasDefault: true, optional: false })).toBe('use_default');
    expect(decideCascade({ hasDefault: false, optional: true })).toBe('skip');
    expect(decideCascade({ hasDefault: false, optional: false })).toBe('skip_and_escalate');
  });
});

describe('R-5.5 the status of a turn', () => {
  const cases: ReadonlyArray<readonly [string, readonly SettledNode[], number, string]> = [
    ['all have a value, a default too', [node('succeeded'), node('defaulted')], 1, 'completed'],
    ['no tool ran', [node('failed')], 0, 'failed'],
    [
      'no tool ran, and all of it was optional',
      [node('failed', { optional: true }), node('skipped', { optional: true })],
      0,
      'failed',
    ],
    ['a failure that nothing makes up for', [node('succeeded'), node('failed')], 2, 'escalated'],
    ['a failure whose dependents made up for it', [node('failed', { covered: true }), node('defaulted')], 2, 'partial'],
    ['an optional failure', [node('succeeded'), node('failed', { optional: true })], 2, 'partial'],
    [
      'something skipped that is wanted, covered or not',
      [node('succeeded'), node('skipped', { covered: true })],
      1,
      'escalated',
    ],
    ['something skipped that is optional', [node('succeeded'), node('skipped', { optional: true })], 1, 'partial'],
    ['what ran out of time', [node('succeeded'), node('timed_out')], 2, 'partial'],
  ];
  it.each(cases)('R-5.5 %s', (_name, nodes, ran, status) => {
    expect(turnStatus(nodes, ran)).toBe(status);
  });
});
