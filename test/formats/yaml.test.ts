import { describe, expect, it } from 'vitest';
import { readYaml, type YamlKind } from '../../src/formats/yaml.ts';

const PLAN: YamlKind = { name: 'plan' };
const MANIFEST: YamlKind = { name: 'manifest', aliases: false, maxLength: 100 };

describe('one reader of YAML, for every kind of file', () => {
  it('R-15.2 gives the value of YAML, and of JSON', () => {
    expect(readYaml('a: [1, two, null]\n', PLAN)).toMatchObject({ value: { a: [1, 'two', null] }, problems: [] });
    expect(readYaml('{"a": {"b": true}}', MANIFEST)).toMatchObject({ value: { a: { b: true } }, problems: [] });
  });

  it('R-15.2 unfolds aliases where the kind has them, and names the kind where it has not', () => {
    const text = 'a: &x { k: 1 }\nb: *x\n';
    expect(readYaml(text, PLAN).value).toEqual({ a: { k: 1 }, b: { k: 1 } });
    const { value, problems, positionOf } = readYaml(text, MANIFEST);
    expect([value, problems.map(({ message }) => message)]).toEqual([
      undefined,
      ['aliases (*name) are not understood in a manifest; write the value out'],
    ]);
    expect(problems.map(positionOf)).toEqual([{ line: 2, column: 4 }]);
  });

  it('R-15.2 a text longer than the kind allows is not read at all', () => {
    expect(readYaml(`a: ${'x'.repeat(100)}`, MANIFEST).problems.map(({ message }) => message)).toEqual([
      'is longer than 100 characters; a manifest needs far fewer',
    ]);
    expect(readYaml(`a: ${'x'.repeat(100)}`, PLAN).problems).toEqual([]);
  });

  it('R-15.2 tells what it cannot read first, then every problem of the value, each at its place', () => {
    const { problems, positionOf } = readYaml('a: 1\na: 2\nb: 12345678901234567890\nc: !x y\n', MANIFEST);
    expect(problems.map((problem) => `${positionOf(problem).line} ${problem.message}`)).toEqual([
      '4 tags (!...) are not understood; write the plain value',
    ]);
    const later = readYaml('a: 1\na: 2\nb: 12345678901234567890\n', MANIFEST);
    expect(later.problems.map((problem) => `${later.positionOf(problem).line} ${problem.message}`)).toEqual([
      '2 the key "a" is there twice; remove one of them',
      '3 12345678901234567890 is too large to be kept exactly; put it in quotes',
    ]);
  });
});
