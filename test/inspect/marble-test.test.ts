import { delay, lastValueFrom, of } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';
import { expect, it } from 'vitest';
import { addEvent, emptyTrace, marbleTest, type TraceModel, type TurnTold } from 'spillway/inspect';
import { seededRandom } from '../../src/policy/random.ts';
import { ranTests } from '../made-tests.ts';
import { recordedWorld } from './recorded-worlds.ts';

/** Turns of the simulation, each with its trace, and how many were refused. */
async function madeTests(
  count: number,
): Promise<{ readonly codes: readonly string[]; readonly refused: ReadonlySet<string> }> {
  const codes: string[] = [];
  const refused = new Set<string>();
  for (let seed = 1; codes.length < count; seed++) {
    const model = (await recordedWorld(seed)).reduce(addEvent, emptyTrace());
    for (const turn of model.turns.values()) {
      const test = marbleTest(model, turn);
      if ('code' in test) codes.push(test.code);
      else refused.add(test.refused);
    }
  }
  return { codes: codes.slice(0, count), refused };
}

/** The same test with one frame of one row a millisecond later. */
const moved = (code: string, random: () => number): string => {
  const rows = [...code.matchAll(/^ {2}\["(?:[^"\\]|\\.)*", "([^"]*)"\],$/gm)];
  const row = rows[Math.floor(random() * rows.length)];
  if (row === undefined) throw new Error('the test has no rows');
  const [line, marbles = ''] = row;
  const tokens = marbles.split(' ');
  const later = [...tokens.slice(0, -1), '1ms', tokens.at(-1)].join(' ');
  const changed = line.replace(`"${marbles}"]`, `"${later}"]`);
  return `${code.slice(0, row.index)}${changed}${code.slice(row.index + line.length)}`;
};

it(
  'SEE-5 50 simulated turns become tests that pass, and each fails when one frame is moved',
  { timeout: 300_000 },
  async () => {
    const { codes, refused } = await madeTests(50);
    const random = seededRandom(7);
    const files = codes.flatMap((code, index) => [
      [`kept-${index}`, code] as const,
      [`moved-${index}`, moved(code, random)] as const,
    ]);
    const { passed, failed } = ranTests(Object.fromEntries(files));
    expect(passed.toSorted()).toEqual(codes.map((_, index) => `kept-${index}`).toSorted());
    expect(failed.toSorted()).toEqual(codes.map((_, index) => `moved-${index}`).toSorted());
    // What cannot be played says why, in words.
    expect([...refused].every((why) => /left|instant|settled|kept|key|hook/.test(why))).toBe(true);
  },
);

it('SEE-5 a turn of a real clock, whose times have fractions, becomes a test that passes', () => {
  const call = (nodeId: string, toolName = nodeId) =>
    ({ source: 'call', turnId: 't', callId: nodeId, nodeId, toolName }) as const;
  const error = { kind: 'transport_error', message: 'reset */ ` ${x} \u2028', code: 'ECONNRESET' };
  const judged = { classification: 'transient', rule: 'code', breakerState: 'closed' } as const;
  let seq = 0;
  const at = (ms: number) => ({ seq: ++seq, atMs: 81_234.567 + ms });
  const result = {
    status: 'partial',
    nodes: [],
    values: {},
    executedTools: 2,
    hadToolFailure: true,
    toolFailureKinds: [],
    summary: '',
  } as const;
  const model = [
    {
      ...at(0),
      source: 'turn',
      turnId: 't',
      type: 'turn_started',
      timeoutMs: 500,
      nodes: [
        { id: 'a', toolName: 'a', needs: [] },
        { id: 'b', toolName: 'b', needs: ['a'] },
      ],
    },
    { ...at(0.3), source: 'turn', turnId: 't', type: 'node_started', nodeId: 'a', toolName: 'a' },
    { ...at(0.5), ...call('a'), type: 'call_started' },
    { ...at(0.6), ...call('a'), type: 'attempt_started', attempt: 1 },
    { ...at(40.9), ...call('a'), type: 'attempt_failed', attempt: 1, durationMs: 40.3, error, ...judged },
    {
      ...at(41),
      ...call('a'),
      type: 'decision',
      attempt: 1,
      strategy: 'retry',
      code: 'transient',
      reason: '',
      delayMs: 103.77,
      error,
      classification: 'transient',
    },
    { ...at(146.2), ...call('a'), type: 'attempt_started', attempt: 2 },
    { ...at(176.4), ...call('a'), type: 'attempt_succeeded', attempt: 2, durationMs: 30.2 },
    { ...at(176.6), source: 'turn', turnId: 't', type: 'node_settled', nodeId: 'a', toolName: 'a', state: 'succeeded' },
    { ...at(177.1), source: 'turn', turnId: 't', type: 'node_started', nodeId: 'b', toolName: 'b' },
    { ...at(177.3), ...call('b'), type: 'call_started' },
    { ...at(177.4), ...call('b'), type: 'attempt_started', attempt: 1 },
    { ...at(500.8), source: 'turn', turnId: 't', type: 'deadline', unfinished: ['b'], onDeadline: 'detach' },
    { ...at(500.9), source: 'turn', turnId: 't', type: 'node_settled', nodeId: 'b', toolName: 'b', state: 'timed_out' },
    { ...at(501), source: 'turn', turnId: 't', type: 'settled', result },
  ].reduce((told, event) => addEvent(told, event as Parameters<typeof addEvent>[1]), emptyTrace());
  const test = marbleTest(model, model.turns.get('t') as TurnTold);
  if (!('code' in test)) throw new Error(test.refused);
  expect(test.code).toContain('["a", "n 173ms v"]');
  expect(test.code).toContain('["turn", "500ms (dp|)"]');
  expect(ranTests({ real: test.code })).toEqual({ passed: ['real'], failed: [] });
});

