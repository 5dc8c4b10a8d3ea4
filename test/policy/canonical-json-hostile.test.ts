import { describe, expect, it } from 'vitest';
import { isToolExecutionError, ToolExecutionError } from '../../src/contract/tool-error.ts';
import { canonicalJson, type CanonicalJsonOptions } from '../../src/policy/key/canonical-json.ts';

const refusal = (value: unknown, options?: CanonicalJsonOptions): string => {
  try {
    canonicalJson(value, options);
  } catch (error) {
    expect(isToolExecutionError(error)).toBe(true);
    const { kind, message, executed } = error as ToolExecutionError;
    expect({ kind, executed }).toEqual({ kind: 'invalid_parameters', executed: false });
    return message;
  }
  throw new Error('it was not refused');
};

const cyclic: Record<string, unknown> = { name: 'a' };
cyclic['self'] = { deeper: [cyclic] };
const loop: unknown[] = [];
loop.push(loop);
const revoked = Proxy.revocable({}, {});
revoked.revoke();
class Account {
  readonly id = 1;
}
const thrower = {
  get secret(): string {
    throw new Error('hunter2');
  },
};

/** What it is, where, and the words that say why. */
const REFUSED: ReadonlyArray<readonly [string, unknown, string, string]> = [
  ['nothing', undefined, '$ ', 'is undefined'],
  ['NaN', { a: [1, Number.NaN] }, '$.a[1] ', 'is NaN'],
  ['Infinity', [Infinity], '$[0] ', 'is Infinity'],
  ['minus Infinity', { a: -Infinity }, '$.a ', 'is -Infinity'],
  ['a bigint', { a: 1n }, '$.a ', 'as a string'],
  ['2^53', { id: 2 ** 53 }, '$.id ', 'beyond 2^53 - 1'],
  ['an id of 19 digits', JSON.parse('{"id":1234567890123456789}'), '$.id ', 'beyond 2^53 - 1'],
  ['a large negative integer', [-(2 ** 60)], '$[0] ', 'beyond 2^53 - 1'],
  ['a lone surrogate', { text: 'a\ud800' }, '$.text ', 'surrogate'],
  ['surrogates the wrong way round', ['\udc00\ud800'], '$[0] ', 'surrogate'],
  ['a name with a lone surrogate', { a: { 'b\udfff': 1 } }, String.raw`$.a["b\udfff"] `, 'surrogate'],
  ['a function', { a: { run: () => 1 } }, '$.a.run ', 'is a function'],
  ['a toJSON of its own', { toJSON: () => 1 }, '$.toJSON ', 'is a function'],
  ['a symbol', { a: Symbol('s') }, '$.a ', 'is a symbol'],
  ['undefined in a list', { a: [undefined] }, '$.a[0] ', 'give null'],
  // oxlint-disable-next-line no-sparse-arrays
  ['a hole', [1, , 2], '$[1] ', 'give null'],
  ['a Date', { at: new Date(0) }, '$.at ', 'ISO string'],
  ['a Map', new Map([['a', 1]]), '$ ', 'plain object'],
  ['a Set', { 'a b': new Set([1]) }, '$["a b"] ', 'plain object'],
  ['bytes', { data: new Uint8Array(3) }, '$.data ', 'plain object'],
  ['a RegExp', [/a/], '$[0] ', 'plain object'],
  ['an instance of a class', { account: new Account() }, '$.account ', 'plain object'],
  ['a boxed string', { a: Object('x') as unknown }, '$.a ', 'plain object'],
  ['an object that inherits members', Object.create({ a: 1 }) as unknown, '$ ', 'plain object'],
  ['a promise', { a: Promise.resolve(1) }, '$.a ', 'plain object'],
  ['a cycle', cyclic, '$.self.deeper[0] ', 'inside itself'],
  ['a list in itself', { loop }, '$.loop[0] ', 'inside itself'],
  ['a getter that throws', { a: thrower }, '$.a.secret ', 'cannot be read'],
  ['a revoked proxy', { a: revoked.proxy }, '$.a ', 'cannot be read'],
  [
    'a proxy that lists no names',
    [
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no');
          },
        },
      ),
    ],
    '$[0] ',
    'cannot be read',
  ],
];

describe('R-9.2 what is no JSON is refused', () => {
  it.each(REFUSED)('R-9.2 %s', (_, value, path, why) => {
    const message = refusal(value);
    expect(message.slice(0, path.length)).toBe(path);
    expect(message).toContain(why);
    // The rule, and what to do.
    expect(message).toMatch(/; \w/);
  });

  it('R-9.2 the message carries nothing of the texts, the cause what was thrown', () => {
    expect(refusal({ password: 'hunter2', at: new Date(0) })).not.toContain('hunter2');
    expect(refusal(thrower)).not.toContain('hunter2');
    expect(() => canonicalJson(thrower)).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ message: 'hunter2' }) as unknown }),
    );
  });

  it('R-9.2 an error of our own kind, thrown by a getter, is no refusal of ours', () => {
    const value = {
      get a(): number {
        throw new ToolExecutionError('timeout', 'from the getter');
      },
    };
    expect(refusal(value)).toContain('$.a cannot be read');
  });

  it('R-9.2 a path stays short, and on one line', () => {
    let value: unknown = Number.NaN;
    for (let depth = 0; depth < 60; depth++) value = { [`\n${'x'.repeat(1_000)}`]: value };
    const message = refusal(value);
    expect(message.length).toBeLessThan(300);
    expect(message).not.toContain('\n');
  });

  it('R-9.2 each member is read once: what was checked is what is written', () => {
    let reads = 0;
    const value = {
      get a(): unknown {
        return ++reads === 1 ? 'fine' : Number.NaN;
      },
    };
    expect(canonicalJson([value])).toBe('[{"a":"fine"}]');
    expect(reads).toBe(1);
  });
});

