import {
  createSpillway,
  plan,
  tool,
  type Tool,
  type Plan,
  type SpillwayOptions,
  type ToolPolicy,
  type TraceEvent,
  type TurnEvent,
  type TurnOptions,
  type TurnResult,
} from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { nodeOf, states, traceFaults, turnResultOf, typed } from '../call/kit.ts';

const ONCE = { retry: { maxAttempts: 1 } } as const;

/** What is booked, and what was done about it, in order. */
class Agency {
  readonly booked = new Set<string>();
  readonly log: string[] = [];

  tool(name: string, policy: ToolPolicy = {}, book: () => unknown = () => undefined, cancel?: () => unknown): Tool {
    return tool({
      name,
      policy: { ...ONCE, ...policy },
      execute: async () => {
        await book();
        this.booked.add(name);
        this.log.push(`+${name}`);
        return { id: `${name}-1` };
      },
      compensate: async ({ id }, { callKey, undoKey, reason }) => {
        expect(undoKey).toBe(`${callKey}/undo`);
        await cancel?.();
        this.booked.delete(name);
        this.log.push(`-${id} ${reason}`);
      },
    });
  }
}

const broken = (): never => {
  throw Object.assign(new Error('no such hotel'), { status: 404 });
};

interface Ran {
  readonly result: TurnResult;
  readonly events: readonly TurnEvent[];
  readonly trace: readonly TraceEvent[];
}

const ran = async (
  planned: Plan<unknown>,
  options: TurnOptions = {},
  layerOptions: SpillwayOptions = {},
  runtime: VirtualRuntime = virtualRuntime(),
): Promise<Ran> => {
  const layer = createSpillway({ runtime, ...layerOptions });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  const events: TurnEvent[] = [];
  layer.turn(planned as Plan, options).subscribe((event) => events.push(event));
  await runtime.advance(900_000);
  expect(traceFaults(trace.slice(1))).toEqual([]);
  return { result: turnResultOf(events), events, trace };
};

