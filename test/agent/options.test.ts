import { createSpillway, tool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { runAgent, scriptedModel, type AgentOptions } from '../../src/agent/index.ts';
import { asked, lived, resultOf } from './kit.ts';

const book = tool({
  name: 'book',
  description: 'Books',
  input: z.object({ to: z.string(), at: z.date().optional(), seats: z.number().default(1) }),
  execute: () => 'ok',
});
const base: AgentOptions = { model: scriptedModel([{ text: 'ok' }]), spillway: createSpillway(), messages: asked };
const made =
  (options: object): (() => unknown) =>
  () =>
    runAgent({ ...base, ...options });

describe('R-2.9 options of runAgent', () => {
  it.each([
    ['a misspelt option', { limit: {} }, 'runAgent has no option "limit"'],
    ['a misspelt limit', { limits: { turn: 3 } }, 'limits has no option "turn"'],
    ['a misspelt loop limit', { limits: { loop: { warn: 3 } } }, 'limits.loop has no option "warn"'],
    ['no turns', { limits: { turns: 0 } }, 'limits.turns must be an integer from 1'],
    ['half a call', { limits: { toolCallsPerTurn: 1.5 } }, 'limits.toolCallsPerTurn must be an integer'],
    ['no output', { limits: { outputChars: 0 } }, 'limits.outputChars must be'],
    ['no time', { limits: { timeMs: 0 } }, 'limits.timeMs must be a duration above 0'],
    ['a model retry out of range', { modelRetry: { maxAttempts: 0 } }, 'maxAttempts must be'],
    ['a turn option out of range', { turn: { concurrency: 0 } }, 'concurrency must be'],
    ['no model', { model: 'claude' }, 'model must be a function'],
    ['no layer', { spillway: {} }, 'spillway must be a layer'],
    ['two tools of one name', { tools: [book, book] }, 'two of tools are named book'],
    ['what is no tool', { tools: [{ name: 'x' }] }, 'each of tools must be an object with a name'],
    [
      'the loop’s own tool',
      { tools: [{ ...book, name: 'tool_output' }] },
      'tool_output is the loop’s own tool'.replace('’', "'"),
    ],
    [
      'a tool whose input is no object',
      { tools: [tool({ name: 'x', input: z.string(), execute: () => 1 })] },
      'tool x: models call tools with objects, and its input is of type "string"',
    ],
    [
      'messages of another kind',
      { messages: [{ role: 'assistant', content: 'text' }] },
      'messages[0][content] is no message of an agent',
    ],
    ['a message of no role', { messages: [...asked, { role: 'system', content: 'x' }] }, 'messages[1]'],
    ['no list of messages', { messages: 'hi' }, 'messages is no message of an agent'],
  ])('R-2.9 %s is refused before anything runs', (_, options, message) => {
    expect(made(options)).toThrow(RangeError);
    expect(made(options)).toThrow(message);
  });

  it('R-12.3 a model is told of a tool by its JSON Schema, as input; what JSON cannot say is left open', async () => {
    const wired = {
      ...book,
      name: 'wired',
      inputJsonSchema: { type: 'object', properties: { x: { type: 'number' } } },
    };
    const either = tool({
      name: 'either',
      input: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
      execute: () => 1,
    });
    const model = scriptedModel([{ text: 'ok' }]);
    await lived({ ...base, model, tools: [book, wired, either], limits: { outputChars: Infinity } });
    expect(model.requests[0]?.tools).toStrictEqual([
      {
        name: 'book',
        description: 'Books',
        inputSchema: {
          type: 'object',
          properties: { to: { type: 'string' }, at: {}, seats: { type: 'number', default: 1 } },
          required: ['to'],
        },
      },
      { name: 'wired', description: 'Books', inputSchema: wired.inputJsonSchema },
      {
        name: 'either',
        inputSchema: {
          type: 'object',
          anyOf: [expect.objectContaining({ required: ['a'] }), expect.objectContaining({ required: ['b'] })],
        },
      },
    ]);
  });

  it('R-12.3 nothing is offered but what is given, whatever else the layer knows', async () => {
    const ran: string[] = [];
    const hidden = tool({ name: 'hidden', execute: () => void ran.push('hidden') });
    const model = scriptedModel([{ calls: [{ name: 'hidden', input: {} }] }, { text: 'ok' }]);
    const result = resultOf(
      await lived({ ...base, model, spillway: createSpillway({ tools: [hidden] }), tools: [book] }),
    );
    expect(result.toolFailureKinds).toStrictEqual({ call_1: 'unknown_tool' });
    expect(ran).toStrictEqual([]);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toStrictEqual(['book', 'tool_output']);
  });

  it('R-2.9 a tool whose policy cannot be is the stream’s error', async () => {
    const wrong = tool({ name: 'wrong', policy: { timeoutMs: -1 }, execute: () => 1 });
    await expect(
      lived({ ...base, model: scriptedModel([{ calls: [{ name: 'wrong', input: {} }] }]), tools: [wrong] }),
    ).rejects.toThrow('tool wrong: timeoutMs must be');
  });
});
