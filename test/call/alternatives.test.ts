import { ToolExecutionError, createSpillway, type AnyTool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { marbles } from '../marbles.ts';
import { permanent, transient } from '../support.ts';
import { World, answers, fails, hangs, noBackoff, once, traceFaults, typed } from './kit.ts';

const uncertain = new ToolExecutionError('transport_error', 'lost in mid-call', { uncertain: true });

describe('R-6.2 alternatives', () => {
  it(
    'R-6.2 are tried in order, each with its own policy; the result names who answered',
    marbles((m) => {
      const world = new World(m);
      const a = world.scripted('a', [fails(5, transient)], {
        retry: { ...noBackoff, maxAttempts: 2 },
        alternatives: ['b', 'c'],
      });
      const b = world.scripted('b', [fails(5, transient)], {
        retry: { ...noBackoff, maxAttempts: 3 },
        alternatives: ['d'],
      });
      const c = world.scripted('c', [answers(5, 'c')]);
      const d = world.scripted('d', [answers(5, 'd')]);
      const layer = world.layer([a, b, c, d]);
      const trace = world.watch(layer.trace$).events;
      const result = world.call(layer, { toolName: 'a', input: 'HEL' });
      expect(result).toMatchObject({
        status: 'success',
        toolName: 'c',
        attempts: 6,
        durationMs: 30,
        output: { content: 'c', metadata: { alternativeFor: 'a' } },
      });
      expect(result.retriedBy).toHaveLength(3);
      expect([a, b, c, d].map(({ starts }) => starts.length)).toStrictEqual([2, 3, 1, 0]);
      expect([...a.inputs, ...b.inputs, ...c.inputs]).toStrictEqual(Array.from({ length: 6 }, () => 'HEL'));
      expect(typed(trace, 'alternative_used')).toMatchObject([
        { from: 'a', toolName: 'b', message: 'Used alternative tool' },
        { from: 'b', toolName: 'c' },
      ]);
      expect(traceFaults(trace)).toStrictEqual([]);
    }),
  );

  it(
    'R-6.2 when all fail, the last error is the result',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('a', [fails(5, permanent)], { alternatives: ['b'] }),
        world.scripted('b', [fails(5, transient)], { retry: once }),
      ]);
      expect(world.call(layer, 'a')).toMatchObject({
        status: 'retriable_error',
        toolName: 'b',
        attempts: 2,
        error: { code: 'transport_error' },
      });
    }),
  );

  it(
    'R-6.2 an open circuit may go to one',
    marbles((m) => {
      const world = new World(m);
      const a = world.scripted('a', [answers(5)], { alternatives: ['b'] });
      const layer = world.layer([a, world.scripted('b', [answers(5, 'b')])]);
      layer.breakers.get('a').forceOpen();
      expect(world.call(layer, 'a')).toMatchObject({ status: 'success', toolName: 'b', attempts: 1 });
      expect(a.starts).toStrictEqual([]);
      layer.breakers.get('b').forceOpen();
      expect(world.call(layer, 'a')).toMatchObject({ status: 'circuit_open', toolName: 'b', attempts: 0 });
    }),
  );

  it(
    'R-6.2 each has its own breaker',
    marbles((m) => {
      const world = new World(m);
      const breaker = { failureThreshold: 1 } as const;
      const layer = world.layer([
        world.scripted('a', [fails(5, transient)], { breaker, alternatives: ['b'] }),
        world.scripted('b', [fails(5, permanent)], { breaker }),
      ]);
      world.call(layer, 'a');
      expect([layer.breakers.get('a').state.type, layer.breakers.get('b').state.type]).toStrictEqual([
        'open',
        'closed',
      ]);
    }),
  );

  it.each([
    ['an uncertain mutation', uncertain, 'mutating'],
    ['a block', new ToolExecutionError('blocked', 'no'), 'read'],
    ['a missing permission', new ToolExecutionError('not_permitted', 'no'), 'read'],
    ['a conflict', new ToolExecutionError('conflict', 'no'), 'read'],
    ['a cancellation', new ToolExecutionError('canceled', 'no'), 'read'],
  ] as const)('R-6.1 are not used after %s', (_name, error, effects) =>
    marbles((m) => {
      const world = new World(m);
      const b = world.scripted('b', [answers(5)]);
      world.call(world.layer([world.scripted('a', [fails(5, error)], { effects, alternatives: ['b'] }), b]), 'a');
      expect(b.starts).toStrictEqual([]);
    })(),
  );

  it(
    'R-6.2 one whose own schema refuses the input is passed over',
    marbles((m) => {
      const world = new World(m);
      const strict: AnyTool = { ...world.scripted('strict', [answers(5)]).tool, input: z.object({ city: z.string() }) };
      const layer = world.layer([
        world.scripted('a', [fails(5, permanent)], { alternatives: ['strict', 'c'] }),
        strict,
        world.scripted('c', [answers(5, 'c')]),
      ]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, { toolName: 'a', input: { from: 'HEL' } })).toMatchObject({
        status: 'success',
        toolName: 'c',
        attempts: 2,
      });
      expect(typed(trace, 'rejected')).toMatchObject([{ toolName: 'strict', error: { kind: 'invalid_parameters' } }]);
      const only = world.layer([world.scripted('a', [fails(5, permanent)], { alternatives: ['strict'] }), strict]);
      expect(world.call(only, { toolName: 'a', input: {} })).toMatchObject({
        status: 'error',
        toolName: 'strict',
        attempts: 1,
        error: { code: 'invalid_parameters' },
      });
    }),
  );

  it(
    'R-6.2 invalid input of the tool that was asked for goes to none',
    marbles((m) => {
      const world = new World(m);
      const b = world.scripted('b', [answers(5)]);
      const layer = world.layer([
        { ...world.scripted('a', [answers(5)], { alternatives: ['b'] }).tool, input: z.object({ city: z.string() }) },
        b,
      ]);
      expect(world.call(layer, 'a')).toMatchObject({ status: 'error', toolName: 'a', attempts: 0 });
      expect(b.starts).toStrictEqual([]);
    }),
  );

  it(
    'FB-1 none starts at or after the call’s end: cancelled in the first, nothing of the second',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const b = world.scripted('b', [answers(5)]);
      world.at(3, () => controller.abort());
      world.call(world.layer([world.scripted('a', [hangs], { alternatives: ['b'] }), b]), 'a', controller.signal);
      expect(b.starts).toStrictEqual([]);
    }),
  );
});

