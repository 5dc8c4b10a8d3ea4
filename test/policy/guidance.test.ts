import { decideRecovery, ToolExecutionError, type FailureNotification, type GuidanceRule } from 'spillway';
import { describe, expect, it } from 'vitest';

/** A failure that would be retried, and that has an alternative. */
const usual: FailureNotification = {
  toolName: 'search',
  callId: 'c1',
  turnId: 't1',
  error: new ToolExecutionError('transport_error', 'lost'),
  classification: 'transient',
  breakerState: 'closed',
  attempt: 2,
  maxAttempts: 5,
  elapsedMs: 10,
  maxTotalTimeMs: 2_000,
  nextDelayMs: 100,
  turnRemainingMs: 300_000,
  budgetAvailable: true,
  alternatives: ['backup'],
  required: true,
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: false,
  cost: 10,
};
const decide = (
  rule: Omit<GuidanceRule, 'reason'>,
  differs: Partial<FailureNotification> = {},
): readonly [string, string] => {
  const { strategy, code } = decideRecovery({
    ...usual,
    ...differs,
    guidance: [{ reason: 'the host says so', ...rule }],
  });
  return [strategy, code];
};
const escalates = ['escalate', 'guidance'];
const retries = ['retry', 'transient'];

describe('R-6.3 when a rule applies', () => {
  const cases: ReadonlyArray<readonly [string, NonNullable<GuidanceRule['when']>, boolean]> = [
    ['its tool', { tools: ['other', 'search'] }, true],
    ['another tool', { tools: ['other'] }, false],
    ['its kind', { kinds: ['timeout', 'transport_error'] }, true],
    ['another kind', { kinds: ['timeout'] }, false],
    ['its class', { classification: 'transient' }, true],
    ['another class', { classification: 'permanent' }, false],
    ['from a cost on, at that cost', { costFrom: 10 }, true],
    ['from a higher cost on', { costFrom: 10.5 }, false],
    ['from an attempt on, at that attempt', { attemptFrom: 2 }, true],
    ['from a later attempt on', { attemptFrom: 3 }, false],
    [
      'all of it',
      { tools: ['search'], kinds: ['transport_error'], classification: 'transient', costFrom: 1, attemptFrom: 1 },
      true,
    ],
    [
      'all but one of it',
      { tools: ['search'], kinds: ['transport_error'], classification: 'transient', costFrom: 1, attemptFrom: 9 },
      false,
    ],
  ];
  it.each(cases)('R-6.3 %s', (_name, when, applies) => {
    expect(decide({ when, force: 'escalate' })).toEqual(applies ? escalates : retries);
  });

  it('R-6.3 a tool whose cost nobody said costs nothing', () => {
    const { cost: _, ...free } = usual;
    const rule = (costFrom: number): GuidanceRule => ({ reason: 'dear', when: { costFrom }, force: 'escalate' });
    expect(decideRecovery({ ...free, guidance: [rule(0)] }).strategy).toBe('escalate');
    expect(decideRecovery({ ...free, guidance: [rule(0.01)] }).strategy).toBe('retry');
  });
});

describe('R-6.3 what a rule does', () => {
  it('R-6.3 what is forbidden is not done', () => {
    expect(decide({ forbid: ['retry'] })).toEqual(['alternative', 'guidance']);
    expect(decide({ forbid: ['retry', 'alternative'] })).toEqual(escalates);
    expect(decide({ forbid: ['retry', 'alternative', 'escalate', 'partial', 'fail'] })).toEqual(['fail', 'guidance']);
  });

  it('R-6.3 what is forced and cannot be done leaves the others as they were', () => {
    expect(decide({ force: 'alternative' })).toEqual(['alternative', 'guidance']);
    expect(decide({ force: 'alternative' }, { alternatives: [] })).toEqual(retries);
    expect(decide({ force: 'retry' }, { attempt: 5, alternatives: [] })).toEqual(['escalate', 'attempts_exhausted']);
  });

  it('R-6.3 what is preferred comes first, the rest in its own order', () => {
    expect(decide({ prefer: ['partial', 'alternative'] })).toEqual(['partial', 'guidance']);
    expect(decide({ prefer: ['alternative'], forbid: ['alternative'] })).toEqual(retries);
  });
});
