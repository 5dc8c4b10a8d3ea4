import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FailureNotification, RecoveryCode, RecoveryDecision } from '../../src/contract/recovery.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { decideRecovery } from '../../src/policy/recovery/decide.ts';
import { transient } from '../support.ts';

/** A failure that may be retried in every respect. */
const usual: FailureNotification = {
  toolName: 'flight_search',
  callId: 'c1',
  turnId: 't1',
  error: transient,
  classification: 'transient',
  breakerState: 'closed',
  attempt: 1,
  maxAttempts: 5,
  elapsedMs: 10,
  maxTotalTimeMs: 2_000,
  nextDelayMs: 100,
  turnRemainingMs: 300_000,
  budgetAvailable: true,
  alternatives: [],
  required: true,
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: false,
};
const uncertain = new ToolExecutionError('timeout', 'Tool timeout after 30s', { uncertain: true });
const hinted = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs });
const decide = (differs: Partial<FailureNotification>): RecoveryDecision => decideRecovery({ ...usual, ...differs });

/** One change that forbids a retry, for each code, in the order in which they are asked. */
const FORBID: ReadonlyArray<readonly [RecoveryCode, Partial<FailureNotification>]> = [
  ['permanent', { classification: 'permanent' }],
  ['attempts_exhausted', { attempt: 5 }],
  ['time_exhausted', { elapsedMs: 1_900 }],
  ['budget_exhausted', { budgetAvailable: false }],
  ['circuit_open', { breakerState: 'open' }],
  ['uncertain_mutation', { error: uncertain, effects: 'mutating' }],
  ['retry_after_too_long', { error: hinted(1_990) }],
  ['no_retry_hint', { error: hinted(-1) }],
];

describe('R-6.1 retry', () => {
  it('SI-T 6.2 transient, closed, retries left: retry, after the backoff', () => {
    expect(decide({})).toMatchObject({ strategy: 'retry', code: 'transient', delayMs: 100 });
    expect(decide({}).reason).not.toBe('');
  });

  it('R-2.4 Retry-After is a floor under the delay', () => {
    expect(decide({ error: hinted(700) })).toMatchObject({ strategy: 'retry', delayMs: 700 });
    expect(decide({ error: hinted(7) })).toMatchObject({ strategy: 'retry', delayMs: 100 });
    expect(decide({ error: hinted(0) })).toMatchObject({ strategy: 'retry', delayMs: 100 });
  });

  it.each(['closed', 'half_open', 'disabled'])('R-2.5 a breaker that is %s does not forbid it', (breakerState) => {
    expect(decide({ breakerState }).strategy).toBe('retry');
  });

  it('R-2.3 the limits to the millisecond', () => {
    expect(decide({ elapsedMs: 1_899 }).strategy).toBe('retry');
    expect(decide({ elapsedMs: 1_900 }).code).toBe('time_exhausted');
    expect(decide({ attempt: 4 }).strategy).toBe('retry');
    expect(decide({ error: hinted(1_989) }).strategy).toBe('retry');
    expect(decide({ error: hinted(1_990) }).code).toBe('retry_after_too_long');
    expect(decide({ turnRemainingMs: 101 }).strategy).toBe('retry');
    expect(decide({ turnRemainingMs: 100 }).code).toBe('turn_deadline');
  });
});

describe('R-2.5 uncertain failures', () => {
  const mutating: Partial<FailureNotification> = { error: uncertain, effects: 'mutating' };
  it.each([
    ['a tool that only reads is retried', { error: uncertain }, 'retry'],
    ['a mutating one is not', mutating, 'escalate'],
    ['a mutating one that failed for certain is', { effects: 'mutating' }, 'retry'],
    ['one whose resource checks the key is', { ...mutating, hasIdempotencyKey: true }, 'retry'],
    ['one that the caller called safe is', { ...mutating, retrySafe: true }, 'retry'],
    [
      'safetyCritical forces the refusal over the key',
      { ...mutating, hasIdempotencyKey: true, safetyCritical: true },
      'escalate',
    ],
    [
      'safetyCritical forces the refusal over the caller',
      { ...mutating, retrySafe: true, safetyCritical: true },
      'escalate',
    ],
    [
      'safetyCritical has nothing to say about a certain failure',
      { effects: 'mutating', safetyCritical: true },
      'retry',
    ],
  ] as const)('R-2.5 %s', (_name, differs, strategy) => {
    expect(decide(differs)).toMatchObject({
      strategy,
      code: strategy === 'retry' ? 'transient' : 'uncertain_mutation',
    });
  });
});