describe('a turn that undoes what it did', () => {
  it('R-18.5 undoes in reverse order when something required fails', async () => {
    const agency = new Agency();
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight'), {})
      .call('hotel', agency.tool('book_hotel'), {}, { needs: ['flight'] })
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['hotel'] });
    const { result, trace } = await ran(trip);
    expect(agency.log).toEqual(['+book_flight', '+book_hotel', '-book_hotel-1 escalated', '-book_flight-1 escalated']);
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensated', car: 'failed' });
    expect(result).toMatchObject({
      status: 'escalated',
      values: {},
      compensation: { reason: 'escalated', compensated: ['flight', 'hotel'], stays: [] },
      summary: 'Completed nothing, but book car failed and book flight and book hotel were undone',
    });
    expect(result.recorded).toBeUndefined();
    expect(nodeOf(result, 'flight').reason).toBe('It was done, and undone since something required is missing');
    expect(typed(trace, 'compensation_started')).toMatchObject([{ reason: 'escalated', nodes: ['flight', 'hotel'] }]);
    expect(typed(trace, 'node_compensated').map(({ nodeId, state }) => [nodeId, state])).toEqual([
      ['hotel', 'compensated'],
      ['flight', 'compensated'],
    ]);
    expect(typed(trace, 'compensation_settled')).toHaveLength(1);
  });

  it('R-18.5 leaves everything as it is when the turn completes, or only something optional is missing', async () => {
    const agency = new Agency();
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight'), {})
      .call('car', agency.tool('book_car', {}, broken), {}, { optional: true });
    const { result, trace } = await ran(trip);
    expect(result.status).toBe('partial');
    expect(agency.log).toEqual(['+book_flight']);
    expect(typed(trace, 'compensation_started')).toEqual([]);
  });

  it('R-18.5 without onFailure nothing is undone', async () => {
    const agency = new Agency();
    const trip = plan()
      .call('flight', agency.tool('book_flight'), {})
      .call('car', agency.tool('book_car', {}, broken), {});
    expect(states((await ran(trip)).result)).toEqual({ flight: 'succeeded', car: 'failed' });
    expect([...agency.booked]).toEqual(['book_flight']);
  });

  it('R-18.5 one that cannot be undone goes on with the others, and a person is told who must act', async () => {
    const agency = new Agency();
    const stuck = (): never => {
      throw Object.assign(new Error('not refundable'), { status: 409 });
    };
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight'), {})
      .call(
        'hotel',
        agency.tool('book_hotel', { compensate: { owner: 'the travel desk' } }, undefined, stuck),
        {},
        {
          needs: ['flight'],
        },
      )
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['hotel'] });
    const { result, trace } = await ran(trip);
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensation_failed', car: 'failed' });
    expect([...agency.booked]).toEqual(['book_hotel']);
    expect(result.compensation?.stays).toMatchObject([
      { id: 'hotel', toolName: 'book_hotel', why: 'not refundable', owner: 'the travel desk' },
    ]);
    expect(result.summary).toContain('book hotel could not be undone');
    const escalated = typed(trace, 'escalated').find(({ source }) => source === 'turn');
    expect(escalated).toMatchObject({
      nodeId: 'hotel',
      message:
        'Book hotel was done, could not be undone, and stays: not refundable. The travel desk must look at it and undo it by hand.',
      choices: ['undo_by_hand', 'leave_it'],
    });
  });

  it('R-18.5 an undoing is retried by its policy', async () => {
    const agency = new Agency();
    let tries = 0;
    const busy = (): void => {
      if (++tries < 3) throw Object.assign(new Error('busy'), { status: 503 });
    };
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight', {}, undefined, busy), {})
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['flight'] });
    expect(states((await ran(trip)).result)).toEqual({ flight: 'compensated', car: 'failed' });
    expect(tries).toBe(3);
  });

  it.each([
    [false, 1, 'compensation_failed'],
    [true, 2, 'compensated'],
  ])('R-18.5 an undoing of uncertain end, enforcesKey %s, is tried %d times', async (enforcesKey, times, state) => {
    const agency = new Agency();
    let tries = 0;
    const lost = (): void => {
      if (++tries === 1) throw new Error('it broke off');
    };
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight', { compensate: { enforcesKey } }, undefined, lost), {})
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['flight'] });
    const { result } = await ran(trip);
    expect({ tries, state: nodeOf(result, 'flight').state }).toEqual({ tries: times, state });
  });

  it('R-18.5 what writes and has no compensate stays, and the result says so', async () => {
    const mail: Tool = { name: 'send_mail', policy: { effects: 'mutating' }, execute: () => 'sent' };
    const look: Tool = { name: 'look', policy: { effects: 'read' }, execute: () => 'seen' };
    const note: Tool = { name: 'note', policy: { effects: 'mutating', compensate: false }, execute: () => 1 };
    const trip = plan({ onFailure: 'compensate' })
      .call('mail', mail, {})
      .call('look', look, {})
      .call('note', note, {})
      .call('car', new Agency().tool('book_car', {}, broken), {}, { needs: ['mail', 'look', 'note'] });
    const { result } = await ran(trip);
    expect(states(result)).toEqual({
      mail: 'compensation_failed',
      look: 'succeeded',
      note: 'succeeded',
      car: 'failed',
    });
    expect(result.compensation?.stays).toMatchObject([{ id: 'mail', why: 'send_mail has no compensate' }]);
  });

  it('R-18.5 a node’s own undoing goes before its tool’s, by a function or by another tool', async () => {
    const agency = new Agency();
    const given: unknown[] = [];
    const cancel: Tool = {
      name: 'cancel_booking',
      policy: { effects: 'mutating' },
      execute: (input) => given.push(input),
    };
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight'), {}, { compensate: () => given.push('own') })
      .call(
        'hotel',
        agency.tool('book_hotel'),
        { nights: 2 },
        {
          compensate: { tool: 'cancel_booking', input: { booking: '${output.id}', nights: '${input.nights}' } },
        },
      )
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['flight', 'hotel'] });
    const { result } = await ran(trip, {}, { tools: [cancel] });
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensated', car: 'failed' });
    expect(given).toEqual(expect.arrayContaining(['own', { booking: 'book_hotel-1', nights: 2 }]));
    expect(agency.log.filter((line) => line.startsWith('-'))).toEqual([]);
  });

  it('R-18.5 a turn past its deadline waits for what still runs, and undoes that, too', async () => {
    const runtime = virtualRuntime();
    const agency = new Agency();
    const slow = (): Promise<unknown> =>
      new Promise((resolve) => runtime.after(5_000).subscribe(() => resolve(undefined)));
    const trip = plan({ onFailure: 'compensate', timeoutMs: 1_000 })
      .call('flight', agency.tool('book_flight'), {})
      .call('hotel', agency.tool('book_hotel', {}, slow), {});
    const { result } = await ran(trip, {}, {}, runtime);
    expect(states(result)).toEqual({ flight: 'compensated', hotel: 'compensated' });
    expect(result.compensation?.reason).toBe('deadline');
    expect([...agency.booked]).toEqual([]);
  });

  it.each([
    [{ done: true, output: { id: 'found' } }, 'compensated', ['-found canceled']],
    [{ done: false }, 'canceled', []],
    ['unknown', 'compensation_failed', []],
  ] as const)('R-18.5 a canceled call of which verify says %j', async (answer, state, log) => {
    const runtime = virtualRuntime();
    const undone: string[] = [];
    const abort = new AbortController();
    runtime.after(100).subscribe(() => abort.abort());
    const flight = tool({
      name: 'book_flight',
      policy: { verify: { settleMs: 0 } },
      execute: (_: unknown, { signal }): Promise<{ id: string }> =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      verify: () => answer,
      compensate: ({ id }, { reason }) => undone.push(`-${id} ${reason}`),
    });
    const { result, trace } = await ran(
      plan({ onFailure: 'compensate' }).call('flight', flight, {}),
      { signal: abort.signal },
      {},
      runtime,
    );
    expect({ state: nodeOf(result, 'flight').state, undone }).toEqual({ state, undone: log });
    expect(typed(trace, 'node_verified')).toHaveLength(1);
  });

  it('R-18.5 a subscriber that leaves does not stop it: what is half undone is worse than either', async () => {
    const runtime = virtualRuntime();
    const agency = new Agency();
    const layer = createSpillway({ runtime });
    const trace: TraceEvent[] = [];
    layer.trace$.subscribe((event) => trace.push(event));
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', agency.tool('book_flight'), {})
      .call(
        'hotel',
        agency.tool('book_hotel', {}, () => new Promise(() => undefined)),
        {},
        { needs: ['flight'] },
      );
    const turn = layer.turn(trip).subscribe();
    await runtime.advance(100);
    turn.unsubscribe();
    await runtime.advance(900_000);
    expect(agency.log).toEqual(['+book_flight', '-book_flight-1 canceled']);
    // The hotel may be booked, and nobody can say.
    expect(typed(trace, 'node_compensated').map(({ nodeId, state }) => [nodeId, state])).toEqual([
      ['hotel', 'compensation_failed'],
      ['flight', 'compensated'],
    ]);
    expect(trace.at(-1)).toMatchObject({ source: 'turn', type: 'abandoned' });
  });

  it('R-18.5 a key whose effect was undone gives nobody its result again', async () => {
    const runtime = virtualRuntime();
    const agency = new Agency();
    const layer = createSpillway({ runtime });
    const flight = agency.tool('book_flight');
    const trip = plan({ onFailure: 'compensate' })
      .call('flight', flight, {}, { idempotencyKey: 'trip-7' })
      .call('car', agency.tool('book_car', {}, broken), {}, { needs: ['flight'] });
    layer.turn(trip).subscribe();
    await runtime.advance(1_000);
    const again = layer.execute({ toolName: 'book_flight', input: {}, idempotencyKey: 'trip-7' }, { tool: flight });
    await runtime.advance(1_000);
    expect(await again).toMatchObject({ error: { code: 'conflict', terminal: true } });
    expect((await again).error?.message).toContain('was undone; use a new key');
    expect([...agency.booked]).toEqual([]);
  });
});
