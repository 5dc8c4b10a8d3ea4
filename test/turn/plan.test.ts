import { lastValueFrom, type Observable } from 'rxjs';
import {
  PlanError,
  createSpillway,
  plan,
  tool,
  type AnyTool,
  type Plan,
  type PlanNode,
  type TurnResult,
  type TypedTurnEvent,
} from 'spillway';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { marbles } from '../marbles.ts';
import { World, answers, states } from '../call/kit.ts';

const a = tool({
  name: 'a',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => Promise.resolve({ price: city.length }),
});
const b = tool({ name: 'b', execute: (input: { readonly total: number }) => `${input.total}` });
const node = (id: string, needs: readonly string[] = []): PlanNode => ({ id, tool: b, needs });
const refusal = (make: () => unknown): PlanError => {
  try {
    make();
  } catch (error) {
    if (error instanceof PlanError) return error;
    throw error;
  }
  throw new Error('the plan was not refused');
};

describe('R-5.1 plans that cannot run are refused before anything does', () => {
  it.each<readonly [string, readonly PlanNode[], PlanError['rule'], readonly string[]]>([
    ['a node that needs itself', [node('x', ['x'])], 'cycle', ['x']],
    ['a circle of two', [node('x', ['y']), node('y', ['x'])], 'cycle', ['x', 'y']],
    [
      'a circle behind a chain',
      [node('start'), node('x', ['start', 'z']), node('y', ['x']), node('z', ['y']), node('end', ['z'])],
      'cycle',
      ['x', 'z', 'y'],
    ],
    ['an unknown need', [node('x', ['nobody'])], 'unknown_need', ['x', 'nobody']],
    ['a need by a name of Object', [node('x', ['constructor'])], 'unknown_need', ['x', 'constructor']],
    ['an id used twice', [node('x'), node('y'), node('x')], 'duplicate_id', ['x']],
    ['an empty id', [node('')], 'malformed', ['']],
    ['a node without a tool', [{ id: 'x' } as unknown as PlanNode], 'malformed', ['x']],
    ['a node whose tool cannot run', [{ id: 'x', tool: { name: 'x' } } as unknown as PlanNode], 'malformed', ['x']],
    ['a node that is nothing', [null as unknown as PlanNode], 'malformed', []],
    [
      'needs that are no list',
      [node('y'), { id: 'x', tool: b, needs: 'y' } as unknown as PlanNode],
      'malformed',
      ['x'],
    ],
  ])('R-5.1 %s', (_name, nodes, rule, ids) => {
    const error = refusal(() => plan.from(nodes));
    expect(error.rule).toBe(rule);
    expect([...error.nodes].toSorted()).toStrictEqual([...ids].toSorted());
    for (const id of ids) expect(error.message).toContain(id);
  });

  it('R-5.1 more nodes than the limit', () => {
    const error = refusal(() => plan.from(Array.from({ length: 200_001 }, (_, i) => node(`n${i}`))));
    expect(error).toMatchObject({
      rule: 'too_large',
      message: 'A plan may have 200000 nodes, not 200001. Split it into several turns.',
    });
  });

  it('R-5.1 a long circle is named in part', () => {
    const error = refusal(() => plan.from(Array.from({ length: 50 }, (_, i) => node(`n${i}`, [`n${(i + 1) % 50}`]))));
    expect(error.rule).toBe('cycle');
    expect(error.nodes).toHaveLength(50);
    expect(error.message).toContain('41 more');
  });

  it('R-5.1 while it is chained, too', () => {
    const one = plan().call('x', b, { total: 1 });
    expect(refusal(() => one.call('x', b, { total: 1 })).rule).toBe('duplicate_id');
    // @ts-expect-error a need that is not in the plan
    expect(refusal(() => one.call('y', b, { total: 1 }, { needs: ['nobody'] })).rule).toBe('unknown_need');
    expect(one.nodes).toHaveLength(1);
  });

  it.each([
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ timeoutMs: Infinity }, 'timeoutMs'],
    [{ concurrency: 0 }, 'concurrency'],
    [{ concurrency: 1.5 }, 'concurrency'],
    [{ onDeadline: 'kill' }, 'onDeadline'],
    [{ timeout: 5 }, 'timeout'],
  ])('R-2.9 option %j is refused', (options, name) => {
    expect(() => plan(options as never)).toThrow(RangeError);
    expect(() => plan.from([], options as never)).toThrow(name);
  });

  it(
    'R-5.1 ids may be any text, and a need named twice counts once',
    marbles((m) => {
      const world = new World(m);
      const ids = ['__proto__', 'constructor', 'with space', '0', 'ünï'];
      const layer = world.layer([world.scripted('t', [answers(1, 'v')])]);
      const result = world.turn(
        layer,
        plan.from([
          ...ids.map((id) => ({ id, tool: 't' })),
          {
            id: 'all',
            tool: b,
            needs: [...ids, ...ids],
            input: (values: Readonly<Record<string, unknown>>) => ({ total: Object.keys(values).length }),
          },
        ]),
      );
      expect(result.status).toBe('completed');
      expect(Object.keys(result.values)).toStrictEqual(['0', '__proto__', 'constructor', 'with space', 'ünï', 'all']);
      expect(result.values['all']).toBe('5');
    }),
  );

  it(
    'R-5.1 a plan does not change with the array it was made of, and runs any number of times',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('t', [answers(1)])]);
      const nodes: PlanNode[] = [{ id: 'x', tool: 't' }];
      const planned = plan.from(nodes);
      nodes.push({ id: 'y', tool: 't' });
      expect(states(world.turn(layer, planned))).toStrictEqual({ x: 'succeeded' });
      expect(states(world.turn(layer, planned))).toStrictEqual({ x: 'succeeded' });
    }),
  );

  it(
    'R-5.1 an unknown tool fails its node alone',
    marbles((m) => {
      const world = new World(m);
      const result = world.turn(
        world.layer([world.scripted('t', [answers(1)])]),
        plan.from([
          { id: 'x', tool: 'nobody' },
          { id: 'y', tool: 't' },
        ]),
      );
      expect(states(result)).toStrictEqual({ x: 'failed', y: 'succeeded' });
      expect(result).toMatchObject({
        status: 'escalated',
        executedTools: 1,
        hadToolFailure: true,
        toolFailureKinds: ['unknown_tool'],
      });
    }),
  );

  it('R-2.9 a plan’s own tool with a wrong policy errors before anything runs', () => {
    const started: string[] = [];
    const own = (name: string, timeoutMs: number): PlanNode => ({
      id: name,
      tool: { name, policy: { timeoutMs }, execute: () => started.push(name) },
    });
    const errors: unknown[] = [];
    createSpillway({})
      .turn(plan.from([own('fine', 5), own('wrong', -5)]))
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toMatchObject([
      { name: 'RangeError', message: expect.stringContaining('tool wrong: timeoutMs') as string },
    ]);
    expect(started).toStrictEqual([]);
  });

  it('R-5.1 a plan’s own tool runs, though another of its name is registered', async () => {
    const layer = createSpillway({ tools: [tool({ name: 'same', execute: () => 'registered' })] });
    const own = tool({ name: 'same', execute: () => 'own' });
    const values = await new Promise((resolve) => {
      layer
        .turn(
          plan.from([
            { id: 'byObject', tool: own },
            { id: 'byName', tool: 'same' },
          ]),
        )
        .subscribe((event) => event.source === 'turn' && event.type === 'settled' && resolve(event.result.values));
    });
    expect(values).toStrictEqual({ byObject: 'own', byName: 'registered' });
  });
});

