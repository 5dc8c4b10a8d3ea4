import { describe, expect, it } from 'vitest';
import { ASCII, UNICODE } from '../../src/inspect/share/glyphs.ts';
import { drawMarbles } from '../../src/inspect/share/marbles-text.ts';
import { columnsOf } from '../../src/cli/show/text.ts';
import type { TurnTold } from '../../src/inspect/model.ts';
import { followTurn } from '../../src/inspect/model/follow-turn.ts';
import type { TurnEvent } from '../../src/contract/event.ts';
import type { NodeState, TurnResult } from '../../src/contract/turn.ts';

const START_MS = 5_000;
const EMPTY: TurnResult = {
  status: 'completed',
  nodes: [],
  values: {},
  executedTools: 0,
  hadToolFailure: false,
  toolFailureKinds: [],
  summary: '',
};

/** Events of a turn, told briefly; times count from its start. */
const script = (...ids: readonly string[]) => {
  const followed = followTurn();
  let seq = 0;
  let tries = 0;
  const header = (ms: number) => ({ seq: ++seq, atMs: START_MS + ms, turnId: 't' });
  const call = (ms: number, nodeId: string, toolName = nodeId) =>
    ({ ...header(ms), source: 'call', callId: nodeId, nodeId, toolName }) as const;
  const judged = { classification: 'transient', rule: 'code', breakerState: 'closed' } as const;
  const told = (event: TurnEvent): typeof api => {
    followed.add(event);
    return api;
  };
  const api = {
    starts: (ms: number, id: string, toolName = id) =>
      told({ ...call(ms, id, toolName), type: 'attempt_started', attempt: ++tries }),
    succeeds: (ms: number, id: string, toolName = id) =>
      told({ ...call(ms, id, toolName), type: 'attempt_succeeded', attempt: tries, durationMs: 1 }),
    fails: (ms: number, id: string, kind = 'transport_error') =>
      told({
        ...call(ms, id),
        type: 'attempt_failed',
        attempt: tries,
        durationMs: 1,
        error: { kind, message: 'x' },
        ...judged,
      }),
    isRefused: (ms: number, id: string) =>
      told({ ...call(ms, id), type: 'rejected', error: { kind: 'circuit_open', message: 'x' }, ...judged }),
    usesAlternative: (ms: number, id: string, toolName: string) =>
      told({ ...call(ms, id, toolName), type: 'alternative_used', from: id, message: 'Used alternative tool' }),
    settles: (ms: number, id: string, state: NodeState) =>
      told({ ...header(ms), source: 'turn', type: 'node_settled', nodeId: id, toolName: id, state }),
    meetsDeadline: (ms: number) =>
      told({ ...header(ms), source: 'turn', type: 'deadline', unfinished: [], onDeadline: 'abort' }),
    ends: (ms: number): TurnTold => {
      told({ ...header(ms), source: 'turn', type: 'settled', result: EMPTY });
      return followed.turn;
    },
  };
  return told({
    ...header(0),
    source: 'turn',
    type: 'turn_started',
    timeoutMs: 10_000,
    nodes: ids.map((id) => ({ id, toolName: id, needs: [] })),
  });
};

const draw = (timeline: TurnTold, columns: number, glyphs = UNICODE): string[] =>
  drawMarbles(timeline, { columns, glyphs, paint: (_, text) => text }).split('\n');

