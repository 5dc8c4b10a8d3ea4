import { map, of, startWith } from 'rxjs';
import { ToolExecutionError } from 'spillway';
import { describe, expect, it } from 'vitest';
import { storedOutputs, type ModelEvent } from '../../src/agent/index.ts';
import { marbles } from '../marbles.ts';
import { permanent } from '../support.ts';
import { World, answers, fails, hangs, once } from '../call/kit.ts';
import { asked, begun, ran, resultOf, resultsOf, story, typed } from './kit.ts';

const call = (name: string, input: unknown = {}): { name: string; input: unknown } => ({ name, input });

describe('R-12.3 limits', () => {
  it(
    'R-12.3 ten calls run in a turn; the excess is answered limit_exceeded, and the next turn has ten again',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const many = { calls: Array.from({ length: 12 }, (_, place) => call('good', { place })) };
      const { events } = ran(world, [many, many, { text: 'ok' }], [good]);
      expect(good.starts).toHaveLength(20);
      const kinds = typed(events, 'tool_result').map(({ kind }) => kind);
      expect(kinds.slice(0, 12)).toStrictEqual([
        ...Array<undefined>(10).fill(undefined),
        'limit_exceeded',
        'limit_exceeded',
      ]);
      expect(resultsOf(events)[11]?.text).toBe(
        'A limit on tool calls was reached. At most 10 calls run in one turn; this one was not made. The tool did not run. Trying again at once does not help; it may help later.',
      );
    }),
  );

  it(
    'R-12.3 an output over the limit is cut, kept, and read on by the built-in tool; it counts as executed (AGENT C)',
    marbles((m) => {
      const world = new World(m);
      const whole = Array.from({ length: 50 }, (_, line) => `line ${line}\n`).join('');
      const big = world.scripted('big', [answers(1, whole)]);
      const read: string[] = [];
      const script = [
        { calls: [{ id: 'c1', name: 'big', input: {} }] },
        { calls: [{ id: 'c2', name: 'tool_output', input: { handle: 'h1', offset: 100 } }] },
        {
          calls: [
            { id: 'c3', name: 'tool_output', input: { handle: 'h1', offset: 200, length: 50 } },
            { id: 'c4', name: 'tool_output', input: { handle: 'h2' } },
            { id: 'c5', name: 'tool_output', input: { handle: 'h1', length: 101 } },
          ],
        },
        { text: 'ok' },
      ];
      const { events } = ran(world, script, [big], {
        limits: { outputChars: 100 },
        outputs: storedOutputs(10_000, () => 'h1'),
      });
      for (const { text } of resultsOf(events)) read.push(text);
      expect(read[0]).toBe(
        `${whole.slice(0, 100)}\n\n[Cut: the first 100 of ${whole.length} characters. Read on with tool_output: {"handle":"h1","offset":100}]`,
      );
      expect(read[1]).toBe(`${whole.slice(100, 200)}\n\n[Characters 100 to 200 of ${whole.length}.]`);
      expect(read[2]).toBe(`${whole.slice(200, 250)}\n\n[Characters 200 to 250 of ${whole.length}.]`);
      expect(read[3]).toContain('No output is kept under this handle');
      expect(resultOf(events)).toMatchObject({
        executedToolCallIds: ['c1', 'c2', 'c3'],
        toolFailureKinds: { c4: 'invalid_parameters', c5: 'invalid_parameters' },
      });
    }),
  );

  it(
    'R-12.4 a safe message over the limit is cut like any output',
    marbles((m) => {
      const world = new World(m);
      const bad = world.scripted(
        'bad',
        [fails(1, new ToolExecutionError('execution_error', 'x', { status: 400, safeMessage: 'y'.repeat(150) }))],
        { retry: once },
      );
      const { events } = ran(world, [{ calls: [call('bad')] }, { text: 'ok' }], [bad], {
        limits: { outputChars: 100 },
      });
      expect(resultsOf(events)[0]?.text).toMatch(/^y{100}\n\n\[Cut: the first 100 of 150 characters/);
    }),
  );

  it(
    'R-12.3 pieces of a cut output split no character, and together are the whole',
    marbles((m) => {
      const world = new World(m);
      const whole = '🛫ab🛬🛬c🛫'.repeat(7);
      let offset = 0;
      const reads = (text: string): string => text.slice(0, text.lastIndexOf('\n\n['));
      const outputs = storedOutputs(1_000, () => 'h');
      const pieces: string[] = [];
      const seen = ran(world, [], [world.scripted('big', [answers(0, whole)])], {
        outputs,
        limits: { outputChars: 3, turns: 80, loop: false },
        model: (messages) => {
          const last = messages.at(-1);
          if (last?.role === 'tool') {
            const piece = reads(last.results[0]?.text ?? '');
            pieces.push(piece);
            offset += piece.length;
          }
          if (offset >= whole.length)
            return of<ModelEvent[]>({ type: 'text', text: 'all' }, { type: 'stop', reason: 'end' });
          const next =
            last?.role === 'tool'
              ? { name: 'tool_output', input: { handle: 'h', offset, length: 3 } }
              : { name: 'big', input: {} };
          return of<ModelEvent[]>({ type: 'tool_call', id: '', ...next }, { type: 'stop', reason: 'tool_calls' });
        },
      });
      expect(pieces.join('')).toBe(whole);
      expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
      expect(resultOf(seen.events).status).toBe('completed');
    }),
  );

  it('R-12.3 the store of cut outputs is bounded: the one used longest ago makes room', () => {
    let ids = 0;
    const outputs = storedOutputs(25, () => `h${++ids}`);
    expect([outputs.keep('a'.repeat(10)), outputs.keep('b'.repeat(10))]).toStrictEqual(['h1', 'h2']);
    expect(outputs.read('h1')).toBe('a'.repeat(10));
    outputs.keep('c'.repeat(10));
    expect([outputs.read('h1'), outputs.read('h2'), outputs.read('h3')].map((text) => text?.[0])).toStrictEqual([
      'a',
      undefined,
      'c',
    ]);
    expect(outputs.keep('d'.repeat(26))).toBeUndefined();
    expect(outputs.read('h1')).toBeDefined();
  });

  it(
    'R-12.3 the same call with the same result: a note the third time, blocked the fifth, whatever the order of its keys',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1, 'same')]);
      const script = Array.from({ length: 6 }, (_, place) => ({
        calls: [call('good', place % 2 === 0 ? { a: 1, b: { c: 2, d: 3 } } : { b: { d: 3, c: 2 }, a: 1 })],
      }));
      const { events } = ran(world, [...script, { text: 'ok' }], [good]);
      const [first, second, third, fourth, fifth, sixth] = resultsOf(events).map(({ text }) => text);
      expect([first, second]).toStrictEqual(['same', 'same']);
      expect([third, fourth]).toStrictEqual(
        [3, 4].map(
          (times) =>
            `same\n\n[Note: this call was made ${times} times with the same input and gave the same result each time.]`,
        ),
      );
      expect(fifth).toBe(
        'This call was blocked and not made. It was made 4 times with the same input and gave the same result each time. Use that result, or do something else. Do not try again with the same input.',
      );
      expect(sixth).toBe(fifth);
      expect(good.starts).toHaveLength(4);
      expect(resultOf(events).toolFailureKinds).toStrictEqual({ call_5: 'blocked', call_6: 'blocked' });
    }),
  );

  it(
    'R-12.3 other inputs and other results are no repetition; failures and malformed calls are',
    marbles((m) => {
      const world = new World(m);
      let count = 0;
      const changing = world.scripted('changing', [() => of(++count)]);
      const bad = world.scripted('bad', [fails(1, permanent)], { retry: once });
      const step = (place: number): { calls: Array<{ name: string; input?: unknown; unparsed?: string }> } => ({
        calls: [call('changing'), call('bad', {}), { name: 'bad', unparsed: '{' }, call('bad', { place })],
      });
      const { events } = ran(
        world,
        [...Array.from({ length: 6 }, (_, place) => step(place)), { text: 'ok' }],
        [changing, bad],
      );
      const blocked = typed(events, 'tool_result').flatMap(({ turn, kind, result }) =>
        kind === 'blocked' ? [[turn, result.toolName]] : [],
      );
      expect(blocked).toStrictEqual([
        [5, 'bad'],
        [5, 'bad'],
        [6, 'bad'],
        [6, 'bad'],
      ]);
      expect(count).toBe(6);
    }),
  );

  it(
    'R-12.3 the time for a run ends it: while the model talks, and while tools run',
    marbles((m) => {
      const world = new World(m);
      const stuck = world.scripted('stuck', [hangs]);
      const limits = { timeMs: 100 };
      const running = ran(world, [{ calls: [call('stuck')] }], [stuck], { limits });
      expect(running.endedAtMs).toBe(100);
      expect(resultOf(running.events)).toMatchObject({
        status: 'limit',
        reason: 'time',
        executedToolCallIds: ['call_1'],
        toolFailureKinds: { call_1: 'timeout' },
      });
      const talking = ran(
        world,
        [world.runtime.after(500).pipe(map(() => ({ type: 'stop', reason: 'end' }) as const))],
        [],
        { limits },
      );
      expect(resultOf(talking.events)).toMatchObject({ status: 'limit', reason: 'time', messages: asked, turns: 1 });
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-12.3 a signal ends it at once; one that was aborted before starts nothing',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const seen = begun(
        world,
        [
          world.runtime.after(500).pipe(
            map(() => ({ type: 'text', text: 'late' }) as const),
            startWith({ type: 'text', text: 'early' } as const),
          ),
        ],
        [],
        { signal: controller.signal },
      );
      world.at(30, () => controller.abort());
      world.flush();
      expect(seen.endedAtMs).toBe(30);
      expect(resultOf(seen.events)).toMatchObject({ status: 'canceled', turns: 1, text: '', messages: asked });
      expect(story(seen.events)).toStrictEqual(['turn_started', 'text', 'discarded', 'settled']);
      const never = ran(world, [{ text: 'x' }], [], { signal: controller.signal });
      expect(resultOf(never.events)).toMatchObject({ status: 'canceled', turns: 0, messages: asked });
      expect(never.model.requests).toHaveLength(0);
    }),
  );
});