describe('R-9.2 limits', () => {
  const nested = (depth: number, list = true): unknown => {
    let value: unknown = list ? [] : {};
    for (let at = 1; at < depth; at++) value = list ? [value] : { a: value };
    return value;
  };
  const timed = (work: () => void): number => {
    const startedAtMs = performance.now();
    work();
    return performance.now() - startedAtMs;
  };

  it.each([true, false])('R-9.2 64 deep and no deeper (lists: %s)', (list) => {
    expect(canonicalJson(nested(64, list)).length).toBeGreaterThan(127);
    expect(refusal(nested(65, list))).toContain('deeper than 64');
    expect(canonicalJson(nested(512, list), { maxDepth: 512 }).length).toBeGreaterThan(1_000);
    expect(refusal(nested(100_000, list))).toContain('deeper than 64');
    expect(refusal(nested(100_000, list), { maxDepth: 512 })).toContain('deeper than 512');
  });

  it('R-9.2 the longest text is exactly maxChars long', () => {
    const value = { 'a"': ['\n', 1.5, true, null, {}, [[]], 'é\u{1f602}'], b: { c: 'text', d: undefined } };
    const { length } = canonicalJson(value);
    expect(canonicalJson(value, { maxChars: length }).length).toBe(length);
    for (let maxChars = 1; maxChars < length; maxChars++)
      expect(refusal(value, { maxChars })).toContain(`longer than ${maxChars} characters`);
  });

  it('R-9.2 50 MB are refused at once, whatever they are made of', () => {
    const long = 'x'.repeat(50_000_000);
    const endless: object = new Proxy(
      {},
      {
        ownKeys: () => ['a', 'b'],
        getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
        get: () => endless,
      },
    );
    const wide: object = new Proxy([], {
      get: (target, name) =>
        name === 'length' ? 4_294_967_295 : name === 'constructor' ? Array : Reflect.get(target, name),
    });
    const endlessAndFresh = (): object =>
      new Proxy(
        {},
        {
          ownKeys: () => ['a', 'b'],
          getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
          get: () => endlessAndFresh(),
        },
      );
    let doubled: unknown = 'laugh';
    for (let times = 0; times < 60; times++) doubled = [doubled, doubled];
    const hollow = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`n${index}`, undefined]));
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`n${index}`, undefined]));
    const inputs: Readonly<Record<string, unknown>> = {
      'a text': { long },
      'a name': { [long]: 1 },
      'a long list': { list: Array.from({ length: 5_000_000 }, () => 'ten chars.') },
      'a list of nothing': Array.from({ length: 2_000_000 }),
      'many members, four times': [many, many, many, many],
      'a list that says it is long': wide,
      'an object in itself by proxy': endless,
      'a proxy without an end': endlessAndFresh(),
      'a list doubled 60 times': doubled,
      'members left out, shared': Array.from({ length: 1_000 }, () => hollow),
      'a text to collapse': { long },
    };
    for (const [name, value] of Object.entries(inputs)) {
      const options: CanonicalJsonOptions = name === 'a text to collapse' ? { whitespace: 'collapse' } : {};
      // Milliseconds, most of them; generous, for a busy machine.
      expect(
        timed(() => refusal(value, options)),
        name,
      ).toBeLessThan(5_000);
    }
  });

  it('R-9.2 white space is collapsed in linear time', () => {
    const spaces = `a${' '.repeat(900_000)}b${'\t \n'.repeat(10_000)}`;
    expect(timed(() => expect(canonicalJson(spaces, { whitespace: 'collapse' })).toBe('"a b"'))).toBeLessThan(5_000);
  });
});

describe('R-2.9 options', () => {
  it.each([
    ['maxDepth', 0],
    ['maxDepth', 513],
    ['maxDepth', 1.5],
    ['maxDepth', Number.NaN],
    ['maxChars', 0],
    ['maxChars', Infinity],
    ['whitespace', 'strip'],
    ['unsafeIntegers', true],
    ['volatile', 'clientTs'],
    ['volatile', [1]],
    ['depth', 3],
  ])('R-2.9 %s: %s is refused', (option, value) => {
    expect(() => canonicalJson({}, { [option]: value })).toThrow(RangeError);
    expect(() => canonicalJson({}, { [option]: value })).toThrow(option);
  });
});
