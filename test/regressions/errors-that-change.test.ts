// Was: a kind that throws at its second reading, or is not in the list, broke the reader. Now: the one is read once,
// the other named.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TOOL_ERROR_KIND_MEANINGS } from '../../src/contract/error-kind.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { toToolError, type Entrance } from '../../src/errors/read-error.ts';
import { toToolExecutionError } from '../../src/errors/tool.ts';
import { classify } from '../../src/policy/recovery/classify.ts';

/** Gives a field once, and throws when it is read again. */
const once = (error: ToolExecutionError, field: string, value: unknown): ToolExecutionError => {
  let left = 1;
  return Object.defineProperty(error, field, {
    get: () => {
      if (left-- > 0) return value;
      throw new Error('read twice');
    },
  });
};

const made = (): ToolExecutionError => new ToolExecutionError('timeout', 'late');

/** A proxy whose every field works `good` times. */
const tiring = (good: number): ToolExecutionError => {
  const left = new Map<PropertyKey, number>();
  return new Proxy(made(), {
    get: (target, field) => {
      const count = left.get(field) ?? good;
      left.set(field, count - 1);
      if (count <= 0) throw new Error('tired');
      return Reflect.get(target, field) as unknown;
    },
  });
};

const isWhole = (error: ToolExecutionError): boolean =>
  Object.hasOwn(TOOL_ERROR_KIND_MEANINGS, error.kind) &&
  ['transient', 'permanent'].includes(classify(error).classification) &&
  typeof error.message === 'string';

describe('R-1.2 the entrance never throws', () => {
  it.each(['kind', 'message', 'code', 'status', 'retryAfterMs', 'executed', 'uncertain', 'classification', 'worded'])(
    'R-1.2 a %s that can be read once',
    (field) => {
      const error = made();
      expect(
        isWhole(toToolExecutionError(once(error, field, (error as unknown as Record<string, unknown>)[field]))),
      ).toBe(true);
      expect(() => classify(once(made(), 'kind', 'timeout'))).not.toThrow();
    },
  );

  it.each([0, 1, 2, 3])('R-1.2 a proxy whose fields work %i times', (good) => {
    for (const where of ['llm', 'mcp', 'http', 'node', 'tool'] as const)
      expect(isWhole(toToolError(tiring(good), where))).toBe(true);
  });

  it('R-1.2 what this copy made passes unchanged', () => {
    const error = made();
    expect(toToolExecutionError(error)).toBe(error);
  });

  it('R-1.1 a kind that there is not is named, with those that there are', () => {
    expect(() => new ToolExecutionError('my_kind' as never, 'x')).toThrow(
      /one of unknown_tool, .*store_unavailable, not "my_kind"/,
    );
    for (const kind of [undefined, null, 7, {}, '__proto__', 'toString'])
      expect(() => new ToolExecutionError(kind as never, 'x')).toThrow(RangeError);
  });

  it('R-1.2 anything at all becomes a whole error, whoever threw it', () => {
    const fields = [
      'message',
      'name',
      'code',
      'status',
      'statusCode',
      'kind',
      'cause',
      'headers',
      'response',
      'error',
      'errors',
      'retryAfterMs',
      'isRetryable',
      'type',
      'data',
      'details',
      'content',
      'isError',
      'classification',
      'worded',
    ];
    const shaped = fc.dictionary(
      fc.constantFrom(...fields),
      fc.oneof(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        fc.constantFrom(400, 429, '503', 'ECONNRESET', 'timeout', 'not found'),
      ),
    );
    const branded = shaped.map((some) =>
      Object.assign(Object.create(null) as object, some, { [Symbol.for('spillway.ToolExecutionError')]: true }),
    );
    const thrown = fc.oneof(
      fc.anything(),
      fc.string(),
      shaped,
      branded,
      shaped.map((some) => Object.assign(new Error('x'), { cause: some })),
    );
    const where = fc.constantFrom<Entrance[]>('llm', 'mcp', 'http', 'node', 'tool');
    const checked = fc.check(
      fc.property(thrown, where, (value, place) => isWhole(toToolError(value, place))),
      { numRuns: 3_000 },
    );
    expect(
      checked.failed,
      `seed ${checked.seed}: ${fc.stringify(checked.counterexample)} ${String(checked.errorInstance)}`,
    ).toBe(false);
  });
});
