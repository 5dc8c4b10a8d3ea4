import { plan, type PlanNode, type TurnResult } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent } from '../support.ts';
import { World, answers, fails, messages, nodeOf, states, typed, type Scripted } from '../call/kit.ts';

/** `bad` fails for good, `good` answers its node's input. */
const tools = (world: World): readonly Scripted[] => [
  world.scripted('bad', [fails(5, permanent)]),
  world.scripted('good', [answers(5, 'value')]),
];
const run = (world: World, nodes: readonly PlanNode[]): TurnResult =>
  world.turn(world.layer(tools(world)), plan.from(nodes));

describe('R-5.3 when a need fails', () => {
  it(
    'R-5.3 a required dependent is skipped and escalates, through the chain; independent nodes continue',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer(tools(world));
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from([
          { id: 'a', tool: 'bad' },
          { id: 'b', tool: 'good', needs: ['a'] },
          { id: 'c', tool: 'good', needs: ['b'] },
          { id: 'd', tool: 'good' },
        ]),
      );
      expect(states(result)).toStrictEqual({ a: 'failed', b: 'skipped', c: 'skipped', d: 'succeeded' });
      expect(result).toMatchObject({
        status: 'escalated',
        executedTools: 2,
        toolFailureKinds: ['execution_error'],
        values: { d: 'value' },
      });
      expect(nodeOf(result, 'b').reason).toBe('Required tool skipped due to dependency failure: it needs a');
      expect(nodeOf(result, 'c').reason).toBe('Required tool skipped due to dependency failure: it needs b');
      expect(typed(trace, 'escalated').filter(({ source }) => source === 'turn')).toMatchObject([
        { nodeId: 'b', message: 'Required tool skipped due to dependency failure' },
        { nodeId: 'c' },
      ]);
      expect(typed(trace, 'attempt_started').map(({ nodeId }) => nodeId)).toStrictEqual(['a', 'd']);
    }),
  );

  it(
    'R-5.3 an optional one is skipped, without escalation',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer(tools(world));
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from([
          { id: 'a', tool: 'bad' },
          { id: 'b', tool: 'good', needs: ['a'], optional: true },
          { id: 'd', tool: 'good' },
        ]),
      );
      expect(states(result)).toStrictEqual({ a: 'failed', b: 'skipped', d: 'succeeded' });
      // a is covered by b, which is optional.
      expect(result.status).toBe('partial');
      expect(typed(trace, 'escalated').filter(({ source }) => source === 'turn')).toStrictEqual([]);
    }),
  );

  it.each([false, true])(
    'R-5.3 one with a default runs, whether optional (%s) or not, its default in place of what it lacks',
    (optional) =>
      marbles((m) => {
        const world = new World(m);
        const echo = { name: 'echo', execute: (input: unknown) => input };
        const layer = world.layer(tools(world));
        const trace = world.watch(layer.trace$).events;
        const result = world.turn(
          layer,
          plan.from([
            { id: 'a', tool: 'bad' },
            { id: 'g', tool: 'good' },
            {
              id: 'b',
              tool: echo,
              needs: ['a', 'g'],
              default: 'instead',
              optional,
              input: (values: unknown) => values,
            },
          ]),
        );
        expect(states(result)).toStrictEqual({ a: 'failed', g: 'succeeded', b: 'defaulted' });
        expect(result.values['b']).toStrictEqual({ a: 'instead', g: 'value' });
        expect(nodeOf(result, 'b').reason).toBe('Used default value for b');
        expect(messages(trace)).toContain('Used default value for b');
        expect(result.status).toBe('partial');
      })(),
  );

  it.each([[null], [0], [''], [false]])('R-5.3 %j is a default too; undefined is none', (value) =>
    marbles((m) => {
      const world = new World(m);
      const nodes = (fallback: unknown): PlanNode[] => [
        { id: 'a', tool: 'bad' },
        { id: 'b', tool: 'good', needs: ['a'], default: fallback },
      ];
      expect(states(run(world, nodes(value)))).toMatchObject({ b: 'defaulted' });
      expect(states(run(world, nodes(undefined)))).toMatchObject({ b: 'skipped' });
    })(),
  );

  it(
    'R-5.3 a default is not used when every need has its value',
    marbles((m) => {
      const world = new World(m);
      const echo = { name: 'echo', execute: (input: unknown) => input };
      const result = run(world, [
        { id: 'g', tool: 'good' },
        { id: 'b', tool: echo, needs: ['g'], default: 'instead', input: (values: unknown) => values },
      ]);
      expect(result).toMatchObject({
        status: 'completed',
        nodes: [{}, { state: 'succeeded' }],
        values: { b: { g: 'value' } },
      });
    }),
  );

  it(
    'R-5.3 a defaulted node has a value for those behind it',
    marbles((m) => {
      const world = new World(m);
      const result = run(world, [
        { id: 'a', tool: 'bad', optional: true },
        { id: 'b', tool: 'good', needs: ['a'], default: 0 },
        { id: 'c', tool: 'good', needs: ['b'] },
      ]);
      expect(states(result)).toStrictEqual({ a: 'failed', b: 'defaulted', c: 'succeeded' });
      expect(result.status).toBe('partial');
    }),
  );

  it(
    'R-5.3 a diamond: one bad side is enough',
    marbles((m) => {
      const world = new World(m);
      const diamond = (side: Partial<PlanNode>): PlanNode[] => [
        { id: 'top', tool: 'good' },
        { id: 'left', tool: 'bad', needs: ['top'] },
        { id: 'right', tool: 'good', needs: ['top'] },
        { id: 'bottom', tool: 'good', needs: ['left', 'right'], ...side },
      ];
      expect(states(run(world, diamond({})))).toStrictEqual({
        top: 'succeeded',
        left: 'failed',
        right: 'succeeded',
        bottom: 'skipped',
      });
      expect(states(run(world, diamond({ default: 0 })))).toMatchObject({ bottom: 'defaulted' });
      expect(run(world, diamond({ default: 0 })).status).toBe('partial');
      expect(run(world, diamond({})).status).toBe('escalated');
    }),
  );

  it(
    'R-5.3 a dependent waits for all its needs, also when one has failed already',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([...tools(world), world.scripted('slow', [answers(50)])]);
      const seen = world.watch(
        layer.turn(
          plan.from([
            { id: 'a', tool: 'bad' },
            { id: 's', tool: 'slow' },
            { id: 'b', tool: 'good', needs: ['a', 's'] },
          ]),
        ),
      );
      world.flush();
      expect(typed(seen.events, 'node_settled').map(({ nodeId, atMs }) => [nodeId, atMs])).toStrictEqual([
        ['a', 5],
        ['s', 50],
        ['b', 50],
      ]);
    }),
  );
});