describe('R-5.1 what runs a turn comes with its plan', () => {
  it('a plan of an earlier one with other options runs', async () => {
    const trip = plan().call('it', b, { total: 3 });
    const settled = await lastValueFrom(createSpillway().turn({ ...trip, options: { timeoutMs: 1_000 } }));
    expect(settled).toMatchObject({ type: 'settled', result: { status: 'completed', values: { it: '3' } } });
  });

  it('a copy that lost it is refused with what to do, and runs as that says', async () => {
    const trip = plan().call('it', b, { total: 3 });
    const { nodes, options, needs, dependents } = trip;
    const copies: readonly unknown[] = [
      { nodes, options, needs, dependents },
      JSON.parse('{}'),
      null,
      undefined,
      'trip',
    ];
    for (const copy of copies)
      expect(() => createSpillway().turn(copy as Plan)).toThrow(
        /^a turn needs a plan as plan\(\) made it, .* make it anew, with plan\.from\(nodes, options\)$/,
      );
    const settled = await lastValueFrom(createSpillway().turn(plan.from(nodes, options)));
    expect(settled).toMatchObject({ result: { values: { it: '3' } } });
  });
});

describe('R-5.1 parameters are typed by what they need', () => {
  const trip = plan({ timeoutMs: 1_000 })
    .call('first', a, { city: 'Tokyo' })
    .call('second', a, { city: 'Rome' })
    .call('sum', b, ({ first, second }) => ({ total: first.price + second.price }), { needs: ['first', 'second'] });

  it('R-5.1 values reach the function and the result', async () => {
    const results: Array<TurnResult<unknown>> = [];
    const layer = createSpillway({});
    await new Promise<void>((resolve) => {
      layer.turn(trip).subscribe({
        next: (event) => {
          if (event.source !== 'turn' || event.type !== 'settled') return;
          expectTypeOf(event.result.values.first).toEqualTypeOf<{ price: number } | undefined>();
          expectTypeOf(event.result.values.sum).toEqualTypeOf<string | undefined>();
          results.push(event.result);
        },
        complete: () => {
          expect(results).toMatchObject([
            { status: 'completed', values: { first: { price: 5 }, second: { price: 4 }, sum: '9' } },
          ]);
          resolve();
        },
      });
    });
  });

  it('R-5.1 a name, and a tool whose types nobody knows, take an object and give what is unknown', async () => {
    const untyped: AnyTool = tool({ name: 'untyped', execute: ({ n }: { readonly n: number }) => n + 1 });
    const layer = createSpillway({ tools: [untyped, b] });
    const named = plan()
      .call('one', 'untyped', { n: 1 })
      .call('two', untyped, ({ one }) => ({ n: Number(one) }), { needs: ['one'] })
      .call('three', b, ({ two }) => ({ total: Number(two) }), { needs: ['two'], needsApproval: false });
    const settled = await lastValueFrom(layer.turn(named));
    if (settled.source !== 'turn' || settled.type !== 'settled') throw new Error('it has not settled');
    expectTypeOf(settled.result.values.one).toEqualTypeOf<unknown>();
    expectTypeOf(settled.result.values.three).toEqualTypeOf<string | undefined>();
    expect(settled.result.values).toEqual({ one: 2, two: 3, three: '3' });
    // @ts-expect-error an input that is no object
    plan().call('x', 'untyped', 1);
  });

  it('R-5.1 what does not fit does not compile', () => {
    type Values = typeof trip extends Plan<infer V> ? V : never;
    expectTypeOf<Values['first']>().toEqualTypeOf<{ price: number }>();
    expectTypeOf(createSpillway({}).turn(trip)).toEqualTypeOf<Observable<TypedTurnEvent<Values>>>();
    plan().call('x', a, { city: 'Tokyo' });
    // @ts-expect-error an input of another type
    plan().call('x', a, { town: 'Tokyo' });
    const one = plan().call('x', a, { city: 'Tokyo' });
    // @ts-expect-error a value that is not among the needs
    one.call('y', a, (values: { readonly x: { readonly price: number } }) => ({ city: `${values.x.price}` }));
    one.call('y', b, ({ x }) => ({ total: x.price }), { needs: ['x'], default: { price: 0 } });
    // @ts-expect-error a default that the need would never give
    one.call('y', b, { total: 1 }, { needs: ['x'], default: 'nothing' });
    expect(one.nodes).toHaveLength(1);
  });
});
