import { describe, expect, it } from 'vitest';
import type { ToolEvent, TraceEvent } from 'spillway';
import type { DedupeStep } from 'spillway/contract';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { eventLine } from '../../src/cli/show/event-line.ts';

const header = { source: 'call', seq: 1, atMs: 0, callId: 'c', toolName: 'book' } as const;
const dedupe = (step: DedupeStep, more: object = {}): ToolEvent => ({
  ...header,
  type: 'dedupe',
  step,
  keyFingerprint: 'f00d',
  ...more,
});
const entry = (event: TraceEvent): unknown => {
  const { timestamp: _, tool_id: __, ...rest } = toTurnTrace(event) ?? { timestamp: '', tool_id: '' };
  return rest;
};

describe('R-7.2 keys, hooks, shadow mode and the store, as entries and as lines', () => {
  it('R-7.2 what changes how a call ends is told, the rest is not', () => {
    const steps: readonly DedupeStep[] = [
      'claimed',
      'taken_over',
      'waiting',
      'replayed',
      'conflict',
      'busy',
      'lease_lost',
      'recorded',
      'released',
      'superseded',
      'unrecorded',
      'unprotected',
    ];
    const told = steps.filter((step) => toTurnTrace(dedupe(step)) !== undefined);
    expect(told).toEqual([
      'taken_over',
      'waiting',
      'replayed',
      'conflict',
      'busy',
      'lease_lost',
      'superseded',
      'unrecorded',
      'unprotected',
    ]);
    expect(steps.filter((step) => eventLine(dedupe(step)) !== undefined)).toEqual(told);
    expect(entry(dedupe('replayed', { ageMs: 1_500 }))).toEqual({
      event_type: 'Deduplication',
      decision: 'replayed',
      message: 'Replayed the result of the same call',
    });
    expect(eventLine(dedupe('replayed', { ageMs: 1_500 }))).toBe('the result of the same call, 1.50 s old');
    expect(eventLine({ ...dedupe('waiting'), nodeId: 'n' })).toBe('n: waits for the same call');
  });

  it('R-22.5 approvals and budgets', () => {
    const approval = { ...header, type: 'approval', approvalId: 'f00d-1', cause: 'needed' } as const;
    const denied: ToolEvent = { ...approval, step: 'denied', by: 'eve\u001b[2J', message: 'no\nway', waitedMs: 5 };
    expect(entry(denied)).toEqual({
      event_type: 'Approval',
      decision: 'denied',
      message: 'A person did not approve the call, by eve\u001b[2J: no\nway',
    });
    expect(eventLine(denied)).toBe('not approved by eve: no way');
    expect(eventLine({ ...approval, step: 'asked' })).toBe('waits for a person to approve it: f00d-1');
    const told = {
      type: 'budget',
      step: 'refused',
      per: 'tenant',
      scope: 't',
      unit: 'usd',
      limit: 5,
      left: 0.5,
    } as const;
    expect(entry({ source: 'layer', seq: 1, atMs: 0, ...told })).toEqual({
      event_type: 'Budget',
      decision: 'refused',
      message: 'Budget of a tenant refused: 0.5 of 5 usd left',
    });
  });

  it('R-7.2 hooks and shadow mode', () => {
    const hook: ToolEvent = {
      ...header,
      type: 'hook',
      hook: 'beforeToolCall',
      outcome: 'timed_out',
      attempt: 2,
      message: 'no answer\n\u001b[2J',
    };
    expect(entry(hook)).toEqual({
      event_type: 'Hook',
      retry_count: 1,
      decision: 'timed_out',
      message: 'beforeToolCall timed out: no answer\n\u001b[2J',
    });
    expect(eventLine(hook)).toBe('beforeToolCall timed out: no answer');
    const changed: ToolEvent = { ...header, type: 'hook', hook: 'prepareCall', outcome: 'changed', attempt: 0 };
    expect([entry(changed), eventLine(changed)]).toEqual([
      { event_type: 'Hook', retry_count: 0, decision: 'changed', message: 'prepareCall changed' },
      'prepareCall changed',
    ]);
    const shadow: ToolEvent = {
      ...header,
      type: 'shadow',
      would: 'time_out',
      reason: 'timeout',
      message: 'The attempt took 9 ms of 5',
    };
    expect([entry(shadow), eventLine(shadow)]).toEqual([
      { event_type: 'Shadow', decision: 'time_out', message: 'Would time out: The attempt took 9 ms of 5' },
      'would time out: The attempt took 9 ms of 5',
    ]);
  });

  it('R-7.2 the store', () => {
    expect(
      toTurnTrace({ source: 'layer', type: 'store_changed', seq: 1, atMs: 0, state: 'lost', message: 'no answer' }),
    ).toEqual({
      event_type: 'Store',
      decision: 'lost',
      message: 'Store lost: no answer',
      timestamp: '1970-01-01T00:00:00Z',
    });
  });
});
