import { describe, expect, it } from 'vitest';
import { inputTemplate } from '../../src/cli/plan/references.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';

const flights = {
  items: [
    { id: 'AY73', seats: 4 },
    { id: 'JL48', seats: 0 },
  ],
  'a key': true,
  none: null,
};
const fill = (input: unknown, values: Readonly<Record<string, unknown>> = { flights, name: 'Tokyo' }): unknown =>
  inputTemplate(input).fill(values);

describe('reference', () => {
  it.each([
    ['${flights}', flights],
    ['${flights.items}', flights.items],
    ['${flights.items[0].seats}', 4],
    ['${flights["a key"]}', true],
    ['${flights.none}', null],
  ])('alone in a text keeps the type of its value: %s', (text, value) => {
    expect(fill(text)).toEqual(value);
  });

  it.each([
    ['found ${flights.items[0].id}', 'found AY73'],
    ['${name}, ${name}', 'Tokyo, Tokyo'],
    ['seats: ${flights.items[0].seats}', 'seats: 4'],
    ['all: ${flights.items[1]}', 'all: {"id":"JL48","seats":0}'],
    [' ${name}', ' Tokyo'],
  ])('among other text becomes text: %s', (text, value) => {
    expect(fill(text)).toBe(value);
  });

  it.each([
    ['$${flights}', '${flights}'],
    ['$$${name}', '$${name}'],
    ['costs $5 {net}', 'costs $5 {net}'],
    ['', ''],
  ])('is not what is escaped or only looks like it: %s', (text, value) => {
    expect(fill(text)).toBe(value);
  });

  it('is found at every depth, and its place is told', () => {
    const template = inputTemplate({ list: [{ deep: 'x ${flights.items[0].id}' }], plain: 1 });
    expect(template.references).toEqual([
      {
        at: ['list', 0, 'deep'],
        reference: { node: 'flights', path: ['items', 0, 'id'], text: '${flights.items[0].id}' },
      },
    ]);
    const { fill: fillIn } = template;
    expect(fillIn({ flights })).toEqual({ list: [{ deep: 'x AY73' }], plain: 1 });
  });

  it.each(['${}', '${a b}', '${a..b}', '${a[x]}', '${a', '${a.b[0}'])(
    'that cannot be read is a problem: %s',
    (text) => {
      expect(inputTemplate(text).problems).toEqual([
        { at: [], message: expect.stringContaining('is no reference') as unknown },
      ]);
    },
  );

  it.each([
    ['${flights.items[2].id}', 'flights.items is a list of 2 without an item 2'],
    ['${flights.price}', 'flights is a mapping without a key price'],
    ['${name.length}', 'name is a string without a key length'],
    ['${flights.none.x}', 'flights.none is nothing without a key x'],
    ['${flights.items.length}', 'flights.items is a list of 2 without a key length'],
    ['${flights.__proto__}', 'flights is a mapping without a key __proto__'],
    ['${flights.constructor}', 'flights is a mapping without a key constructor'],
  ])('to what a value does not have fails the node and says where: %s', (text, why) => {
    expect(() => fill(text)).toThrow(ToolExecutionError);
    expect(() => fill(text)).toThrow(why);
  });

  it('does not read references in the values that it puts in', () => {
    expect(fill('${evil}', { evil: '${secret}', secret: 'x' })).toBe('${secret}');
    expect(fill('> ${evil}', { evil: '${secret}', secret: 'x' })).toBe('> ${secret}');
  });

  it('keeps a key named __proto__ as data', () => {
    const filled = fill(JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(Object.keys(filled as object)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(filled)).toBe(Object.prototype);
  });
});