describe('R-6.2 the registry', () => {
  const scripted = (name: string, alternatives: readonly string[] = []): AnyTool => ({
    name,
    policy: { alternatives },
    execute: () => 1,
  });
  it.each([
    ['two tools of one name', [scripted('a'), scripted('a')], 'tool a is registered twice'],
    ['an alternative that is not there', [scripted('a', ['b'])], 'its alternative b is not a registered tool'],
    ['a tool that is its own alternative', [scripted('a', ['a'])], 'tool a cannot be its own alternative'],
  ] as const)('R-2.9 refuses %s', (_name, tools, message) => {
    expect(() => createSpillway({ tools })).toThrow(RangeError);
    expect(() => createSpillway({ tools })).toThrow(message);
  });

  it.each<readonly [string, object]>([
    ['timeoutMs', { timeoutMs: 0 }],
    ['idleTimeoutMs', { idleTimeoutMs: -1 }],
    ['maxAttempts', { retry: { maxAttempts: 0 } }],
    ['failureThreshold', { breaker: { failureThreshold: 0 } }],
    ['timoutMs', { timoutMs: 1 }],
  ])('R-2.9 a policy with a wrong %s is refused when the layer is made, by tool and option', (option, policy) => {
    const tools: AnyTool[] = [{ name: 'flight_search', policy, execute: () => 1 }];
    expect(() => createSpillway({ tools })).toThrow(RangeError);
    expect(() => createSpillway({ tools })).toThrow('flight_search');
    expect(() => createSpillway({ tools })).toThrow(option);
  });
});