describe('R-6.1 what follows when a retry is forbidden', () => {
  it.each(FORBID)('R-6.1 %s: required escalates, optional is left out', (code, differs) => {
    expect(decide(differs)).toMatchObject({ strategy: 'escalate', code });
    expect(decide({ ...differs, required: false })).toMatchObject({ strategy: 'partial', code });
    expect(decide(differs)).not.toHaveProperty('delayMs');
    expect(decide(differs).reason).not.toBe('');
  });

  it.each(FORBID)('R-6.2 %s: the first alternative, except where something would be done twice', (code, differs) => {
    const decision = decide({ ...differs, alternatives: ['backup', 'other'] });
    if (code === 'uncertain_mutation') expect(decision).toMatchObject({ strategy: 'escalate', code });
    else expect(decision).toMatchObject({ strategy: 'alternative', code, toolName: 'backup' });
  });

  it.each(['blocked', 'not_permitted', 'conflict'] as const)('R-6.1 no alternative gets round %s', (kind) => {
    const differs = {
      error: new ToolExecutionError(kind, 'no'),
      classification: 'permanent',
      alternatives: ['backup'],
    };
    expect(decide(differs)).toMatchObject({ strategy: 'escalate', code: 'permanent' });
    expect(decide({ ...differs, required: false })).toMatchObject({ strategy: 'partial' });
  });

  it.each(
    FORBID.filter(([code]) => code !== 'uncertain_mutation' && !code.includes('hint') && !code.includes('after')),
  )('R-6.1 nor does one do a thing twice when %s is named first', (code, differs) => {
    const decision = decide({ ...differs, error: uncertain, effects: 'mutating', alternatives: ['book_backup'] });
    expect(decision).toMatchObject({ strategy: 'escalate', code });
  });

  it('R-2.5 every breaker that does not admit forbids, and so does a rejection by one', () => {
    for (const differs of [
      { breakerState: 'open' },
      { breakerState: 'forced_open' },
      { error: new ToolExecutionError('circuit_open', 'resting'), attempt: 0 },
    ]) {
      expect(decide(differs)).toMatchObject({ strategy: 'escalate', code: 'circuit_open' });
      expect(decide({ ...differs, alternatives: ['backup'] })).toMatchObject({
        strategy: 'alternative',
        code: 'circuit_open',
        toolName: 'backup',
      });
    }
  });

  it('SI-T 6.5 a permanent error escalates', () => {
    expect(
      decide({
        error: new ToolExecutionError('execution_error', 'Invalid airport code: XYZ'),
        classification: 'permanent',
      }),
    ).toMatchObject({ strategy: 'escalate', code: 'permanent' });
  });
});

