import fc from 'fast-check';
import { ToolExecutionError, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import {
  agentMessagesSchema,
  evidenceFromTrace,
  repairTranscript,
  type AgentMessage,
  type Effect,
  type ToolCallPart,
  type ToolResult,
} from '../../src/agent/index.ts';
import { marbles } from '../marbles.ts';
import { World, answers, fails, hangs, once } from '../call/kit.ts';
import { asked, ran, resultOf, typed } from './kit.ts';

const call = (id: string): ToolCallPart => ({ type: 'tool_call', id, name: 'book', input: {} });
const calls = (...ids: string[]): AgentMessage => ({
  role: 'assistant',
  content: [{ type: 'text', text: 'Now' }, ...ids.map(call)],
});
const result = (callId: string, text = `of ${callId}`): ToolResult => ({ callId, toolName: 'book', text });
const results = (...list: Array<string | ToolResult>): AgentMessage => ({
  role: 'tool',
  results: list.map((one) => (typeof one === 'string' ? result(one) : one)),
});
const user: AgentMessage = { role: 'user', content: 'go on' };

/** Every call answered once, in order, in the next message; and nothing else answered. */
const isValid = (messages: readonly AgentMessage[]): boolean =>
  messages.every((message, at) => {
    const [before, next] = [messages[at - 1], messages[at + 1]];
    const made =
      message.role === 'assistant'
        ? message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))
        : [];
    if (message.role === 'tool')
      return (
        before?.role === 'assistant' &&
        before.content.some(({ type }) => type === 'tool_call') &&
        message.results.every(({ text }) => /\S/.test(text))
      );
    if (made.length === 0) return true;
    return (
      new Set(made).size === made.length &&
      !made.includes('') &&
      next?.role === 'tool' &&
      JSON.stringify(next.results.map(({ callId }) => callId)) === JSON.stringify(made)
    );
  });

const id = fc.constantFrom('a', 'b', 'c', '');
const transcripts = fc.array(
  fc.oneof(
    fc.constant(user),
    fc.array(id, { maxLength: 4 }).map((ids) => calls(...ids)),
    fc
      .array(
        fc.tuple(id, fc.constantFrom('done', '', ' ')).map(([callId, text]) => result(callId, text)),
        { maxLength: 4 },
      )
      .map((list) => results(...list)),
  ),
  { maxLength: 12 },
);