describe('R-5.5 the status of a turn', () => {
  const good: PlanNode = { id: 'good', tool: 'good' };
  it.each<readonly [string, readonly PlanNode[], string]>([
    ['completed', [good], 'all succeeded'],
    ['completed', [], 'there was nothing to do'],
    ['escalated', [good, { id: 'a', tool: 'bad' }], 'a required node failed, with no dependent to cover it'],
    [
      'escalated',
      [good, { id: 'a', tool: 'bad' }, { id: 'b', tool: 'good', needs: ['a'] }],
      'a required node was skipped',
    ],
    ['partial', [good, { id: 'a', tool: 'bad', optional: true }], 'an optional node failed'],
    [
      'partial',
      [good, { id: 'a', tool: 'bad' }, { id: 'b', tool: 'good', needs: ['a'], optional: true }],
      'the failed node is covered by an optional one',
    ],
    [
      'partial',
      [good, { id: 'a', tool: 'bad' }, { id: 'b', tool: 'good', needs: ['a'], default: 0 }],
      'the failed node is covered by a default',
    ],
    [
      'escalated',
      [
        good,
        { id: 'a', tool: 'bad' },
        { id: 'b', tool: 'good', needs: ['a'], default: 0 },
        { id: 'c', tool: 'good', needs: ['a'] },
      ],
      'one of two dependents is not covered',
    ],
    [
      'escalated',
      [good, { id: 'a', tool: 'bad' }, { id: 'b', tool: 'bad', needs: ['a'], default: 0 }],
      'the dependent with the default failed itself',
    ],
    ['failed', [{ id: 'a', tool: 'nobody' }], 'no tool was executed'],
    [
      'failed',
      [
        { id: 'a', tool: 'nobody' },
        { id: 'b', tool: 'good', needs: ['a'], optional: true },
      ],
      'none, though what is missing is covered',
    ],
  ])('R-5.5 %s: %3$s', (status, nodes) =>
    marbles((m) => {
      const world = new World(m);
      expect(run(world, nodes).status).toBe(status);
    })(),
  );

  it(
    'R-5.5 executedTools counts calls whose tool ran, not attempts, and not what never connected',
    marbles((m) => {
      const world = new World(m);
      const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      const layer = world.layer([
        world.scripted('refused', [fails(1, refused)], { retry: { maxAttempts: 3 } }),
        world.scripted('bad', [fails(1, permanent)]),
        world.scripted('good', [answers(1)]),
      ]);
      const result = world.turn(
        layer,
        plan.from([
          { id: 'r', tool: 'refused' },
          { id: 'b', tool: 'bad' },
          { id: 'g', tool: 'good' },
        ]),
      );
      expect(result).toMatchObject({
        executedTools: 2,
        hadToolFailure: true,
        toolFailureKinds: ['transport_error', 'execution_error'],
      });
      expect(world.turn(layer, plan.from([{ id: 'r', tool: 'refused' }])).status).toBe('failed');
    }),
  );
});

