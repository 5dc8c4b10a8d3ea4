import { describe, expect, it } from 'vitest';
import { compileJsonSchema } from '../../src/policy/json-schema.ts';
import { mcpInput } from '../../src/providers/mcp-input.ts';

const schemaWith = (pattern: string): Readonly<Record<string, unknown>> => ({ type: 'object', properties: { text: { type: 'string', pattern } } });

describe('R-12.2 a pattern that a server lists', () => {
  it.each(['^(a+)+$', '^(?:a|aa)+$', '^([a-z]*)*$', '(x+x+)+y', '^(?<name>\\d+){8}$', '^((ab)*c?)*$', '((a{2,})b?){3,}'])('which could take exponential time is left to the server: %s', (pattern) => {
    const unusable: string[] = [];
    const input = mcpInput({ name: 'x', inputSchema: schemaWith(pattern) }, (reason) => unusable.push(reason));
    expect(input.misfit({ text: `${'a'.repeat(40)}!` })).toBeUndefined();
    expect(unusable).toEqual([expect.stringContaining('exponential time')]);
    expect(() => compileJsonSchema({ type: 'object', patternProperties: { [pattern]: { type: 'string' } } })).toThrow(RangeError);
  });

  it.each<[string, string, string]>([
    ['^[a-z]{2,4}$', 'ab', '12'],
    ['^(foo|bar)$', 'foo', 'baz'],
    ['^\\d{4}-\\d{2}(-\\d{2})?$', '2026-11-21', '2026'],
    ['^[\\w.+-]+@[\\w-]+\\.[a-z]+$', 'a@b.co', 'a@b'],
    ['^\\((x)\\)+$', '(x)', 'x'],
    ['^[(+|)*]+$', '(+)', 'a'],
    ['^(?=.*a)b?a$', 'ba', 'b'],
  ])('else is checked here: %s', (pattern, fits, doesNot) => {
    const check = compileJsonSchema(schemaWith(pattern));
    expect(check({ text: fits })).toBeUndefined();
    expect(check({ text: doesNot })).toContain('must match pattern');
  });
});
