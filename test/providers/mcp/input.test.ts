import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mcpInput } from '../../../src/providers/mcp/input.ts';

const schema = {
  type: 'object',
  properties: {
    text: { type: 'string', maxLength: 5 },
    when: { type: 'string', format: 'date' },
    list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
  },
  required: ['text'],
  additionalProperties: false,
};
const told = (
  inputSchema: Readonly<Record<string, unknown>>,
  value: unknown,
): { problem: string | undefined; unusable: string[] } => {
  const unusable: string[] = [];
  return { problem: mcpInput({ name: 'x', inputSchema }, (reason) => unusable.push(reason)).problem(value), unusable };
};

describe('the input of an MCP tool', () => {
  it.each<[unknown, string | undefined]>([
    [{ text: 'hello' }, undefined],
    [{}, "The input is malformed: the value: must have required property 'text'"],
    [undefined, "The input is malformed: the value: must have required property 'text'"],
    [{ text: 'secret value' }, 'The input is malformed: text: must NOT have more than 5 characters'],
    [{ text: 'x', when: 'today' }, 'The input is malformed: when: must match format "date"'],
    [{ text: 'x', list: [{ n: 1 }, { n: 1.5 }] }, 'The input is malformed: list[1].n: must be integer'],
    [{ text: 'x', more: 1 }, 'The input is malformed: the value: must NOT have additional properties: more'],
  ])('R-12.2 %j: %s', (value, problem) => {
    expect(told(schema, value)).toEqual({ problem, unusable: [] });
    expect(mcpInput({ name: 'x', inputSchema: schema }, () => undefined).schema.safeParse(value).success).toBe(
      problem === undefined,
    );
  });

  it('is read as draft-07 where the schema says so, else as 2020-12', () => {
    const tuple = {
      type: 'object',
      properties: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
    };
    expect(told({ $schema: 'http://json-schema.org/draft-07/schema#', ...tuple }, { pair: [1] }).problem).toContain(
      'pair[0]: must be string',
    );
    expect(
      told({ type: 'object', properties: { pair: { prefixItems: [{ type: 'string' }] } } }, { pair: [1] }).problem,
    ).toContain('pair[0]: must be string');
  });

  it.each<[string, Readonly<Record<string, unknown>>]>([
    [
      'that refers to another document',
      { type: 'object', properties: { a: { $ref: 'http://127.0.0.1:9/schema.json' } } },
    ],
    ['that is none', { type: 'strnig' }],
    ['of an unknown dialect', { $schema: 'http://json-schema.org/draft-03/schema#' }],
    ['with a pattern that is none', { type: 'object', properties: { a: { type: 'string', pattern: '(' } } }],
  ])('with a schema %s is not checked here, and that is told once', (_name, inputSchema) => {
    const unusable: string[] = [];
    const input = mcpInput({ name: 'x', inputSchema }, (reason) => unusable.push(reason));
    expect(unusable).toEqual([]);
    for (const value of [{}, { a: 1 }]) expect(input.problem(value)).toBeUndefined();
    expect(unusable).toHaveLength(1);
  });

  it('of tools with the same $id are told apart', () => {
    const withId = (type: string): Readonly<Record<string, unknown>> => ({
      $id: 'https://example.com/input',
      type: 'object',
      properties: { a: { type } },
    });
    expect(told(withId('string'), { a: 1 })).toEqual({
      problem: 'The input is malformed: a: must be string',
      unusable: [],
    });
    expect(told(withId('number'), { a: 1 })).toEqual({ problem: undefined, unusable: [] });
  });

  it('R-12.2 any value: a short answer, never a throw, and nothing of the value in it', () => {
    const input = mcpInput({ name: 'x', inputSchema: schema }, () => undefined);
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true }), (value) => {
        expect((input.problem(value) ?? '').length).toBeLessThan(2_500);
      }),
    );
    expect(input.problem({ text: 'canary-1'.repeat(1_000) })).not.toContain('canary');
  });
});
