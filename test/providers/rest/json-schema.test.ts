import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileJsonSchema, jsonSchemaInput, jsonSchemaIssues } from '../../../src/policy/json-schema.ts';

describe('R-12.2 a JSON Schema', () => {
  it('says where a value does not fit, and what it has to be, never the value', () => {
    const check = compileJsonSchema(
      {
        type: 'object',
        properties: {
          to: { type: 'array', items: { type: 'string', format: 'email' } },
          'a.b': { type: 'integer', minimum: 1 },
          colour: { enum: ['red', 'blue'] },
        },
        required: ['to'],
        additionalProperties: false,
      },
      { from: 'author' },
    );
    expect(check({ to: ['a@example.com'], 'a.b': 1, colour: 'red' })).toBeUndefined();
    const problem = check({ to: ['a@example.com', 'hunter2'], 'a.b': 0, colour: 'green', more: 'hunter2' });
    expect(problem?.split('; ').toSorted()).toEqual([
      '["a.b"]: must be >= 1',
      'colour: must be equal to one of the allowed values: ["red","blue"]',
      'the value: must NOT have additional properties: more',
      'to[1]: must match format "email"',
    ]);
    expect(problem).not.toContain('hunter2');
  });

  it('of a wire stops at the first problem, and passes over keywords that are not known', () => {
    const check = compileJsonSchema({ type: 'array', items: { type: 'string' }, 'x-vendor': 1 });
    expect(check(Array.from({ length: 1_000_000 }, () => 1))).toBe('[0]: must be string');
    expect(() => compileJsonSchema({ type: 'array', 'x-vendor': 1 }, { from: 'author' })).toThrow(
      /unknown keyword: "x-vendor"/,
    );
  });

  it('of each dialect means what it means there', () => {
    const tuple = { prefixItems: [{ type: 'string' }], items: [{ type: 'number' }] };
    expect(compileJsonSchema({ $schema: 'http://json-schema.org/draft-07/schema#', items: tuple.items })(['a'])).toBe(
      '[0]: must be number',
    );
    expect(compileJsonSchema({ prefixItems: tuple.prefixItems })([1])).toBe('[0]: must be string');
    expect(
      compileJsonSchema({ $schema: 'https://json-schema.org/draft/2020-12/schema', dependentRequired: { a: ['b'] } })({
        a: 1,
      }),
    ).toMatch(/must have property b/);
    expect(
      compileJsonSchema({
        $schema: 'https://json-schema.org/draft/2019-09/schema',
        type: 'object',
        properties: { a: true },
        unevaluatedProperties: false,
      })({ z: 1 }),
    ).toMatch(/unevaluated properties: z/);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['none', { type: 'thing' }, /the JSON Schema cannot be used: schema is invalid/],
    [
      'of an unknown dialect',
      { $schema: 'https://example.com/mine' },
      /\$schema must name one of 2020-12, 2019-09, draft-07, not "https:\/\/example\.com\/mine"; leave it out for 2020-12/,
    ],
    ['a reference to another document', { $ref: 'https://example.com/schema.json' }, /can't resolve reference/],
    ['a reference to a file', { properties: { a: { $ref: 'file:///etc/passwd' } } }, /can't resolve reference/],
    ['asynchronous', { $async: true, type: 'string' }, /\$async is not supported/],
    ['a pattern that is none', { type: 'string', pattern: '(' }, /cannot be used/],
  ])('that is %s is a RangeError', (_what, schema, says) => {
    expect(() => compileJsonSchema(schema)).toThrow(says);
    expect(() => compileJsonSchema(schema)).toThrow(RangeError);
  });

  it('is compiled by itself: two with one $id, or an inner one, do not meet', () => {
    const of = (type: string): Record<string, unknown> => ({
      $id: 'https://example.com/same',
      $defs: { a: { $id: 'inner', type } },
      properties: { a: { $ref: 'inner' } },
    });
    const [text, number] = [compileJsonSchema(of('string')), compileJsonSchema(of('number'))];
    expect([text({ a: 'x' }), number({ a: 'x' }), number({ a: 1 })]).toEqual([
      undefined,
      'a: must be number',
      undefined,
    ]);
  });

  it('asks for a value’s own keys only', () => {
    expect(compileJsonSchema({ type: 'object', required: ['constructor', 'toString'] })({})).toMatch(
      /required property 'constructor'/,
    );
    expect(
      compileJsonSchema({ type: 'object', additionalProperties: false, properties: {} })(JSON.parse('{"__proto__":1}')),
    ).toMatch(/additional properties: __proto__/);
  });

  it('survives a value that contains itself, and one that is very deep', () => {
    const check = compileJsonSchema({ type: 'object', properties: { a: { $ref: '#' } } });
    const circle: Record<string, unknown> = {};
    circle['a'] = circle;
    expect(check(circle)).toBe('the value: cannot be checked: it is nested too deeply, or contains itself');
  });

  it('as the layer’s check has the same issues, with their paths', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'array', items: { type: 'integer' } }, b: { type: 'string' } },
      required: ['b'],
    };
    const issuesOf = jsonSchemaIssues(schema, { from: 'author' });
    const input = jsonSchemaInput(schema, { from: 'author' });
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.record({ a: fc.array(fc.anything()), b: fc.anything() })), (value) => {
        const parsed = input.safeParse(value);
        expect(parsed.error?.issues.map(({ path, message }) => ({ path, message })) ?? []).toEqual(issuesOf(value));
        if (parsed.success) expect(parsed.data).toBe(value);
      }),
      { numRuns: 500 },
    );
  });
});
