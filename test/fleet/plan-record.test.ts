import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type PlanNode } from 'spillway';
import { DurablePlanError, fromResults } from 'spillway/fleet';
import { digestOf, planRecord, storedPlan } from '../../src/fleet/plan-record.ts';
import { turnResultOf } from '../call/kit.ts';

const refusal = (nodes: readonly PlanNode[]): unknown => {
  try {
    planRecord(plan.from(nodes));
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('R-17.1 a durable plan is data', () => {
  it('R-17.1 refuses a closure by its node, with the remedy', () => {
    const error = refusal([{ id: 'book', tool: 'work', input: () => 1 }]);
    expect(error).toBeInstanceOf(DurablePlanError);
    expect(error).toMatchObject({ node: 'book' });
    expect(String(error)).toMatch(/^DurablePlanError: Node book: its input is a function.*fromResults\(/);
  });

  it.each([
    ['a closure inside', { deep: [() => 1] }],
    ['a number that JSON has not', { n: Number.NaN }],
    ['a big integer', { n: 2n ** 70n }],
  ])('R-17.1 refuses %s', (_, input) => {
    expect(refusal([{ id: 'n', tool: 'work', input }])).toMatchObject({ name: 'DurablePlanError', node: 'n' });
  });

  it('R-18.6 refuses an undoing by a function by its node, with the remedy', () => {
    const error = refusal([{ id: 'book', tool: 'work', compensate: () => 1 }]);
    expect(error).toMatchObject({ name: 'DurablePlanError', node: 'book' });
    expect(String(error)).toMatch(/its compensate is a function.*name a tool that undoes/);
  });

  it.each([false, { tool: 'cancel' }, { tool: 'cancel', input: { id: '${output.id}' } }] as const)(
    'R-18.6 keeps an undoing by data as it was given: %j',
    (compensate) => {
      const given = plan.from([{ id: 'book', tool: 'work', compensate }], { onFailure: 'compensate', name: 'trip' });
      const { nodes, options } = storedPlan(JSON.stringify(planRecord(given))).plan;
      expect(nodes[0]?.compensate).toEqual(compensate);
      expect(options).toMatchObject({ onFailure: 'compensate', name: 'trip' });
    },
  );

  it('R-18.6 refuses a lease of the journal: the engine knows who has died', () => {
    const given = plan.from([{ id: 'book', tool: 'work' }], { onFailure: 'compensate', leaseMs: 5_000 });
    expect(() => planRecord(given)).toThrow(/options.*leaseMs/);
  });

  it('R-17.1 refuses a reference to what is not needed', () => {
    const nodes = [
      { id: 'a', tool: 'work' },
      { id: 'b', tool: 'work', input: fromResults({ x: [{ $result: 'a' }] }) },
    ];
    expect(String(refusal(nodes))).toContain('Node b: its input refers to a, which is not among its needs; add it');
  });

  it('R-17.1 a plan that was stored runs as the one that it was made of', async () => {
    const echo = tool({ name: 'echo', policy: { effects: 'read' }, execute: (input: unknown) => input });
    const spillway = createSpillway({ tools: [echo] });
    const trip = plan({ timeoutMs: 5_000 })
      .call('a', echo, { list: [{ id: 7 }] })
      .call('b', echo, fromResults({ first: { $result: 'a', path: 'list.0.id' }, all: { $result: 'a' } }), {
        needs: ['a'],
      });
    const record = planRecord(trip, { tenant: 't' });
    const { plan: stored, identity } = storedPlan(JSON.stringify(record));
    const run = (planned: Parameters<typeof spillway.turn>[0]): Promise<unknown> =>
      new Promise((resolve) => {
        const events: Parameters<typeof turnResultOf>[0][number][] = [];
        spillway.turn(planned).subscribe({
          next: (event) => events.push(event),
          complete: () => resolve(turnResultOf(events).values),
        });
      });
    const values = await run(stored);
    expect(values).toStrictEqual({ a: { list: [{ id: 7 }] }, b: { first: 7, all: { list: [{ id: 7 }] } } });
    expect(await run(trip)).toStrictEqual(values);
    expect(identity).toStrictEqual({ tenant: 't' });
  });

  it('R-17.1 is known by its digest, whatever the order of its members', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string(),
          fc.jsonValue({ maxDepth: 2 }).filter((v) => typeof v !== 'number'),
        ),
        (input) => {
          const shuffled = Object.fromEntries(Object.entries(input).toReversed());
          const of = (given: unknown): string =>
            digestOf(planRecord(plan.from([{ id: 'n', tool: 'work', input: given }])));
          try {
            of(input);
          } catch {
            return;
          }
          expect(of(shuffled)).toBe(of(input));
          expect(of({ ...input, more: 1, other: 2 })).not.toBe(of({ ...input, more: 2, other: 1 }));
        },
      ),
    );
  });

  it('R-17.8 a plan of another format is refused by its number', () => {
    expect(() => storedPlan('{"format":9,"nodes":[]}')).toThrow(/format 9.*this worker reads format 2/);
  });
});