it('SEE-5 a turn whose process was late becomes a test that passes, with a concurrency and without', async () => {
  const made: Record<string, string> = {};
  const untilMs = (ms: number): void => {
    while (performance.now() < ms);
  };
  for (const concurrency of [undefined, 1]) {
    const busy = tool({ name: 'busy', policy: { effects: 'read' }, execute: () => untilMs(performance.now() + 60) });
    const calm = tool({ name: 'calm', policy: { effects: 'read' }, execute: () => of('found').pipe(delay(30)) });
    const spillway = createSpillway({ tools: [busy, calm] });
    const model = emptyTrace();
    spillway.trace$.subscribe((event) => addEvent(model, event));
    const nodes = [
      { id: 'first', tool: 'busy' },
      { id: 'beside', tool: 'calm' },
      { id: 'after', tool: 'busy', needs: ['beside'] },
      { id: 'last', tool: 'calm', needs: ['first', 'after'] },
    ];
    await lastValueFrom(spillway.turn(plan.from(nodes, concurrency === undefined ? {} : { concurrency })));
    await spillway.close();
    const [turn] = model.turns.values();
    const [, beside] = turn?.nodes ?? [];
    expect((beside?.startMs ?? 0) - (turn?.startMs ?? 0)).toBeGreaterThanOrEqual(60);
    const test = marbleTest(model, turn as TurnTold);
    made[`limit-${concurrency ?? 'none'}`] = 'code' in test ? test.code : test.refused;
  }
  const { passed, failed } = ranTests(made);
  expect([passed.toSorted(), failed]).toEqual([['limit-1', 'limit-none'], []]);
});

it('SEE-5 a turn that cannot be played again is refused, with the reason', () => {
  const refusalOf = (change: (model: TraceModel, turn: TurnTold) => void): string => {
    const model = addEvent(emptyTrace(), {
      seq: 1,
      atMs: 0,
      source: 'turn',
      turnId: 't',
      type: 'turn_started',
      timeoutMs: 9,
      nodes: [{ id: 'a', toolName: 'a', needs: [] }],
    });
    const turn = model.turns.get('t') as TurnTold;
    change(model, turn);
    const test = marbleTest(model, turn);
    return 'refused' in test ? test.refused : 'made';
  };
  expect(refusalOf(() => undefined)).toBe('it has not settled');
  expect(refusalOf((_, turn) => (turn.status = 'abandoned'))).toBe('its caller left before it settled');
  expect(refusalOf((_, turn) => (turn.begun = false))).toBe('the trace does not tell how the turn began');
  expect(refusalOf((_, turn) => (turn.status = 'partial'))).toBe('the trace does not tell how a ended');
});
