import { ToolExecutionError, type ToolErrorKind } from 'spillway';
import { TOOL_ERROR_KIND_MEANINGS } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import { failureText, outputText } from '../../src/agent/index.ts';
import { marbles } from '../marbles.ts';
import { World, answers, fails, hangs, once, type Step } from '../call/kit.ts';
import { begun, ran, resultOf, resultsOf, typed } from './kit.ts';

const single = { retry: once } as const;
const SECRET = 'password=hunter2 at db.internal';

describe('R-12.4 what a model reads', () => {
  it('R-12.4 a safe message verbatim', () => {
    for (const kind of Object.keys(TOOL_ERROR_KIND_MEANINGS) as ToolErrorKind[])
      expect(failureText(kind, 'may_have_run', { safeMessage: '  No such\nairport ', detail: 'x' })).toBe(
        '  No such\nairport ',
      );
  });

  it('R-12.4 else what the kind means, and whether the tool ran where that leaves it open', () => {
    expect(failureText('execution_error', 'ran')).toBe(
      `${TOOL_ERROR_KIND_MEANINGS.execution_error.description} You can try again.`,
    );
    expect(failureText('timeout', 'may_have_run', { effects: 'read' })).toBe(
      `${TOOL_ERROR_KIND_MEANINGS.timeout.description} You can try again.`,
    );
    expect(failureText('circuit_open', 'did_not_run')).toBe(
      `${TOOL_ERROR_KIND_MEANINGS.circuit_open.description} Trying again at once does not help; it may help later.`,
    );
    expect(failureText('transport_error', 'may_have_run')).toBe(
      'The connection to the tool failed. The tool may have run and taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    );
    expect(failureText('canceled', 'did_not_run')).toBe(
      'The caller canceled the call. The tool did not run. Do not try again unless you are asked to.',
    );
    expect(failureText('execution_error', 'did_not_run', { safeMessage: ' ' })).toBe(
      'The tool call failed. The tool did not run. You can try again.',
    );
  });

  const thrown = (kind: ToolErrorKind, options: ConstructorParameters<typeof ToolExecutionError>[2] = {}): Step =>
    fails(5, new ToolExecutionError(kind, SECRET, options));
  it.each([
    [
      'a bare error',
      fails(5, new Error(SECRET)),
      'execution_error',
      'ran',
      'The tool ran and failed. You can try again.',
    ],
    [
      'an error with a safe message',
      thrown('execution_error', { safeMessage: 'Flight AY73 is full', status: 409 }),
      'execution_error',
      'ran',
      'Flight AY73 is full',
    ],
    [
      'a connection that was refused',
      thrown('transport_error', { executed: false }),
      'transport_error',
      'did_not_run',
      'The connection to the tool failed. The tool did not run. You can try again.',
    ],
    [
      'a connection lost in mid-call',
      thrown('transport_error', { uncertain: true }),
      'transport_error',
      'may_have_run',
      'The connection to the tool failed. The tool may have run and taken effect. You can try again.',
    ],
    [
      'a permission of the tool’s own',
      thrown('not_permitted'),
      'not_permitted',
      'did_not_run',
      'This tool may not be used here. Do not try again.',
    ],
    [
      'input that the tool itself refused',
      thrown('invalid_parameters'),
      'invalid_parameters',
      'did_not_run',
      'The input does not fit the tool’s schema. Do not try again with the same input: correct it first.',
    ],
  ] as const)('R-12.4 %s', (_, step, kind, effect, text) =>
    marbles((m) => {
      const world = new World(m);
      const { events } = ran(
        world,
        [{ calls: [{ name: 'bad', input: {} }] }, { text: 'ok' }],
        [world.scripted('bad', [step], single)],
      );
      expect(typed(events, 'tool_result')).toMatchObject([{ kind, effect, result: { text, isError: true } }]);
      expect(resultOf(events).executedToolCallIds).toHaveLength(effect === 'did_not_run' ? 0 : 1);
      expect(JSON.stringify(resultOf(events))).not.toContain('hunter2');
    })(),
  );

  it(
    'R-12.4 a retry that could not connect does not undo the attempt before it',
    marbles((m) => {
      const world = new World(m);
      const steps = [thrown('timeout', { uncertain: true }), thrown('transport_error', { executed: false })];
      const { events } = ran(
        world,
        [{ calls: [{ name: 'bad', input: {} }] }, { text: 'ok' }],
        [world.scripted('bad', steps, { retry: { maxAttempts: 2 } })],
      );
      expect(typed(events, 'tool_result')).toMatchObject([{ kind: 'transport_error', effect: 'may_have_run' }]);
      const answered = [thrown('execution_error', { status: 503 }), thrown('transport_error', { executed: false })];
      const again = ran(
        world,
        [{ calls: [{ name: 'poor', input: {} }] }, { text: 'ok' }],
        [world.scripted('poor', answered, { retry: { maxAttempts: 2 } })],
      );
      expect(typed(again.events, 'tool_result')).toMatchObject([{ kind: 'transport_error', effect: 'ran' }]);
      expect(resultOf(again.events).executedToolCallIds).toHaveLength(1);
    }),
  );

  it(
    'R-12.4 an open breaker says that the tool was not called',
    marbles((m) => {
      const world = new World(m);
      const bad = world.scripted('bad', [answers(5)]);
      const spillway = world.layer([bad]);
      spillway.breakers.get('bad').forceOpen();
      const { events } = ran(world, [{ calls: [{ name: 'bad', input: {} }] }, { text: 'ok' }], [bad], { spillway });
      expect(typed(events, 'tool_result')).toMatchObject([{ kind: 'circuit_open', effect: 'did_not_run' }]);
      expect(bad.starts).toStrictEqual([]);
    }),
  );

  it(
    'R-4.4 at the turn’s deadline: what had not begun, what was running and goes on, and what is kept',
    marbles((m) => {
      const world = new World(m);
      const quick = world.scripted('quick', [answers(5, 'kept')]);
      const slow = world.scripted('slow', [answers(500)]);
      const calls = ['quick', 'slow', 'slow'].map((name, place) => ({ id: `c${place}`, name, input: {} }));
      const { events } = ran(world, [{ calls }, { text: 'ok' }], [quick, slow], {
        turn: { timeoutMs: 100, concurrency: 1 },
      });
      expect(resultsOf(events)).toStrictEqual([
        { callId: 'c0', toolName: 'quick', text: 'kept' },
        {
          callId: 'c1',
          toolName: 'slow',
          text: 'The tool did not answer in time; it may have taken effect. The turn ended while it ran, and it goes on in the background. Check first whether it took effect. Only if it did not: you can try again.',
          isError: true,
        },
        {
          callId: 'c2',
          toolName: 'slow',
          text: 'The deadline passed before the call could be made. You can try again.',
          isError: true,
        },
      ]);
      expect(resultOf(events)).toMatchObject({
        status: 'completed',
        executedToolCallIds: ['c0', 'c1'],
        toolFailureKinds: { c1: 'timeout', c2: 'deadline_exceeded' },
      });
    }),
  );

  it(
    'R-12.3 canceled: each call is answered, with what is known of it',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const tools = [world.scripted('quick', [answers(5, 'kept')]), world.scripted('stuck', [hangs])];
      const calls = ['quick', 'stuck', 'stuck'].map((name, place) => ({ id: `c${place}`, name, input: {} }));
      const seen = begun(world, [{ calls }], tools, { signal: controller.signal, turn: { concurrency: 1 } });
      world.at(50, () => controller.abort());
      world.flush();
      expect(seen.endedAtMs).toBe(50);
      expect(resultOf(seen.events)).toMatchObject({
        status: 'canceled',
        executedToolCallIds: ['c0', 'c1'],
        toolFailureKinds: { c1: 'canceled', c2: 'canceled' },
      });
      expect(resultsOf(seen.events).map(({ text }) => text)).toStrictEqual([
        'kept',
        'The caller canceled the call. The tool may have run and taken effect. Check first whether it took effect. Do not try again unless you are asked to.',
        'The caller canceled the call. The tool did not run. Do not try again unless you are asked to.',
      ]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it('R-12.3 outputs are text: JSON where they are none, well-formed, and never a throw', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    expect(outputText({ a: [1] })).toBe('{"a":[1]}');
    expect(outputText(0)).toBe('0');
    expect(outputText(false)).toBe('false');
    expect(outputText('\ud800x')).toBe('\ufffdx');
    for (const odd of [
      circle,
      1n,
      {
        toJSON: () => {
          throw new Error('no');
        },
      },
    ])
      expect(outputText(odd)).toBe('(the tool succeeded; its output cannot be written as text)');
    for (const empty of [undefined, null, '', '\n', () => 1, Symbol('x')])
      expect(outputText(empty)).toBe('(no output)');
  });
});