describe('R-5.2 order and concurrency', () => {
  it(
    'R-5.2 nodes start as soon as their needs settle, independent ones in parallel',
    marbles((m) => {
      const world = new World(m);
      const [slow, quick] = [world.scripted('slow', [answers(50)]), world.scripted('quick', [answers(10)])];
      const result = world.turn(
        world.layer([slow, quick]),
        plan.from([
          { id: 's', tool: 'slow' },
          { id: 'q', tool: 'quick' },
          { id: 'q2', tool: 'quick', needs: ['q'] },
          { id: 'both', tool: 'quick', needs: ['s', 'q2'] },
        ]),
      );
      expect(quick.starts).toStrictEqual([0, 10, 50]);
      expect(result.settledAtMs).toBe(60);
    }),
  );

  it.each([1, 2, 3, 7])(
    'R-5.2 at most %i run at a time, and no ready node waits while a place is free',
    (concurrency) =>
      marbles((m) => {
        const world = new World(m);
        let [running, most] = [0, 0];
        const tried = world.scripted('t', [
          () => {
            running++;
            most = Math.max(most, running);
            return m.cold('---a|').pipe();
          },
        ]);
        const result = world.turn(
          world.layer([
            {
              ...tried.tool,
              execute: (input, context) => {
                world.at(4, () => running--);
                return tried.tool.execute(input, context);
              },
            },
          ]),
          plan.from(
            Array.from({ length: 7 }, (_, i) => ({ id: `n${i}`, tool: 't' })),
            { concurrency },
          ),
        );
        expect(result.status).toBe('completed');
        expect(most).toBe(concurrency);
        expect(tried.starts).toStrictEqual(Array.from({ length: 7 }, (_, i) => 4 * Math.floor(i / concurrency)));
      })(),
  );

  it(
    'R-5.2 places are given back by failures and skips',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer(tools(world));
      const result = world.turn(
        layer,
        plan.from(
          [
            { id: 'a', tool: 'bad' },
            { id: 'b', tool: 'good', needs: ['a'] },
            { id: 'c', tool: 'good' },
          ],
          { concurrency: 1 },
        ),
      );
      expect(states(result)).toStrictEqual({ a: 'failed', b: 'skipped', c: 'succeeded' });
    }),
  );
});
