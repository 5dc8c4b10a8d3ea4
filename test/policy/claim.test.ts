import type { DedupeFailure, DedupeRecord, DedupeRequest } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import { decideClaim, type ClaimQuestion } from '../../src/policy/key/claim.ts';

const request: DedupeRequest = { sessionKey: 's', actorId: 'a', tenantId: 't', requestId: 'r1', paramsDigest: 'p' };
const question: ClaimQuestion = {
  key: 'k',
  tool: 'pay',
  mode: 'enforced',
  request: { ...request, requestId: 'r2' },
  neverTwice: false,
};
const failure = (differs: Partial<DedupeFailure> = {}): DedupeFailure => ({
  code: 'execution_error',
  message: 'no',
  terminal: false,
  shouldRetriable: true,
  ...differs,
});
const standing = (differs: Partial<DedupeRecord>): DedupeRecord => ({
  key: 'k',
  tool: 'pay',
  idempotencyKey: 'i',
  state: 'inflight',
  createdAtMs: 0,
  updatedAtMs: 0,
  expiresAtMs: 1_000_000,
  ttlMs: 1_000_000,
  request,
  version: 7,
  ...differs,
});
const decide = (record: Partial<DedupeRecord>, asked: Partial<ClaimQuestion> = {}, atMs = 500): unknown => {
  const decision = decideClaim({ record: standing(record), atMs }, { ...question, ...asked });
  return decision.act === 'refuse'
    ? decision.because
    : decision.act === 'take_over'
      ? `take_over ${decision.version}`
      : decision.act;
};

describe('R-9.4 a claim whose key is taken', () => {
  it('R-9.4 what is done is replayed, and so is what failed for good', () => {
    for (const mode of ['enforced', 'bestEffort'] as const) {
      expect(decide({ state: 'done' }, { mode })).toBe('replay');
      expect(decide({ state: 'failed', error: failure({ shouldRetriable: false }) }, { mode })).toBe('replay');
      expect(decide({ state: 'failed' }, { mode })).toBe('replay');
      expect(decide({ state: 'cancelled' }, { mode })).toBe('cancelled');
    }
  });

  it('R-9.4 a failure that can be retried is followed on by best effort alone', () => {
    expect(decide({ state: 'failed', error: failure() })).toBe('replay');
    expect(decide({ state: 'failed', error: failure() }, { mode: 'bestEffort' })).toBe('take_over 7');
    expect(decide({ state: 'failed', error: failure({ uncertain: true }) }, { mode: 'bestEffort' })).toBe(
      'take_over 7',
    );
  });

  it('R-9.4 while another runs: enforced waits, best effort is refused', () => {
    expect(decide({ lockUntilMs: 501 })).toBe('wait');
    expect(decide({ lockUntilMs: 501 }, { mode: 'bestEffort' })).toBe('busy');
  });

  it('R-9.6 once its lease has passed it is taken over, from that very moment on', () => {
    expect(decide({ lockUntilMs: 500 })).toBe('take_over 7');
    expect(decide({ lockUntilMs: 499 }, { mode: 'bestEffort' })).toBe('take_over 7');
  });
});

describe('R-2.5 what must not be done twice', () => {
  const neverTwice = { neverTwice: true } as const;

  it('R-2.5 does not follow on an owner that was lost: it may have taken effect', () => {
    expect(decide({ lockUntilMs: 500 }, neverTwice)).toBe('uncertain');
    expect(decide({ lockUntilMs: 500 }, { ...neverTwice, mode: 'bestEffort' })).toBe('uncertain');
    expect(decide({ lockUntilMs: 501 }, neverTwice)).toBe('wait');
  });

  it('R-2.5 nor on a failure that may have taken effect; one that is certain is followed on', () => {
    expect(
      decide({ state: 'failed', error: failure({ uncertain: true }) }, { ...neverTwice, mode: 'bestEffort' }),
    ).toBe('replay');
    expect(decide({ state: 'failed', error: failure() }, { ...neverTwice, mode: 'bestEffort' })).toBe('take_over 7');
  });
});

describe('R-9.5 a key that stands for something else', () => {
  const cases: ReadonlyArray<readonly [string, Partial<DedupeRecord>]> = [
    ['other parameters', { request: { ...request, paramsDigest: 'q' } }],
    ['another tool', { tool: 'refund' }],
    ['another key', { key: 'l' }],
    ['another session', { request: { ...request, sessionKey: 'other' } }],
    ['another tenant', { request: { ...request, tenantId: 'other' } }],
  ];
  it.each(cases)('R-9.5 %s: a conflict, whatever became of it', (_name, differs) => {
    for (const state of ['inflight', 'done', 'failed', 'cancelled'] as const)
      expect(decide({ state, lockUntilMs: 900, ...differs })).toBe('conflict');
  });

  it('R-9.3 a global key is shared by sessions, and not by tenants', () => {
    const shared = (differs: Partial<DedupeRequest>): unknown =>
      decideClaim(
        { record: standing({ state: 'done', request: { ...request, ...differs } }), atMs: 0 },
        question,
        true,
      );
    expect(shared({ sessionKey: 'other' })).toEqual({ act: 'replay' });
    expect(shared({ tenantId: 'other' })).toEqual({ act: 'refuse', because: 'conflict' });
  });
});
