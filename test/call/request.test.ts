import { createSpillway, type ToolCallEnvelope, type ToolCallRequest, type ToolContext } from 'spillway';
import { toolCallEnvelopeSchema, toolResultEnvelopeSchema } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { marbles } from '../marbles.ts';
import { World, answers, envelope, typed } from './kit.ts';

const whole = envelope('flight_search');
const without = (path: string): unknown => {
  const [first = '', second] = path.split('.');
  const drop = (from: object, key: string): Record<string, unknown> =>
    Object.fromEntries(Object.entries(from).filter(([own]) => own !== key));
  return second === undefined ? drop(whole, first) : { ...whole, [first]: drop(whole[first as 'target'], second) };
};

describe('R-8.1 the envelope', () => {
  it.each<readonly [string, unknown]>([
    ['contractVersion', without('contractVersion')],
    ['requestId', without('requestId')],
    ['toolName', without('toolName')],
    ['toolNamespace', without('toolNamespace')],
    ['target', without('target')],
    ['target.sessionKey', without('target.sessionKey')],
    ['target.actorId', without('target.actorId')],
    ['payload', without('payload')],
    ['payload.params', without('payload.params')],
    ['payload.version', { ...whole, payload: { ...whole.payload, version: '2.0' } }],
    ['payload.callHints.timeoutMs', { ...whole, payload: { ...whole.payload, callHints: { timeoutMs: -1 } } }],
    ['transport', without('transport')],
    ['transport.dedupeMode', { ...whole, transport: { ...whole.transport, dedupeMode: 'sometimes' } }],
    ['transport.retryBudget', without('transport.retryBudget')],
    [
      'transport.retryBudget.maxAttempts',
      { ...whole, transport: { ...whole.transport, retryBudget: { maxAttempts: 0, maxElapsedMs: 1 } } },
    ],
    ['control', without('control')],
    ['control.deadlineAtMs', { ...whole, control: { deadlineAtMs: 'soon' } }],
    ['control.requestTags', { ...whole, control: { requestTags: 'one' } }],
    ['trace', without('trace')],
    ['unheard', { ...whole, unheard: 1 }],
  ])('TR-1 malformed at %s: a terminal result that names it, no attempt', (path, malformed) =>
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [answers(1)], { alternatives: ['other'] });
      const layer = world.layer([tried, world.scripted('other', [answers(1)])]);
      const trace = world.watch(layer.trace$).events;
      const result = world.call(layer, malformed as ToolCallEnvelope);
      expect(result).toMatchObject({
        status: 'error',
        attempts: 0,
        fromCache: false,
        error: { code: 'invalid_parameters', terminal: true, retriable: false },
      });
      expect(result.error?.message).toContain(path);
      expect(tried.starts).toStrictEqual([]);
      expect(typed(trace, 'attempt_started')).toStrictEqual([]);
      expect(toolResultEnvelopeSchema.parse(result)).toStrictEqual(result);
      if (path !== 'requestId') expect(result.requestId).toBe(whole.requestId);
    })(),
  );

  it.each<readonly [string, unknown]>([
    ['null', null],
    ['a number', 7],
    ['an empty object', {}],
    ['an unknown field', { toolName: 'flight_search', tenent: 'x' }],
    ['an empty key', { toolName: 'flight_search', idempotencyKey: '' }],
  ])('R-8.1 a short form that is %s is refused likewise', (_name, request) =>
    marbles((m) => {
      const world = new World(m);
      expect(
        world.call(world.layer([world.scripted('flight_search', [answers(1)])]), request as ToolCallRequest),
      ).toMatchObject({ attempts: 0, error: { code: 'invalid_parameters', terminal: true } });
    })(),
  );

  it(
    'R-8.1 is well as it is, and its id is the result’s',
    marbles((m) => {
      const world = new World(m);
      expect(toolCallEnvelopeSchema.parse(whole)).toStrictEqual(whole);
      const tried = world.scripted('flight_search', [answers(1, { id: 7 })]);
      const result = world.call(world.layer([tried]), {
        ...whole,
        payload: { version: '1.0', params: { from: 'HEL' } },
      });
      expect(result).toMatchObject({ requestId: whole.requestId, status: 'success', output: { content: { id: 7 } } });
      expect(tried.inputs).toStrictEqual([{ from: 'HEL' }]);
    }),
  );

  it('R-8.1 the short form takes any input, and gets an id of its own', async () => {
    const layer = createSpillway({
      tools: [{ name: 'echo', execute: (input: unknown, { callKey }: ToolContext) => [input, callKey] }],
    });
    const [first, second] = [
      await layer.execute({ toolName: 'echo', input: [1] }),
      await layer.execute({ toolName: 'echo', input: 'x', idempotencyKey: 'mine' }),
    ];
    expect(first.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(first.requestId).not.toBe(second.requestId);
    expect([first.output?.content, second.output?.content]).toStrictEqual([
      [[1], first.requestId],
      ['x', 'mine'],
    ]);
  });

  it(
    'R-12.2 input that does not fit its schema is refused before anything runs, with its path; what fits is what the schema made',
    marbles((m) => {
      const world = new World(m);
      const scripted = world.scripted('flight_search', [answers(1)]);
      const layer = world.layer([
        { ...scripted.tool, input: z.object({ legs: z.array(z.object({ to: z.string().trim() })) }) },
      ]);
      const refused = world.call(layer, { toolName: 'flight_search', input: { legs: [{ to: 'NRT' }, { to: 7 }] } });
      expect(refused).toMatchObject({ attempts: 0, error: { code: 'invalid_parameters', terminal: true } });
      expect(refused.error?.message).toContain('legs[1].to');
      world.call(layer, { toolName: 'flight_search', input: { legs: [{ to: ' NRT ' }] } });
      expect(scripted.inputs).toStrictEqual([{ legs: [{ to: 'NRT' }] }]);
      expect(layer.breakers.get('flight_search').state.measured).toBe(1);
    }),
  );

  it(
    'R-1.1 an unknown tool is an error, permanent, not executed',
    marbles((m) => {
      const world = new World(m);
      const result = world.call(world.layer([]), 'constructor');
      expect(result).toMatchObject({
        status: 'error',
        attempts: 0,
        toolName: 'constructor',
        error: { code: 'unknown_tool', terminal: true },
      });
      expect(result.error?.message).toBe('No tool is named constructor');
    }),
  );
});
