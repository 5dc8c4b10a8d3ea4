import { createSpillway, plan, tool, type Tool, type TraceEvent } from 'spillway';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { builtPlan } from '../../src/cli/plan/rules.ts';
import { policyOf, usedTools } from '../../src/cli/plan/tools.ts';
import { eventLine } from '../../src/cli/show/event-line.ts';
import { ASCII } from '../../src/inspect/share/glyphs.ts';
import { drawMarbles } from '../../src/inspect/share/marbles-text.ts';
import { followTurn } from '../../src/inspect/model/follow-turn.ts';
import { planFileSchema, type PlanFile } from '../../src/contract/formats/plan-file.ts';

/** A trip of which the hotel’s answer is lost, the flight cannot be undone, and the payment is refused. */
const told = async (): Promise<TraceEvent[]> => {
  const runtime = virtualRuntime();
  const refused = (status: number) => (): never => {
    throw Object.assign(new Error('refused'), { status });
  };
  const flight = tool({ name: 'book_flight', execute: () => 1, compensate: refused(409) });
  const hotel = tool({
    name: 'book_hotel',
    policy: { verify: { settleMs: 0 } },
    execute: (): number => {
      throw new Error('it broke off');
    },
    verify: () => ({ done: true, output: 2 }),
    compensate: () => undefined,
  });
  const pay: Tool = { name: 'pay', policy: { effects: 'read' }, execute: refused(402) };
  const trip = plan({ onFailure: 'compensate' })
    .call('flight', flight, undefined)
    .call('hotel', hotel, undefined)
    .call('pay', pay, undefined, { needs: ['flight', 'hotel'] });
  const layer = createSpillway({ runtime });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  layer.turn(trip).subscribe();
  await runtime.advance(60_000);
  return events;
};

describe('a turn that undoes what it did, as it is shown', () => {
  it('R-18.5 has its own signs in the marble diagram', async () => {
    const followed = followTurn();
    for (const event of await told()) if (event.source !== 'layer') followed.add(event);
    const drawn = drawMarbles(followed.turn, { columns: 80, glyphs: ASCII, paint: (_, text) => text }).split('\n');
    const laneOf = (id: string): string => drawn.find((line) => line.startsWith(id)) ?? '';
    expect(laneOf('flight')).toMatch(/<.*x.*#.*not undone/);
    expect(laneOf('hotel')).toMatch(/x.*o.*<.*u.*undone/);
    expect(drawn.join(' ')).toContain('could not be undone');
  });

  it('R-18.5 is told line by line', async () => {
    const lines = (await told()).flatMap((event) => (event.source === 'layer' ? [] : (eventLine(event) ?? [])));
    expect(lines).toEqual(
      expect.arrayContaining([
        'hotel: verified: it took effect',
        'undoes 2 nodes: something required is missing',
        'hotel: undone',
        'flight: could not be undone: refused',
        '1 undone, 1 could not be',
      ]),
    );
  });

  it('R-18.5 is counted, and is in the turn’s trace', async () => {
    const events = await told();
    const metrics = prometheusSink({ tools: ['book_flight', 'book_hotel', 'pay'] });
    for (const event of events) metrics.next(event);
    const text = await metrics.text();
    expect(text).toContain('spillway_tool_verifications_total{tool="book_hotel",finding="done"} 1');
    expect(text).toContain('spillway_turn_nodes_total{state="compensated"} 1');
    expect(text).toContain('spillway_turn_nodes_total{state="compensation_failed"} 1');
    const entries = events.flatMap((event) => toTurnTrace(event)?.event_type ?? []);
    expect(entries).toEqual(expect.arrayContaining(['Verification', 'ToolCompensated', 'CompensationFailed']));
  });
});

const file = (parts: object = {}): PlanFile =>
  planFileSchema.parse({
    servers: { bank: { command: 'bank' } },
    tools: [
      {
        id: 'pay',
        server: 'bank',
        tool: 'transfer',
        verify: { tool: 'bank.list', done: { path: 'transfers[*].id', equals: '${input.id}' }, settle_ms: 500 },
        compensate: { tool: 'bank.refund', input: { id: '${output.id}' }, owner: 'accounting' },
        ...parts,
      },
    ],
    turn: {
      on_failure: 'compensate',
      nodes: [
        { id: 'one', tool: 'pay' },
        { id: 'two', tool: 'pay', compensate: false },
      ],
    },
  });

describe('a plan file', () => {
  it('R-18.3 R-18.5 says how a call is verified and undone, and brings the tools for it along', () => {
    const { plan: built, problems } = builtPlan(file());
    expect(problems).toEqual([]);
    expect(built?.options).toMatchObject({ onFailure: 'compensate' });
    expect(built?.nodes.map(({ compensate }) => compensate)).toEqual([undefined, false]);
    expect(usedTools(file()).map(({ id }) => id)).toEqual(['pay', 'bank.list', 'bank.refund']);
    const [entry] = file().tools ?? [];
    expect(entry === undefined ? undefined : policyOf(entry)).toEqual({
      verify: { tool: 'bank.list', done: { path: 'transfers[*].id', equals: '${input.id}' }, settleMs: 500 },
      compensate: { tool: 'bank.refund', input: { id: '${output.id}' }, owner: 'accounting' },
    });
  });

  it.each([
    ['verify', { tool: 'bank.list', done: { path: 'a..b' } }, 'a path such as'],
    ['verify', { tool: 'nobody', done: { path: 'a' } }, 'there is no tool nobody'],
    ['compensate', { tool: 'bank.refund', input: '${nothing.id}' }, 'refers to none of'],
  ])('R-2.9 a %s that cannot be read is named: %j', (key, value, message) => {
    const [problem] = builtPlan(file({ [key]: value })).problems;
    expect(problem?.message).toContain(message);
    expect(problem?.at.slice(0, 3)).toEqual(['tools', 0, key]);
  });
});
