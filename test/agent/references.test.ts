import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent } from '../support.ts';
import { World, answers, fails, once } from '../call/kit.ts';
import { ran, resultsOf, typed } from './kit.ts';

const ref = (id: string, path?: string): unknown => ({ $result: id, ...(path === undefined ? {} : { path }) });
const outcome = (events: Parameters<typeof typed>[0]): unknown =>
  typed(events, 'tool_result').map(({ kind }) => kind ?? 'ok');

describe('R-12.3 calls that refer to each other', () => {
  it(
    'R-12.3 a call waits for those whose results it needs, and gets what they gave',
    marbles((m) => {
      const world = new World(m);
      const find = world.scripted('find', [answers(20, { flights: [{ id: 'AY73' }, { id: 'JL48' }] })]);
      const pay = world.scripted('pay', [answers(30, 'receipt')]);
      const book = world.scripted('book', [answers(5)]);
      const calls = [
        {
          id: 'b',
          name: 'book',
          input: { flight: ref('f', 'flights.1.id'), all: [ref('f')], paid: { by: ref('p') }, as: 'is' },
        },
        { id: 'f', name: 'find', input: {} },
        { id: 'p', name: 'pay', input: {} },
      ];
      const { events, endedAtMs } = ran(world, [{ calls }, { text: 'ok' }], [find, pay, book]);
      expect([find.starts, pay.starts, book.starts]).toStrictEqual([[0], [0], [30]]);
      expect(book.inputs).toStrictEqual([
        { flight: 'JL48', all: [{ flights: [{ id: 'AY73' }, { id: 'JL48' }] }], paid: { by: 'receipt' }, as: 'is' },
      ]);
      expect(endedAtMs).toBe(35);
      expect(resultsOf(events).map(({ callId }) => callId)).toStrictEqual(['b', 'f', 'p']);
      // The message keeps what the model wrote.
      expect(typed(events, 'message')[0]?.message).toMatchObject({
        content: [{ input: { as: 'is', flight: { $result: 'f' } } }, {}, {}],
      });
    }),
  );

  it.each([
    ['an unknown id', ref('nobody'), /"\$result": "nobody" is not the id of another call/],
    ['its own id', ref('a'), /refers to its own result/],
    ['an id that is no text', { $result: 1 }, /A reference has the form/],
    ['more than a reference', { $result: 'b', other: 1 }, /A reference has the form/],
    ['a path that is no text', { $result: 'b', path: ['x'] }, /A reference has the form/],
  ])('R-12.3 %s: that call is not made, the others are', (_, deep, text) =>
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const { events } = ran(
        world,
        [
          {
            calls: [
              { id: 'a', name: 'good', input: { deep: [deep] } },
              { id: 'b', name: 'good', input: {} },
            ],
          },
          { text: 'ok' },
        ],
        [good],
      );
      expect(outcome(events)).toStrictEqual(['invalid_parameters', 'ok']);
      expect(resultsOf(events)[0]?.text).toMatch(text);
      expect(good.starts).toHaveLength(1);
    })(),
  );

  it(
    'R-12.3 a circle is refused, what needs it is not made, and the rest is',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const calls = [
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['a', 'z']],
        ['d', ['a']],
        ['e', ['d']],
        ['z', []],
        ['y', ['z']],
      ] as const;
      const { events } = ran(
        world,
        [
          {
            calls: calls.map(([id, needs]) => ({ id, name: 'good', input: { needs: needs.map((need) => ref(need)) } })),
          },
          { text: 'ok' },
        ],
        [good],
      );
      expect(outcome(events)).toStrictEqual([
        'invalid_parameters',
        'invalid_parameters',
        'invalid_parameters',
        'dependency_failed',
        'dependency_failed',
        'ok',
        'ok',
      ]);
      expect(good.starts).toHaveLength(2);
    }),
  );

  it(
    'R-5.3 a call whose need fails or is refused is not made, and says which',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const bad = world.scripted('bad', [fails(1, permanent)], { retry: once });
      const calls = [
        { id: 'a', name: 'bad', input: {} },
        { id: 'b', name: 'good', input: { x: ref('a') } },
        { id: 'c', name: 'nobody', input: {} },
        { id: 'd', name: 'good', input: { x: ref('c') } },
      ];
      const { events } = ran(world, [{ calls }, { text: 'ok' }], [good, bad]);
      expect(outcome(events)).toStrictEqual([
        'execution_error',
        'dependency_failed',
        'unknown_tool',
        'dependency_failed',
      ]);
      expect(resultsOf(events).map(({ text }) => text)).toMatchObject({
        1: expect.stringContaining('was not made') as string,
        3: 'A call this one needs failed, so it was not made. It needs the result of c, which was not made. Do not try again before the call that it needs has succeeded.',
      });
      expect(good.starts).toStrictEqual([]);
    }),
  );

  it.each(['nothing.here', 'list.7', '__proto__', 'constructor.name', 'length'])(
    'R-12.3 a path that an output does not have: %s',
    (path) =>
      marbles((m) => {
        const world = new World(m);
        const find = world.scripted('find', [answers(1, { list: [1], text: 'abc' })]);
        const book = world.scripted('book', [answers(1)]);
        const { events } = ran(
          world,
          [
            {
              calls: [
                { id: 'f', name: 'find', input: {} },
                { id: 'b', name: 'book', input: { x: ref('f', path) } },
              ],
            },
            { text: 'ok' },
          ],
          [find, book],
        );
        expect(outcome(events)).toStrictEqual(['ok', 'invalid_parameters']);
        expect(resultsOf(events)[1]?.text).toContain(`The result of f has nothing at path ${JSON.stringify(path)}.`);
        expect(book.starts).toStrictEqual([]);
      })(),
  );

  it(
    'R-9.2 an input that is nested too deep is refused before anything walks it',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown;
      const { events } = ran(
        world,
        [
          {
            calls: [
              { name: 'good', input: { deep } },
              { name: 'good', input: {} },
            ],
          },
          { text: 'ok' },
        ],
        [good],
      );
      expect(outcome(events)).toStrictEqual(['invalid_parameters', 'ok']);
    }),
  );
});
