import { EMPTY, NEVER, concat, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ModelEvent } from '../../src/agent/index.ts';
import { marbles } from '../marbles.ts';
import { World, answers } from '../call/kit.ts';
import { asked, begun, ran, resultOf, story, typed } from './kit.ts';

const overloaded = Object.assign(new Error('Overloaded, key sk-123'), { status: 529 });
const denied = Object.assign(new Error('invalid x-api-key'), { status: 401 });
const steady = { jitterPercent: 0 } as const;
const partial = (text: string): ReturnType<typeof concat<[ModelEvent, never]>> =>
  concat(
    of<ModelEvent>({ type: 'text', text }),
    throwError(() => overloaded),
  );

describe('R-12.3 a model that fails', () => {
  it(
    'R-12.3 before it says anything: asked again with backoff, 3 times in all',
    marbles((m) => {
      const world = new World(m);
      const { events, endedAtMs } = ran(world, [{ error: overloaded }, { error: overloaded }, { text: 'here' }], [], {
        modelRetry: steady,
      });
      expect(story(events)).toStrictEqual([
        'turn_started',
        'model_failed',
        'model_failed',
        'text',
        'message',
        'turn_settled',
        'settled',
      ]);
      expect(endedAtMs).toBe(500 + 1_000);
      expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'here', turns: 1 });
      const lost = ran(
        world,
        [{ error: overloaded }, { error: overloaded }, { error: overloaded }, { text: 'never asked' }],
        [],
        { modelRetry: steady },
      );
      expect(resultOf(lost.events)).toMatchObject({
        status: 'failed',
        reason: 'model_error',
        error: { kind: 'network_error', classification: 'transient', status: 529 },
        messages: asked,
        turns: 1,
      });
      expect(lost.model.requests).toHaveLength(3);
    }),
  );

  it(
    'R-12.3 a permanent failure, and any with modelRetry off, ends the run at once',
    marbles((m) => {
      const world = new World(m);
      const refused = ran(world, [{ error: denied }, { text: 'never asked' }], []);
      expect(resultOf(refused.events)).toMatchObject({
        status: 'failed',
        reason: 'model_error',
        error: { kind: 'auth_error', status: 401 },
      });
      const off = ran(world, [{ error: overloaded }, { text: 'never asked' }], [], { modelRetry: false });
      expect(resultOf(off.events)).toMatchObject({ status: 'failed', error: { kind: 'network_error' } });
      expect([refused.model.requests, off.model.requests].map(({ length }) => length)).toStrictEqual([1, 1]);
    }),
  );

  it(
    'R-2.4 Retry-After is a floor under the wait',
    marbles((m) => {
      const world = new World(m);
      const limited = Object.assign(new Error('slow down'), { status: 429, headers: { 'retry-after': '7' } });
      expect(ran(world, [{ error: limited }, { text: 'ok' }], [], { modelRetry: steady }).endedAtMs).toBe(7_000);
    }),
  );

  it(
    'R-12.3 after it began to speak: what was shown is void, and it is asked once more as a whole',
    marbles((m) => {
      const world = new World(m);
      const { events, model } = ran(world, [partial('Once up'), { text: 'Once upon a time' }], []);
      expect(story(events)).toStrictEqual([
        'turn_started',
        'text',
        'model_failed',
        'discarded',
        'text',
        'message',
        'turn_settled',
        'settled',
      ]);
      expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'Once upon a time' });
      expect(model.requests.map(({ messages }) => messages)).toStrictEqual([asked, asked]);
    }),
  );

  it(
    'R-12.3 twice in the middle ends the run, and nothing of it is in the messages',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const called = concat(
        of<ModelEvent>({ type: 'tool_call', id: 'x', name: 'good', input: {} }),
        throwError(() => overloaded),
      );
      const { events } = ran(
        world,
        [{ calls: [{ id: 'c1', name: 'good', input: {} }] }, called, called, { text: 'never asked' }],
        [good],
      );
      const result = resultOf(events);
      expect(result).toMatchObject({ status: 'failed', reason: 'model_error', executedToolCallIds: ['c1'], turns: 2 });
      expect(result.messages.map(({ role }) => role)).toStrictEqual(['user', 'assistant', 'tool']);
      expect(good.starts).toHaveLength(1);
      // Nothing had been shown, so there was nothing to take back.
      expect(typed(events, 'discarded')).toStrictEqual([]);
    }),
  );

  it(
    'R-12.3 a stream that just ends, without a reason to stop, counts as broken off',
    marbles((m) => {
      const world = new World(m);
      const { events } = ran(world, [EMPTY, of<ModelEvent>({ type: 'text', text: 'half' }), { text: 'whole' }], []);
      expect(typed(events, 'model_failed').map(({ error }) => error.kind)).toStrictEqual([
        'network_error',
        'network_error',
      ]);
      expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'whole' });
    }),
  );

  it(
    'R-12.3 a model that hangs is given up at its limit; one that throws in the call is a failure like any',
    marbles((m) => {
      const world = new World(m);
      const stuck = ran(world, [NEVER, NEVER, NEVER], [], {
        limits: { modelTimeoutMs: 100 },
        modelRetry: { ...steady, maxAttempts: 2 },
      });
      expect(stuck.endedAtMs).toBe(100 + 500 + 100);
      expect(resultOf(stuck.events)).toMatchObject({ status: 'failed', error: { kind: 'timeout' } });
      const thrown = ran(world, [], [], {
        model: () => {
          throw denied;
        },
      });
      expect(resultOf(thrown.events)).toMatchObject({ status: 'failed', error: { kind: 'auth_error' } });
    }),
  );

  it(
    'R-2.7 unsubscribing stops the model, also in a wait, and its signal says so',
    marbles((m) => {
      const world = new World(m);
      const waiting = begun(world, [{ error: overloaded }, { text: 'never asked' }], []);
      const talking = begun(world, [NEVER], []);
      const done = begun(world, [{ text: 'ok' }], []);
      world.at(100, () => [waiting, talking].forEach((seen) => seen.unsubscribe()));
      world.flush();
      expect(waiting.model.requests).toHaveLength(1);
      expect([talking, done].map(({ model }) => model.requests[0]?.signal.aborted)).toStrictEqual([true, false]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-12.3 usage is summed over the run, the last count of each answer',
    marbles((m) => {
      const world = new World(m);
      const counted = (inputTokens: number, outputTokens: number): ModelEvent[] => [
        { type: 'usage', usage: { inputTokens, outputTokens: 1, cacheReadTokens: 5 } },
        { type: 'text', text: 'x' },
        { type: 'usage', usage: { outputTokens } },
        { type: 'stop', reason: inputTokens === 10 ? 'pause' : 'end' },
      ];
      expect(resultOf(ran(world, [counted(10, 3), counted(20, 4)], []).events).usage).toStrictEqual({
        inputTokens: 30,
        outputTokens: 7,
        cacheReadTokens: 10,
      });
    }),
  );
});
