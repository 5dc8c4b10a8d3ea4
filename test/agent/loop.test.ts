import { of } from 'rxjs';
import { createSpillway, tool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scriptedModel } from '../../src/agent/index.ts';
import { marbles } from '../marbles.ts';
import { permanent } from '../support.ts';
import { World, answers, fails, hangs, noBackoff, once } from '../call/kit.ts';
import { asked, begun, lived, ran, resultOf, resultsOf, story, typed } from './kit.ts';

const single = { retry: once } as const;

describe('R-12.3 the agent loop', () => {
  it('R-12.3 AGENT: invalid hand-off parameters, a corrected call and success are one successful turn', async () => {
    const handedOff: unknown[] = [];
    const handOff = tool({
      name: 'router__handoff-to',
      input: z.object({ agent: z.enum(['billing', 'support']), message: z.string().min(1) }),
      execute: (input) => {
        handedOff.push(input);
        return 'Billing has taken over.';
      },
    });
    const model = scriptedModel([
      { calls: [{ id: 'c1', name: 'router__handoff-to', input: { agent: 'accounts' } }] },
      {
        calls: [{ id: 'c2', name: 'router__handoff-to', input: { agent: 'billing', message: 'An invoice is wrong' } }],
      },
      { text: 'I have handed you over to billing.' },
    ]);
    const events = await lived({
      model,
      spillway: createSpillway({ tools: [handOff] }),
      tools: [handOff],
      messages: asked,
    });
    const result = resultOf(events);
    expect(result).toMatchObject({
      status: 'completed',
      text: 'I have handed you over to billing.',
      turns: 3,
      executedToolCallIds: ['c2'],
      toolFailureKinds: { c1: 'invalid_parameters' },
      hadToolFailure: true,
    });
    expect(handedOff).toStrictEqual([{ agent: 'billing', message: 'An invoice is wrong' }]);
    expect(typed(events, 'turn_settled').map(({ status, executedTools }) => [status, executedTools])).toStrictEqual([
      ['failed', 0],
      ['completed', 1],
      ['completed', 0],
    ]);
    // What the model was told is enough to correct itself.
    const [first] = resultsOf(events);
    expect(first?.text).toContain('agent: Invalid option: expected one of "billing"|"support"');
    expect(first?.text).toContain('message: Invalid input');
    expect(model.requests[1]?.messages.at(-1)).toStrictEqual({ role: 'tool', results: [first] });
  });

  it(
    'R-12.3 tool failures do not fail a turn: that takes a turn in which nothing ran',
    marbles((m) => {
      const world = new World(m);
      const bad = world.scripted('bad', [fails(5, permanent)], single);
      const { events } = ran(
        world,
        [{ calls: [{ name: 'bad', input: {} }] }, { calls: [{ name: 'nobody', input: {} }] }, { text: 'I gave up.' }],
        [bad],
      );
      expect(typed(events, 'turn_settled').map(({ status }) => status)).toStrictEqual([
        'completed',
        'failed',
        'completed',
      ]);
      expect(resultOf(events)).toMatchObject({
        status: 'completed',
        executedToolCallIds: ['call_1'],
        toolFailureKinds: { call_1: 'execution_error', call_2: 'unknown_tool' },
      });
    }),
  );

  it(
    'R-12.3 a run that used all its turns and ran no tool has failed; one that ran any met its limit',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const lost = [{ calls: [{ name: 'nobody', input: {} }] }, { calls: [{ name: 'nobody', input: {} }] }];
      expect(resultOf(ran(world, lost, [good], { limits: { turns: 2 } }).events)).toMatchObject({
        status: 'failed',
        reason: 'no_tool_executed',
        turns: 2,
      });
      const used = [{ calls: [{ name: 'good', input: {} }] }, { calls: [{ name: 'nobody', input: {} }] }];
      expect(resultOf(ran(world, used, [good], { limits: { turns: 2 } }).events)).toMatchObject({
        status: 'limit',
        reason: 'turns',
        executedToolCallIds: ['call_1'],
      });
    }),
  );

  it(
    'R-12.3 calls of one step run in parallel, and their results come in call order',
    marbles((m) => {
      const world = new World(m);
      const slow = world.scripted('slow', [answers(50, 'slow')]);
      const quick = world.scripted('quick', [answers(10, 'quick')]);
      const { events, endedAtMs } = ran(
        world,
        [
          {
            calls: [
              { name: 'slow', input: {} },
              { name: 'quick', input: {} },
            ],
          },
          { text: 'ok' },
        ],
        [slow, quick],
      );
      expect([slow.starts, quick.starts]).toStrictEqual([[0], [0]]);
      expect(endedAtMs).toBe(50);
      expect(resultsOf(events).map(({ text }) => text)).toStrictEqual(['slow', 'quick']);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-12.3 one result per call, whatever became of the others',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(5, { seats: 2 })]);
      const bad = world.scripted('bad', [fails(5, new Error('secret=abc'))], single);
      const stuck = world.scripted('stuck', [hangs], { timeoutMs: 100, retry: once });
      const calls = [
        { id: 'a', name: 'good', input: {} },
        { id: 'b', name: 'bad', input: {} },
        { id: 'c', name: 'stuck', input: {} },
        { id: 'd', name: 'nobody', input: {} },
        { id: 'e', name: 'good', unparsed: '{"from": "HE' },
        { id: '', name: 'good', input: {} },
        { id: 'a', name: 'good', input: {} },
        { id: 'b', name: 'good', input: { other: true } },
      ];
      const { events, model } = ran(world, [{ calls }, { text: 'ok' }], [good, bad, stuck]);
      const kinds = typed(events, 'tool_result').map(({ kind, effect }) => [kind, effect]);
      expect(kinds).toStrictEqual([
        [undefined, 'ran'],
        ['execution_error', 'ran'],
        ['timeout', 'may_have_run'],
        ['unknown_tool', 'did_not_run'],
        ['invalid_parameters', 'did_not_run'],
        [undefined, 'ran'],
        ['duplicate_in_flight', 'did_not_run'],
        ['invalid_parameters', 'did_not_run'],
      ]);
      expect(good.starts).toHaveLength(2);
      const results = resultsOf(events);
      expect(results.every(({ text }) => /\S/.test(text))).toBe(true);
      expect(new Set(results.map(({ callId }) => callId)).size).toBe(calls.length);
      const called = model.requests[1]?.messages.at(-2);
      expect(results.map(({ callId }) => callId)).toStrictEqual(
        called?.role === 'assistant'
          ? called.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))
          : [],
      );
      expect(JSON.stringify(resultOf(events).messages)).not.toContain('secret=abc');
      expect(resultOf(events).executedToolCallIds).toHaveLength(4);
    }),
  );

  it(
    'R-12.3 an id used again in a later step gets one of its own, and the call runs',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(5, 'one'), answers(5, 'two')]);
      const same = { calls: [{ id: 'same', name: 'good', input: {} }] };
      const result = resultOf(ran(world, [same, same, { text: 'ok' }], [good]).events);
      expect(good.starts).toHaveLength(2);
      expect(new Set(result.executedToolCallIds).size).toBe(2);
    }),
  );

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['white space', ' \n'],
  ] as const)('R-12.3 a success without text says so: %s', (_, value) =>
    marbles((m) => {
      const world = new World(m);
      const { events } = ran(
        world,
        [{ calls: [{ name: 'quiet', input: {} }] }, { text: 'ok' }],
        [world.scripted('quiet', [() => of(value)])],
      );
      expect(resultsOf(events)).toStrictEqual([{ callId: 'call_1', toolName: 'quiet', text: '(no output)' }]);
    })(),
  );

  it(
    'R-12.3 tells its events in order, and messages are what the next step is asked with',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(5)]);
      const { events, model } = ran(
        world,
        [{ text: 'Let me see. ', calls: [{ name: 'good', input: {} }] }, { text: 'Done.' }],
        [good],
        { system: 'Be brief' },
      );
      expect(story(events)).toStrictEqual([
        'turn_started',
        'text',
        'message',
        'tool_result',
        'message',
        'turn_settled',
        'turn_started',
        'text',
        'message',
        'turn_settled',
        'settled',
      ]);
      const messages = typed(events, 'message').map(({ message }) => message);
      expect(model.requests.map((request) => request.messages)).toStrictEqual([
        asked,
        [...asked, ...messages.slice(0, 2)],
      ]);
      expect(model.requests[0]).toMatchObject({
        system: 'Be brief',
        tools: [{ name: 'good', inputSchema: { type: 'object' } }, { name: 'tool_output' }],
      });
      expect(resultOf(events)).toMatchObject({ text: 'Done.', messages: [...asked, ...messages], stopReason: 'end' });
      expect(structuredClone(resultOf(events))).toStrictEqual(JSON.parse(JSON.stringify(resultOf(events))));
    }),
  );

  it(
    'R-12.3 a paused model is asked again as it is',
    marbles((m) => {
      const world = new World(m);
      const { events, model } = ran(world, [{ text: 'searching', stop: 'pause' }, { text: 'found' }], []);
      expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'found', turns: 2 });
      expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'assistant' });
    }),
  );

  it.each([
    ['refusal', 'failed', 'refused'],
    ['max_tokens', 'limit', 'output_tokens'],
    ['context_full', 'limit', 'context_full'],
  ] as const)('R-12.3 a model that stops for %s: %s', (stop, status, reason) =>
    marbles((m) => {
      const world = new World(m);
      expect(resultOf(ran(world, [{ text: 'so far', stop }], []).events)).toMatchObject({
        status,
        reason,
        text: 'so far',
      });
    })(),
  );

  it(
    'R-12.3 the calls of a refused answer are not made, and are answered all the same',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(5)]);
      const { events } = ran(world, [{ calls: [{ name: 'good', input: {} }], stop: 'refusal' }], [good]);
      expect(good.starts).toStrictEqual([]);
      expect(resultOf(events).messages.at(-1)).toMatchObject({
        role: 'tool',
        results: [{ callId: 'call_1', isError: true, text: expect.stringContaining('did not run') as string }],
      });
    }),
  );

  it(
    'R-12.3 unsubscribing stops the tools at once, and a subscription is a run of its own',
    marbles((m) => {
      const world = new World(m);
      const stuck = world.scripted('stuck', [hangs]);
      const seen = begun(world, [{ calls: [{ name: 'stuck', input: {} }] }], [stuck]);
      world.at(20, () => seen.unsubscribe());
      world.flush();
      expect(stuck.aborts).toStrictEqual([20]);
      expect(seen.endedAtMs).toBeUndefined();
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-5.2 two thousand steps that end at once are a loop and not a stack',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(0)], { retry: noBackoff });
      const script = Array.from({ length: 2_000 }, (_, place) => ({
        calls: [{ id: `c${place}`, name: 'good', input: { place } }],
      }));
      const last = begun(world, script, [good], { limits: { turns: 2_000 } }).events.at(-1);
      expect(last).toMatchObject({ type: 'settled', result: { turns: 2_000, status: 'limit' } });
    }),
  );
});
