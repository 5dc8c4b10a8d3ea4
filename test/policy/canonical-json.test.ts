import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { canonicalJson, VOLATILE_FIELDS } from '../../src/policy/key/canonical-json.ts';

const folder = join(import.meta.dirname, 'jcs');
const read = (...path: string[]): string => readFileSync(join(folder, ...path), 'utf8');

/** RFC 8785, appendix B: a double's bits, and its text. */
const NUMBERS: ReadonlyArray<readonly [string, string]> = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
];
const ofBits = (bits: string): number => Buffer.from(bits, 'hex').readDoubleBE();

describe('R-9.2 canonical JSON is RFC 8785', () => {
  it.each(readdirSync(join(folder, 'input')))('R-9.2 vector %s', (file) => {
    const text = canonicalJson(JSON.parse(read('input', file)));
    expect(text).toBe(read('output', file));
    expect(Buffer.from(text).toString('hex')).toBe(read('outhex', file.replace('.json', '.txt')).replaceAll(/\s/g, ''));
  });

  it.each(NUMBERS)('R-9.2 number %s is %s', (bits, text) => {
    expect(canonicalJson(ofBits(bits), { unsafeIntegers: 'keep' })).toBe(text);
    // Without the option, the same or refused, and refused only where digits stand for an integer that may have been
    // another one.
    if (/^-?\d{16,}$/.test(text)) expect(() => canonicalJson(ofBits(bits))).toThrow('beyond 2^53 - 1');
    else expect(canonicalJson(ofBits(bits))).toBe(text);
  });

  it('R-9.2 every character is written as RFC 8785 says', () => {
    const short = new Map([
      ['\b', '\\b'],
      ['\t', '\\t'],
      ['\n', '\\n'],
      ['\f', '\\f'],
      ['\r', '\\r'],
      ['"', '\\"'],
      ['\\', '\\\\'],
    ]);
    for (let code = 0; code <= 0x10_ff_ff; code += code < 0x3000 ? 1 : 61) {
      if (code >= 0xd8_00 && code < 0xe0_00) continue;
      const character = String.fromCodePoint(code);
      const written = short.get(character) ?? (code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : character);
      expect(canonicalJson(`a${character}`)).toBe(`"a${written}"`);
      expect(canonicalJson({ [character]: 1 })).toBe(`{"${written}":1}`);
    }
  });

  it.each([3, 24, 25, 400])(
    'R-9.2 %d names stand in the order of UTF-16 code units, also those that look like numbers',
    (count) => {
      const names = Array.from(
        { length: count },
        (_, index) =>
          ['10', '9', '\u{1f602}', '\ufb33', 'é', 'e', 'Z', '_', ''][index % 9] + (index < 9 ? '' : `${index}`),
      );
      const text = canonicalJson(Object.fromEntries(names.map((name) => [name, 0])));
      // Two bytes a unit, most significant first: their order is that of the units.
      const units = (name: string): string =>
        [...Array(name.length).keys()].map((place) => name.charCodeAt(place).toString(16).padStart(4, '0')).join('');
      const sorted = names.toSorted((a, b) => (units(a) < units(b) ? -1 : 1));
      expect(text).toBe(`{${sorted.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`);
    },
  );
});

describe('R-9.2 what has the same meaning', () => {
  it('R-9.2 undefined members are as if they were not there', () => {
    expect(canonicalJson({ b: undefined, a: { c: undefined }, d: [{ e: undefined }] })).toBe('{"a":{},"d":[{}]}');
  });

  it('R-9.2 the fields of CLAW are left out of the outermost object, and are kept deeper down', () => {
    const sent = { clientTs: 1, retryCount: 2, traceparent: '00-1', at: 3 };
    expect(VOLATILE_FIELDS).toEqual(['clientTs', 'retryCount', 'traceparent']);
    expect(canonicalJson(sent)).toBe('{"at":3}');
    expect(canonicalJson({ job: { retryCount: 5 }, list: [{ clientTs: 1 }] })).toBe(
      '{"job":{"retryCount":5},"list":[{"clientTs":1}]}',
    );
    expect(canonicalJson([sent])).toContain('retryCount');
    expect(canonicalJson(sent, { volatile: [...VOLATILE_FIELDS, 'at'] })).toBe('{}');
    expect(canonicalJson(sent, { volatile: [] })).toBe('{"at":3,"clientTs":1,"retryCount":2,"traceparent":"00-1"}');
  });

  it('R-9.2 a volatile field may be anything: it is not looked at', () => {
    const params = {
      get clientTs(): number {
        throw new Error('read');
      },
      a: 1,
    };
    expect(canonicalJson(params)).toBe('{"a":1}');
    expect(canonicalJson({ a: 1, retryCount: Number.NaN, clientTs: new Date(0) })).toBe('{"a":1}');
  });

  it('R-9.2 white space is meaning, unless a tool says otherwise', () => {
    const text = { ' a  b ': '\u00a0 two \n\t words  ' };
    expect(canonicalJson(text)).toBe(`{" a  b ":${JSON.stringify(text[' a  b '])}}`);
    expect(canonicalJson(text, { whitespace: 'collapse' })).toBe('{" a  b ":"two words"}');
    expect(canonicalJson('ab', { whitespace: 'collapse' })).not.toBe(canonicalJson('a b', { whitespace: 'collapse' }));
  });

  it('R-9.2 objects without a prototype and of another realm are plain', () => {
    expect(canonicalJson(Object.assign(Object.create(null) as object, { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
    expect(canonicalJson(runInNewContext('({ b: [1, { c: 2 }], a: Object.create(null) })'))).toBe(
      '{"a":{},"b":[1,{"c":2}]}',
    );
  });

  it('R-9.2 one object in two places is no cycle', () => {
    const shared = { x: 1 };
    expect(canonicalJson([shared, shared, { shared }])).toBe('[{"x":1},{"x":1},{"shared":{"x":1}}]');
  });

  it('R-9.2 __proto__ and constructor are names, and nothing is polluted', () => {
    const text =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"hasOwnProperty":3,"toString":4}';
    expect(canonicalJson(JSON.parse(text))).toBe(text);
    expect(canonicalJson(JSON.parse('{"__proto__":null}'))).toBe('{"__proto__":null}');
    expect(canonicalJson({})).toBe('{}');
    expect((Object.prototype as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