describe('R-12.3 repairTranscript', () => {
  it('R-12.3 any transcript becomes valid, mending it twice changes nothing more, and what was valid stays the same object', () => {
    fc.assert(
      fc.property(transcripts, (messages) => {
        const copy = structuredClone(messages);
        const { messages: mended, repairs } = repairTranscript(messages);
        expect(isValid(mended)).toBe(true);
        expect(agentMessagesSchema.parse(mended)).toStrictEqual(mended);
        const again = repairTranscript(mended);
        expect(again.repairs).toStrictEqual([]);
        expect(again.messages).toBe(mended);
        expect(repairs.length === 0).toBe(isValid(messages));
        expect(messages).toStrictEqual(copy);
      }),
      { numRuns: 2_000 },
    );
  });

  it('R-12.3 results that were there stay to the byte', () => {
    fc.assert(
      fc.property(transcripts, (messages) => {
        const given = messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
        const texts = new Set(given.map(({ text }) => text));
        const { messages: mended, repairs } = repairTranscript(messages);
        const made = new Set(repairs.flatMap((repair) => (repair.type === 'answered' ? [repair.callId] : [])));
        const kept = mended.flatMap((message) => (message.role === 'tool' ? message.results : []));
        for (const { text, callId } of kept)
          expect(texts.has(text) || made.has(callId) || text === '(no output)').toBe(true);
      }),
    );
  });

  it.each([
    [
      'ran',
      'The run was interrupted before this call had a result. The tool ran. Check first whether it took effect. Only if it did not: you can try again.',
    ],
    ['did_not_run', 'The run was interrupted before this call had a result. The tool did not run. You can try again.'],
    [
      'may_have_run',
      'The run was interrupted before this call had a result. The tool may have run and taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    ],
  ] as const)('R-12.3 a call without a result is answered by the evidence: %s', (effect, text) => {
    const { messages, repairs } = repairTranscript(
      [user, calls('a', 'b'), results('b')],
      new Map<string, Effect>([['a', effect]]),
    );
    expect(messages.at(-1)).toStrictEqual({
      role: 'tool',
      results: [{ callId: 'a', toolName: 'book', text, isError: true }, result('b')],
    });
    expect(repairs).toStrictEqual([{ type: 'answered', callId: 'a', at: 1, effect }]);
  });

  it('R-12.3 without evidence it may have run', () => {
    expect(repairTranscript([calls('a')]).repairs).toStrictEqual([
      { type: 'answered', callId: 'a', at: 0, effect: 'may_have_run' },
    ]);
  });

  it('R-12.3 names what it dropped, and keeps the first of two results', () => {
    const { messages, repairs } = repairTranscript([
      results('x'),
      calls('a', 'b'),
      results('b', 'a', result('a', 'second'), 'y'),
      user,
      results('a'),
    ]);
    expect(messages).toStrictEqual([calls('a', 'b'), results('a', 'b'), user]);
    expect(repairs.map(({ type, callId, at }) => [type, callId, at])).toStrictEqual([
      ['dropped_result', 'x', 0],
      ['dropped_duplicate', 'a', 2],
      ['dropped_result', 'y', 2],
      ['reordered', 'a', 2],
      ['dropped_result', 'a', 4],
    ]);
  });

  it(
    'R-12.3 a run mends what it is given, says so, and goes on',
    marbles((m) => {
      const world = new World(m);
      const { events, model } = ran(world, [{ text: 'Welcome back' }], [], { messages: [...asked, calls('a')] });
      expect(typed(events, 'repaired')).toMatchObject([{ repairs: [{ type: 'answered', callId: 'a' }] }]);
      expect(isValid(model.requests[0]?.messages ?? [])).toBe(true);
      expect(resultOf(events).messages).toHaveLength(4);
      const known = ran(world, [{ text: 'Welcome back' }], [], {
        messages: [...asked, calls('a')],
        evidence: new Map([['a', 'ran']]),
      });
      expect(resultOf(known.events).messages[2]).toMatchObject({
        results: [
          {
            text: 'The run was interrupted before this call had a result. The tool ran. Check first whether it took effect. Only if it did not: you can try again.',
          },
        ],
      });
    }),
  );
});

describe('R-12.3 evidenceFromTrace', () => {
  it(
    'R-12.3 says what a trace proves, and nothing more',
    marbles((m) => {
      const world = new World(m);
      const steps = {
        good: [answers(1)],
        bad: [fails(1, new Error('no'))],
        lost: [fails(1, new ToolExecutionError('transport_error', 'gone', { uncertain: true }))],
        stuck: [hangs],
      };
      const tools = Object.entries(steps).map(([name, list]) => world.scripted(name, list, { retry: once }));
      const spillway = world.layer(tools);
      const trace: TraceEvent[] = [];
      spillway.trace$.subscribe((event) => trace.push(event));
      const made = ['good', 'bad', 'lost', 'stuck'].map((name) => ({ id: name, name, input: {} }));
      const whole = ran(world, [{ calls: made }, { text: 'ok' }], tools, { spillway, turn: { timeoutMs: 50 } });
      expect(resultOf(whole.events).status).toBe('completed');
      const proven = { good: 'ran', bad: 'ran', lost: 'may_have_run', stuck: 'may_have_run' };
      expect(Object.fromEntries(evidenceFromTrace(trace))).toStrictEqual(proven);
      // Cut off anywhere, it never says less than what can have happened.
      for (let at = 0; at <= trace.length; at++) {
        const cut = evidenceFromTrace(trace.slice(0, at));
        for (const [name, effect] of cut)
          expect([proven[name as keyof typeof proven], 'may_have_run']).toContain(effect);
      }
    }),
  );

  it(
    'R-12.3 a call that was refused did not run',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('good', [answers(1)]);
      const spillway = world.layer([good]);
      const trace: TraceEvent[] = [];
      spillway.trace$.subscribe((event) => trace.push(event));
      spillway.breakers.get('good').forceOpen();
      ran(world, [{ calls: [{ id: 'a', name: 'good', input: {} }] }, { text: 'ok' }], [good], { spillway });
      expect(Object.fromEntries(evidenceFromTrace(trace))).toStrictEqual({ a: 'did_not_run' });
    }),
  );
});