describe('R-6.1 the order of the codes', () => {
  it('R-6.1 where several forbid, the first of the list is named', () => {
    for (const [index, [first, differs]] of FORBID.entries()) {
      for (const [, other] of FORBID.slice(index + 1)) {
        // Two that speak through the error exclude each other.
        if ('error' in differs && 'error' in other) continue;
        expect(decide({ ...other, ...differs }).code).toBe(first);
      }
    }
  });

  it('R-6.1 cancelled by the caller: fail, before anything else', () => {
    const canceled = new ToolExecutionError('canceled', 'never mind');
    for (const differs of [{}, { turnRemainingMs: 0 }, { alternatives: ['backup'] }, { required: false }]) {
      expect(decide({ ...differs, error: canceled, classification: 'permanent' })).toMatchObject({
        strategy: 'fail',
        code: 'canceled',
      });
    }
  });

  it('R-6.1 turn time over: partial, before everything but a cancellation', () => {
    for (const [, differs] of FORBID) {
      expect(decide({ ...differs, turnRemainingMs: 0, alternatives: ['backup'] })).toMatchObject({
        strategy: 'partial',
        code: 'turn_deadline',
      });
      expect(decide({ ...differs, turnRemainingMs: -5 })).toMatchObject({ strategy: 'partial', code: 'turn_deadline' });
    }
  });

  it('R-6.1 turn time over before the next attempt could start: partial, by backoff or by Retry-After', () => {
    expect(decide({ turnRemainingMs: 50, alternatives: ['backup'] })).toMatchObject({
      strategy: 'partial',
      code: 'turn_deadline',
    });
    expect(decide({ turnRemainingMs: 500, error: hinted(600) })).toMatchObject({
      strategy: 'partial',
      code: 'turn_deadline',
    });
    expect(decide({ turnRemainingMs: 50, elapsedMs: 1_950 })).toMatchObject({
      strategy: 'partial',
      code: 'turn_deadline',
    });
  });

  it('R-6.1 the codes in their order, for any notification: compared with the rules one after the other', () => {
    const errors = fc.constantFrom(
      transient,
      uncertain,
      hinted(5),
      hinted(500),
      hinted(5_000),
      hinted(-1),
      hinted(Number.NaN),
      new ToolExecutionError('circuit_open', 'resting'),
      new ToolExecutionError('retry_budget_exhausted', 'spent'),
      new ToolExecutionError('canceled', 'x'),
    );
    const notification = fc.record({
      error: errors,
      classification: fc.constantFrom('transient', 'transient', 'permanent'),
      breakerState: fc.constantFrom('closed', 'open', 'half_open', 'forced_open', 'disabled'),
      attempt: fc.integer({ min: 0, max: 6 }),
      elapsedMs: fc.nat({ max: 2_100 }),
      nextDelayMs: fc.nat({ max: 800 }),
      turnRemainingMs: fc.oneof(fc.integer({ min: -5, max: 1_000 }), fc.constant(Infinity)),
      budgetAvailable: fc.boolean(),
      effects: fc.constantFrom('read' as const, 'mutating' as const),
      hasIdempotencyKey: fc.boolean(),
      retrySafe: fc.boolean(),
      safetyCritical: fc.boolean(),
      required: fc.boolean(),
    });
    fc.assert(
      fc.property(notification, (differs) => {
        const { error, classification, breakerState, attempt, elapsedMs, nextDelayMs, turnRemainingMs } = differs;
        const hint = error.retryAfterMs;
        const readable = hint === undefined || hint >= 0;
        const waitMs = Math.max(nextDelayMs, readable ? (hint ?? 0) : 0);
        const refusals: ReadonlyArray<readonly [boolean, RecoveryCode]> = [
          [classification === 'permanent', 'permanent'],
          [attempt >= 5, 'attempts_exhausted'],
          [elapsedMs + nextDelayMs >= 2_000, 'time_exhausted'],
          [!differs.budgetAvailable || error.kind === 'retry_budget_exhausted', 'budget_exhausted'],
          [error.kind === 'circuit_open' || breakerState === 'open' || breakerState === 'forced_open', 'circuit_open'],
          [
            error.uncertain &&
              differs.effects === 'mutating' &&
              (differs.safetyCritical || !(differs.hasIdempotencyKey || differs.retrySafe)),
            'uncertain_mutation',
          ],
          [elapsedMs + waitMs >= 2_000, 'retry_after_too_long'],
          [!readable, 'no_retry_hint'],
        ];
        const refusal = refusals.find(([holds]) => holds)?.[1];
        // A wait that no rule but time forbids would have been cut off by the turn.
        const cutOff =
          waitMs >= turnRemainingMs &&
          (refusal === undefined || refusal === 'time_exhausted' || refusal === 'retry_after_too_long');
        const code =
          error.kind === 'canceled'
            ? 'canceled'
            : turnRemainingMs <= 0 || cutOff
              ? 'turn_deadline'
              : (refusal ?? 'transient');
        const decision = decide(differs);
        expect(decision.code).toBe(code);
        if (decision.strategy === 'retry') expect(decision.delayMs).toBe(waitMs);
        expect(decide(differs)).toStrictEqual(decision);
      }),
      { numRuns: 2_000 },
    );
  });
});
