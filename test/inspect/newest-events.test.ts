import { describe, expect, it } from 'vitest';
import type { ToolResultEnvelope, TraceEvent } from 'spillway';
import type { ToolInForce } from '../../src/contract/event.ts';
import {
  addEvent,
  agentText,
  emptyTrace,
  lintTrace,
  marbleTest,
  pendingTimers,
  toOtlp,
  toPerfetto,
} from 'spillway/inspect';
import type { TraceModel, TurnTold } from 'spillway/inspect';

const OF = { source: 'turn', turnId: 't' } as const;
const CALL = { source: 'call', turnId: 't', nodeId: 'pay', callId: 'c', toolName: 'pay' } as const;
const RESULT = {
  status: 'failed',
  nodes: [],
  values: {},
  executedTools: 1,
  hadToolFailure: true,
  toolFailureKinds: [],
  summary: '',
} as const;

let seq = 0;
type Told = TraceEvent extends infer Event ? (Event extends TraceEvent ? Omit<Event, 'seq'> : never) : never;
const heard = (events: readonly Told[]): TraceModel =>
  events.reduce((model, event) => addEvent(model, { ...event, seq: ++seq }), emptyTrace());
const begun = (...ids: string[]): Told => ({
  ...OF,
  atMs: 0,
  type: 'turn_started',
  timeoutMs: 9_000,
  nodes: ids.map((id) => ({ id, toolName: id, needs: [] })),
});
const turnIn = (model: TraceModel): TurnTold => model.turns.get('t') as TurnTold;

