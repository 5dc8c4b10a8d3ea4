// Was: of a call that still waited for another, stored events were read as "may have run", and a finished sibling's
// output was lost after a crash. Now: the first did not run, and the second is answered with its own output.
import { describe, expect, it } from 'vitest';
import type { TraceEvent } from 'spillway';
import {
  evidenceFromTrace,
  repairTranscript,
  type AgentEvent,
  type AgentMessage,
  type ToolCallPart,
} from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';
import { begun, ran, resultOf, typed } from '../agent/kit.ts';
import { marbles } from '../marbles.ts';
import { World, answers, fails, hangs, once, type Scripted } from '../call/kit.ts';

/** What is left in a store: JSON, and nothing that came after the crash. */
const stored = <T>(events: readonly T[]): T[] => JSON.parse(JSON.stringify(events)) as T[];
const made = [
  { id: 'search', name: 'search', input: {} },
  { id: 'price', name: 'price', input: {} },
  { id: 'book', name: 'book', input: { hotel: { $result: 'price' } } },
];

interface Crashed {
  readonly trace: TraceEvent[];
  readonly events: AgentEvent[];
  readonly tools: readonly Scripted[];
  readonly world: World;
}

/** A run that is cut off at 10: `search` has answered, `price` runs, `book` waits for it. */
const crashed = (world: World, output: unknown = { hotel: 'Ada' }): Crashed => {
  const tools = [
    world.scripted('search', [answers(2, output)], { effects: 'read' }),
    world.scripted('price', [hangs], { effects: 'read' }),
    world.scripted('book', [answers(1)], { effects: 'mutating' }),
  ];
  const spillway = world.layer(tools);
  const trace: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => trace.push(event));
  const seen = begun(world, [{ calls: made }], tools, { spillway });
  const left: { trace: TraceEvent[]; events: AgentEvent[] } = { trace: [], events: [] };
  world.at(10, () => {
    left.trace = stored(trace);
    left.events = stored(seen.events);
    seen.unsubscribe();
  });
  world.flush();
  expect(typed(left.events, 'tool_result')).toEqual([]);
  return { ...left, tools, world };
};

const transcriptOf = (events: readonly AgentEvent[]): AgentMessage[] => [
  { role: 'user', content: 'Book me a trip' },
  ...typed(events, 'message').map(({ message }) => message),
];
const textsOf = (messages: readonly AgentMessage[]): string[] =>
  messages.flatMap((message) => (message.role === 'tool' ? message.results.map(({ text }) => text) : []));