describe('marble diagram', () => {
  it('shows attempts, backoff and a value where they fall in time', () => {
    const timeline = script('a')
      .starts(0, 'a')
      .fails(100, 'a')
      .starts(300, 'a')
      .succeeds(500, 'a')
      .settles(500, 'a', 'succeeded')
      .ends(500);
    expect(draw(timeline, 77)).toEqual([
      '   0                   200 ms              400 ms',
      '   ┬───────────────────┬───────────────────┬──────────',
      'a  ^─────────✗┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄^───────────────────●  succeeded, 2 attempts',
      '',
      '^ attempt   ● value   ✗ error   ┄ backoff',
    ]);
  });

  it('shows a timeout, an alternative, a default, a refusal, a skip and what the deadline cuts off', () => {
    const timeline = script('slow', 'swap', 'stand_in', 'resting', 'left_out', 'long', 'never')
      .starts(0, 'slow')
      .fails(200, 'slow', 'timeout')
      .settles(200, 'slow', 'failed')
      .starts(0, 'swap')
      .fails(100, 'swap')
      .usesAlternative(100, 'swap', 'other')
      .starts(100, 'swap', 'other')
      .succeeds(300, 'swap', 'other')
      .settles(300, 'swap', 'succeeded')
      .starts(200, 'stand_in')
      .succeeds(300, 'stand_in')
      .settles(300, 'stand_in', 'defaulted')
      .isRefused(100, 'resting')
      .settles(100, 'resting', 'failed')
      .settles(200, 'left_out', 'skipped')
      .starts(0, 'long')
      .meetsDeadline(400)
      .settles(400, 'long', 'timed_out')
      .settles(400, 'never', 'timed_out')
      .ends(400);
    expect(draw(timeline, 72)).toEqual([
      '          0                   200 ms',
      '          ┬───────────────────┬───────────────────┬',
      'slow      ^───────────────────◷                   ┊  failed',
      'swap      ^─────────✗»──────────────────●         ┊  succeeded, by other',
      'stand_in                      ◇─────────●         ┊  defaulted',
      'resting             ⊘                             ┊  failed',
      'left_out                      ∅                   ┊  skipped',
      'long      ^───────────────────────────────────────!  timed out',
      'never                                             ┊  timed out',
      '',
      '^ attempt   » attempt of an alternative   ◇ attempt with a default',
      '● value   ✗ error   ◷ timeout   ⊘ refused   ! cut off   ∅ skipped',
      '┄ backoff   ┊ deadline',
    ]);
  });

  it('in ASCII keeps to ASCII', () => {
    const timeline = script('a', 'b')
      .starts(0, 'a')
      .fails(100, 'a', 'timeout')
      .starts(300, 'a')
      .starts(0, 'b')
      .meetsDeadline(500)
      .settles(500, 'a', 'timed_out')
      .settles(500, 'b', 'timed_out')
      .ends(500);
    const lines = draw(timeline, 76, ASCII);
    expect(lines.join('\n')).toMatch(/^[ -~\n]+$/);
    expect(lines[2]).toMatch(/^a {2}\^-+t\.+\^-+! {2}timed out, 2 attempts$/);
  });

  it('puts marks of one instant side by side, also at its right end', () => {
    const timeline = script('a')
      .starts(0, 'a')
      .fails(1, 'a')
      .starts(2, 'a')
      .fails(3, 'a')
      .starts(999, 'a')
      .succeeds(1000, 'a')
      .settles(1000, 'a', 'succeeded')
      .ends(1000);
    expect(draw(timeline, 60)[2]).toMatch(/^a {2}\^✗\^✗┄+\^● {2}succeeded/);
  });

  it.each([20, 30, 40, 60, 80, 120, 200])('fits into %i columns', (columns) => {
    const long = 'a_node_with_a_name_that_is_much_too_long_for_any_table';
    const turn = script(long, 'b');
    for (let at = 0; at < 300; at++) turn.starts(at * 10, long).fails(at * 10 + 5, long);
    const lines = draw(turn.meetsDeadline(3000).settles(3000, long, 'timed_out').ends(3000), columns);
    expect(Math.max(...lines.map(columnsOf))).toBeLessThanOrEqual(columns);
    expect(lines.some((line) => line.includes('✗'))).toBe(true);
  });

  it('of a turn that took no time is drawn all the same', () => {
    expect(draw(script('a').starts(0, 'a').succeeds(0, 'a').settles(0, 'a', 'succeeded').ends(0), 60)[2]).toMatch(
      /^a {2}\^● +succeeded$/,
    );
    expect(draw(script().ends(0), 60).length).toBeGreaterThan(1);
  });

  it('of very many nodes shows the first and counts the rest', () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `n${index}`);
    const lines = draw(script(...ids).ends(100), 80);
    expect(lines.length).toBeLessThan(60);
    expect(lines).toContain('and 9950 more nodes');
  });
});