describe('SEE-1 the model knows what gates, sagas and fleets tell', () => {
  const asked: Told[] = [
    begun('pay'),
    { ...CALL, atMs: 5, type: 'call_started' },
    { ...CALL, atMs: 6, type: 'approval', step: 'asked', approvalId: 'a1', cause: 'needed' },
  ];
  /** For as long as that takes the time of the turn stands still. */
  const ask: Told = {
    ...CALL,
    atMs: 6,
    type: 'approval',
    step: 'asked',
    approvalId: 'a1',
    cause: 'needed',
    holdsTurn: true,
  };

  it('SEE-2 a person who is asked is waited for, until that has an end, and no timer runs meanwhile', () => {
    const model = heard(asked);
    expect([model.calls.get('c')?.waitsSinceMs, turnIn(model).nodes[0]?.note]).toEqual([6, 'waits for a person']);
    expect(pendingTimers(model).map(({ kind }) => kind)).toEqual(['deadline']);
    expect(agentText(model, turnIn(model))).toContain('a person is asked whether it may run');
    const ends: Told[] = [
      { ...CALL, atMs: 90, type: 'approval', step: 'denied', approvalId: 'a1', cause: 'needed', waitedMs: 84 },
      { ...CALL, atMs: 90, type: 'abandoned' },
    ];
    for (const end of ends) {
      const after = heard([...asked, end]);
      expect(after.calls.get('c')?.waitsSinceMs).toBeUndefined();
    }
  });

  it('SEE-2 no deadline runs while the time of the turn stands still, and then it is later', () => {
    const end = { ...ask, step: 'approved', waitedMs: 84 } as const;
    const events: Told[] = [...asked.slice(0, 2), ask];
    expect(pendingTimers(heard(events))).toEqual([]);
    const twice: Told[] = [...events, { ...end, atMs: 90 }, { ...ask, atMs: 100 }, { ...end, atMs: 130 }];
    expect(pendingTimers(heard(twice))).toMatchObject([{ kind: 'deadline', dueMs: 9_000 + 84 + 30 }]);
    expect(pendingTimers(heard([...events, { ...CALL, atMs: 50, type: 'abandoned' }]))).toMatchObject([
      { dueMs: 9_044 },
    ]);
  });

  it('SEE-2 the deadline of a fleet’s turn is what the fleet has left of it, from worker to worker', () => {
    const started = { ...begun('pay'), remainingMs: 4_000, worker: 'w1' } as Told;
    expect(pendingTimers(heard([started]))).toMatchObject([{ kind: 'deadline', dueMs: 4_000 }]);
    const moved: Told = { ...OF, atMs: 300, type: 'turn_moved', from: 'w1', to: 'w2', afterMs: 50 };
    // Whoever asked has died with the question: it holds nothing any more.
    const held = heard([started, ask, moved]);
    expect(pendingTimers(held)).toMatchObject([{ kind: 'deadline', dueMs: 4_000 + 294 }]);
    const known = heard([started, ask, { ...moved, ranMs: 6_000 }]);
    expect(pendingTimers(known)).toMatchObject([{ kind: 'deadline', dueMs: 300 + 3_000 }]);
    expect(turnIn(known).worker).toBe('w2');
    // The next one asks anew.
    const again = [started, ask, { ...moved, ranMs: 6_000 }, { ...ask, atMs: 400 }] as const;
    expect(pendingTimers(heard(again))).toEqual([]);
    const answered: Told = { ...ask, atMs: 500, step: 'approved', waitedMs: 100 };
    expect(pendingTimers(heard([...again, answered]))).toMatchObject([{ dueMs: 3_300 + 100 }]);
  });

  it('SEE-1 what a call used is a remark on it, whether it succeeded or not', () => {
    const error = { kind: 'timeout', message: 'late' } as const;
    const model = heard([
      begun('pay'),
      { ...CALL, atMs: 1, type: 'attempt_started', attempt: 1 },
      {
        ...CALL,
        atMs: 2,
        type: 'attempt_failed',
        attempt: 1,
        durationMs: 1,
        error,
        classification: 'transient',
        rule: 'timeout',
        breakerState: 'closed',
        usage: { usd: 0.25 },
      },
      { ...CALL, atMs: 3, type: 'attempt_started', attempt: 2 },
      { ...CALL, atMs: 4, type: 'attempt_succeeded', attempt: 2, durationMs: 1, usage: { tokens: 1_200, usd: 0.5 } },
      { ...CALL, atMs: 5, type: 'attempt_started', attempt: 3 },
      { ...CALL, atMs: 6, type: 'attempt_succeeded', attempt: 3, durationMs: 1 },
    ]);
    expect(model.calls.get('c')?.notes.map(({ text }) => text)).toEqual(['used 0.25 usd', 'used 0.5 usd, 1200 tokens']);
    expect(agentText(model, turnIn(model))).toContain('used 0.5 usd, 1200 tokens');
  });

  it('SEE-1 a change of a breaker that was ordered says so', () => {
    const change = {
      source: 'layer',
      atMs: 1,
      type: 'breaker_changed',
      toolName: 'pay',
      scope: '',
      message: '',
    } as const;
    const model = heard([
      { ...change, from: 'closed', to: 'open', ordered: true },
      { ...change, atMs: 2, from: 'open', to: 'half_open' },
    ]);
    const [breaker] = model.breakers.values();
    expect(breaker?.changes.map(({ to, ordered }) => [to, ordered])).toEqual([
      ['open', true],
      ['half_open', undefined],
    ]);
  });

  it('SEE-1 what no attempt says of a call is a remark on it', () => {
    const tool = { name: 'pay', effects: 'read', presumed: true } as unknown as ToolInForce;
    const result = { status: 'success' } as unknown as ToolResultEnvelope;
    const model = heard([
      begun('pay'),
      { ...CALL, atMs: 5, type: 'call_started', mode: 'off', verifies: 'x', undoes: 'y', tool },
      { ...CALL, atMs: 9, type: 'settled', result, hooksMs: 20 },
    ]);
    expect(model.calls.get('c')?.notes.map(({ text }) => text)).toEqual([
      'verifies x',
      'undoes y',
      'mode off',
      'presumed read',
      'hooks 20 ms',
    ]);
  });

  it('SEE-1 a budget that runs short is told of the layer, and of the call that it refused', () => {
    const model = heard([
      ...asked,
      {
        atMs: 9,
        source: 'layer',
        type: 'budget',
        step: 'refused',
        per: 'turn',
        scope: 't',
        callId: 'c',
        unit: 'usd',
        limit: 2,
        left: 0.5,
      },
    ]);
    expect(model.budgets).toEqual([
      { atMs: 9, step: 'refused', per: 'turn', scope: 't', unit: 'usd', limit: 2, left: 0.5 },
    ]);
    expect(model.calls.get('c')?.notes.at(-1)?.text).toBe('budget of the turn: refused, 0.5 of 2 usd left');
    expect(agentText(model, turnIn(model))).toContain('A budget of the turn was refused: 0.5 of 2 usd left.');
  });

  it('SEE-1 a call that undoes stands beside the node’s own, in all that is handed on', () => {
    const model = heard([
      begun('pay'),
      { ...CALL, atMs: 1, type: 'call_started' },
      { ...CALL, atMs: 1, type: 'attempt_started', attempt: 1 },
      { ...CALL, atMs: 9, type: 'attempt_succeeded', attempt: 1, durationMs: 8 },
      { ...OF, atMs: 9, type: 'node_settled', nodeId: 'pay', toolName: 'pay', state: 'succeeded' },
      { ...OF, atMs: 20, type: 'compensation_started', reason: 'failed', nodes: ['pay'] },
      { ...CALL, callId: 'u', toolName: 'refund', atMs: 21, type: 'call_started' },
      { ...CALL, callId: 'u', toolName: 'refund', atMs: 21, type: 'attempt_started', attempt: 1 },
      { ...CALL, callId: 'u', toolName: 'refund', atMs: 29, type: 'attempt_succeeded', attempt: 1, durationMs: 8 },
      { ...OF, atMs: 30, type: 'node_compensated', nodeId: 'pay', toolName: 'pay', state: 'compensated' },
      { ...OF, atMs: 31, type: 'settled', result: RESULT },
    ]);
    const [node] = turnIn(model).nodes;
    expect([node?.state, node?.attempts, node?.call?.callId, node?.undoing?.callId]).toEqual([
      'compensated',
      1,
      'c',
      'u',
    ]);
    expect([model.loose.size, node?.marks.map(({ kind }) => kind)]).toEqual([0, ['start', 'value', 'undo', 'undone']]);
    expect(toPerfetto(model)).toContain('refund #1');
    expect(toOtlp(model)).toContain('execute_tool refund');
    expect(agentText(model, turnIn(model))).toContain('undone, by `refund`');
    expect(marbleTest(model, turnIn(model))).toEqual({ refused: 'what pay did was undone' });
  });

  it('SEE-1 a turn that moved tells from where to where, and what ran there has ended', () => {
    const model = heard([
      begun('pay'),
      { ...CALL, atMs: 1, type: 'call_started' },
      { ...CALL, atMs: 1, type: 'attempt_started', attempt: 1, dueAtMs: 5_001 },
      { ...OF, atMs: 900, type: 'turn_moved', from: 'w1', to: 'w2', afterMs: 600 },
    ]);
    const turn = turnIn(model);
    expect(turn.moves).toEqual([{ atMs: 900, from: 'w1', to: 'w2', afterMs: 600 }]);
    expect(turn.nodes[0]?.call?.attempts).toMatchObject([{ outcome: 'canceled', endMs: 300 }]);
    expect(pendingTimers(model).map(({ kind }) => kind)).toEqual(['deadline']);
    expect(agentText(model, turn)).toContain('At 900 ms it moved from `w1` to `w2`.');
    turn.status = 'completed';
    expect(marbleTest(model, turn)).toEqual({ refused: expect.stringContaining('moved from one worker') as string });
  });

  it('SEE-3 a breaker that two processes share has opened once, though both tell it', () => {
    const opened = (atMs: number, from: 'closed' | 'half_open', to: 'open' | 'half_open'): Told => ({
      atMs,
      source: 'layer',
      type: 'breaker_changed',
      toolName: 'search',
      scope: '',
      from,
      to,
      message: '',
    });
    const told = [0, 1_000].flatMap((ms) => [
      opened(ms, 'closed', 'open'),
      opened(ms + 1, 'closed', 'open'),
      opened(ms + 500, 'half_open', 'half_open'),
    ]);
    expect(lintTrace(heard(told))).toEqual([]);
  });

  it('SEE-3 is silent of what no policy can mend: a person who thinks, a timeout that nothing would retry', () => {
    const effects = 'mutating';
    const policy = { timeoutMs: 30_000, retry: { maxAttempts: 5, maxTotalTimeMs: 2_000 }, enforcesKey: false };
    const layer = {
      atMs: 0,
      source: 'layer',
      type: 'layer_started',
      version: '1',
      tools: [{ name: 'pay', effects, mode: 'on', policy }],
    } as unknown as Told;
    const settled = (nodeId: string, fromMs: number, toMs: number): Told[] => [
      { ...OF, atMs: fromMs, type: 'node_started', nodeId, toolName: nodeId },
      { ...OF, atMs: toMs, type: 'node_settled', nodeId, toolName: nodeId, state: 'succeeded' },
    ];
    const model = heard([
      layer,
      begun('pay', 'b', 'c'),
      ...settled('b', 0, 1),
      ...settled('c', 0, 1),
      ...asked.slice(1),
      { ...CALL, atMs: 5_000, type: 'approval', step: 'approved', approvalId: 'a1', cause: 'needed' },
      { ...CALL, atMs: 5_000, type: 'attempt_started', attempt: 1 },
      { ...CALL, atMs: 5_001, type: 'attempt_succeeded', attempt: 1, durationMs: 1 },
      ...settled('pay', 5, 5_001),
      { ...OF, atMs: 5_001, type: 'settled', result: RESULT },
    ]);
    expect(lintTrace(model)).toEqual([]);
    expect(marbleTest(model, turnIn(model))).toEqual({ refused: 'a person was asked whether pay may run' });
  });
});