describe('R-12.3 what is known after a crash', () => {
  it(
    'R-12.3 a call that waited for another did not run, by the trace',
    marbles((m) => {
      const { trace } = crashed(new World(m));
      expect(Object.fromEntries(evidenceFromTrace(trace))).toEqual({
        search: 'ran',
        price: 'may_have_run',
        book: 'did_not_run',
      });
    }),
  );

  it(
    'R-12.3 by a run’s own events a call that had settled has its output, too',
    marbles((m) => {
      const { events } = crashed(new World(m));
      const evidence = evidenceFromTrace(events);
      expect(evidence.get('search')).toEqual({
        effect: 'ran',
        result: { callId: 'search', toolName: 'search', text: '{"hotel":"Ada"}' },
      });
      expect([evidence.get('price'), evidence.get('book')]).toEqual(['may_have_run', 'did_not_run']);
      const { messages, repairs } = repairTranscript(transcriptOf(events), evidence);
      expect(textsOf(messages)).toEqual([
        '{"hotel":"Ada"}',
        'The run was interrupted before this call had a result. The tool may have run and taken effect. Check first whether it took effect. Only if it did not: you can try again.',
        'The run was interrupted before this call had a result. The tool did not run. You can try again.',
      ]);
      expect(repairs.map((repair) => repair.effect)).toEqual(['ran', 'may_have_run', 'did_not_run']);
      expect(repairTranscript(messages, evidence).messages).toBe(messages);
    }),
  );

  it(
    'R-12.3 a run that is resumed with it shows the model that output',
    marbles((m) => {
      const { events, tools, world } = crashed(new World(m));
      const model = scriptedModel([{ text: 'Ada it is.' }]);
      const resumed = ran(world, [], tools, {
        model,
        messages: transcriptOf(events),
        evidence: evidenceFromTrace(events),
      });
      expect(resultOf(resumed.events).status).toBe('completed');
      expect(textsOf(model.requests[0]?.messages ?? [])[0]).toBe('{"hotel":"Ada"}');
    }),
  );

  it(
    'R-12.3 `tool_result` events whose message was not stored are taken to the byte, failures included',
    marbles((m) => {
      const world = new World(m);
      const tools = [
        world.scripted('search', [answers(1, 'found')], { effects: 'read' }),
        world.scripted('price', [fails(1, new Error('no'))], { effects: 'read', retry: once }),
        world.scripted('book', [answers(1)], { effects: 'mutating' }),
      ];
      const { events } = ran(world, [{ calls: made }, { text: 'ok' }], tools);
      const results = typed(events, 'tool_result');
      expect(results).toHaveLength(3);
      const evidence = evidenceFromTrace(stored(results));
      const [user, assistant] = transcriptOf(events);
      const { messages } = repairTranscript(
        [user, assistant].filter((message) => message !== undefined),
        evidence,
      );
      expect(messages[2]).toEqual({ role: 'tool', results: results.map(({ result }) => result) });
      expect(textsOf(messages)).toEqual(textsOf(transcriptOf(events)));
    }),
  );

  it(
    'R-12.3 of a long output the beginning is shown, as in the run itself',
    marbles((m) => {
      const { events } = crashed(new World(m), 'x'.repeat(30_000));
      const { messages } = repairTranscript(transcriptOf(events), evidenceFromTrace(events));
      const [text = ''] = textsOf(messages);
      expect(text.startsWith('x'.repeat(20_000))).toBe(true);
      expect(text).toContain('[Cut: the first 20000 of 30000 characters.');
    }),
  );

  it(
    'R-11.4 what `capture` lets through of an output in a trace is not taken for it',
    marbles((m) => {
      const world = new World(m);
      const tools = [world.scripted('search', [answers(1, { hotel: 'Ada', card: '4111' })], { effects: 'read' })];
      const spillway = world.layer(tools, { capture: { search: { output: ['hotel'] } } });
      const trace: TraceEvent[] = [];
      spillway.trace$.subscribe((event) => trace.push(event));
      ran(world, [{ calls: made.slice(0, 1) }, { text: 'ok' }], tools, { spillway });
      expect(JSON.stringify(trace)).toContain('Ada');
      expect(Object.fromEntries(evidenceFromTrace(stored(trace)))).toEqual({ search: 'ran' });
    }),
  );

  it(
    'R-12.3 a call whose needs had settled may have begun, however the events end',
    marbles((m) => {
      const world = new World(m);
      const tools = [
        world.scripted('search', [answers(1)], { effects: 'read' }),
        world.scripted('price', [answers(5)], { effects: 'read' }),
        world.scripted('book', [answers(5)], { effects: 'mutating' }),
      ];
      const spillway = world.layer(tools);
      const trace: TraceEvent[] = [];
      spillway.trace$.subscribe((event) => trace.push(event));
      ran(world, [{ calls: made }, { text: 'ok' }], tools, { spillway });
      const priced = trace.findIndex((event) => event.type === 'node_settled' && event.nodeId === 'price');
      for (let at = 0; at <= trace.length; at++) {
        const known = evidenceFromTrace(trace.slice(0, at)).get('book') ?? 'may_have_run';
        // Before its need has settled it had not begun; from then on it may have, until its end is seen.
        if (at > priced) expect(['may_have_run', 'ran']).toContain(known);
        else
          expect(known).toBe(
            at === 0 || !trace.slice(0, at).some(({ type }) => type === 'turn_started')
              ? 'may_have_run'
              : 'did_not_run',
          );
      }
    }),
  );

  it('R-12.3 two calls of one id: the output of one is no answer to the other', () => {
    const header = { seq: 1, atMs: 0, source: 'call', toolName: 'pay' } as const;
    const result = {
      requestId: 'r',
      status: 'success',
      fromCache: false,
      toolName: 'pay',
      durationMs: 1,
      attempts: 1,
      output: { content: 'paid' },
    } as const;
    const told = (callId: string): AgentEvent[] => [
      { type: 'tools', turn: 1, event: { ...header, callId, type: 'call_started', toolCallId: 'call_1' } },
      { type: 'tools', turn: 1, event: { ...header, callId, type: 'attempt_started', attempt: 1 } },
    ];
    const first: AgentEvent[] = [
      ...told('a'),
      {
        type: 'tools',
        turn: 1,
        event: { ...header, callId: 'a', type: 'attempt_succeeded', attempt: 1, durationMs: 1 },
      },
      { type: 'tools', turn: 1, event: { ...header, callId: 'a', type: 'settled', result } },
    ];
    expect(evidenceFromTrace(first).get('call_1')).toMatchObject({ effect: 'ran', result: { text: 'paid' } });
    expect(evidenceFromTrace([...first, ...told('b')]).get('call_1')).toBe('may_have_run');
  });

  it(
    'R-12.3 both kinds of events of one run, one after the other, agree',
    marbles((m) => {
      const { trace, events } = crashed(new World(m));
      const call: ToolCallPart = { type: 'tool_call', id: 'search', name: 'search', input: {} };
      const { messages } = repairTranscript(
        [{ role: 'assistant', content: [call] }],
        evidenceFromTrace([...trace, ...events]),
      );
      expect(textsOf(messages)).toEqual(['{"hotel":"Ada"}']);
    }),
  );
});
