import fc from 'fast-check';
import type { ToolCallRequest } from 'spillway';
import { expect, it } from 'vitest';
import { liveRuntime } from '../../src/runtime.ts';
import { readRequest } from '../../src/call/request.ts';
import { toolCallRequestSchema } from '../../src/contract/formats/call-request.ts';

/** How a field stands in a request. */
type Standing = 'own' | 'hidden' | 'inherited' | 'inherited and hidden' | 'got';
interface Field {
  readonly key: string | symbol;
  readonly value: unknown;
  readonly standing: Standing;
}

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ minLength: 1, maxLength: 8 }) },
  fc.constantFrom(0, 1, 256, 257, 512, 513).map((length) => 'x'.repeat(length)),
);
const value = fc.oneof(
  { weight: 6, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, null, 7, true, ['x'], {}, Object('x')) },
);
const standing = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Standing>('own') },
  { weight: 1, arbitrary: fc.constantFrom<Standing>('hidden', 'inherited', 'inherited and hidden', 'got') },
);
const known = fc.constantFrom('input', 'toolCallId', 'idempotencyKey', 'session', 'actor', 'tenant');
const key = fc.oneof(
  { weight: 12, arbitrary: known },
  {
    weight: 1,
    arbitrary: fc.constantFrom<string | symbol>('toolName', 'tenent', '__proto__', 'constructor', '0', Symbol('note')),
  },
);
const field = fc.record({ key, value, standing });
const name = fc.record({
  key: fc.constant('toolName'),
  value: fc.oneof({ weight: 8, arbitrary: fc.constant('echo') }, value),
  standing,
});
const kind = fc.oneof(
  { weight: 6, arbitrary: fc.constant('plain') },
  fc.constantFrom('bare', 'array', 'frozen', 'proxy'),
);

const built = (fields: readonly Field[], of: string): ToolCallRequest => {
  const parent: object = {};
  const request = of === 'array' ? [] : (Object.create(of === 'bare' ? null : parent) as object);
  for (const { key: where, value: what, standing: how } of fields) {
    const place = how.startsWith('inherited') ? parent : request;
    const enumerable = !how.endsWith('hidden');
    Object.defineProperty(place, where, {
      enumerable,
      configurable: true,
      ...(how === 'got' ? { get: () => what } : { value: what, writable: true }),
    });
  }
  if (of === 'frozen') Object.freeze(request);
  return (of === 'proxy' ? new Proxy(request, {}) : request) as ToolCallRequest;
};

it('R-8.1 the short form is taken or refused as its schema says, and read as the schema gives it, however it is made', () => {
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(fc.tuple(name, fc.array(field, { maxLength: 5 })), kind, ([first, rest], of) => {
      const request = built([first, ...rest], of);
      const judged = toolCallRequestSchema.safeParse(request);
      const { call, error } = readRequest(request, liveRuntime);
      expect(error === undefined).toBe(judged.success);
      if (!judged.success) return void refused++;
      taken++;
      const { input, ...others } = judged.data;
      const dedupeMode = others.idempotencyKey === undefined ? 'disabled' : 'enforced';
      expect(call).toStrictEqual({
        ...others,
        input,
        callId: call.callId,
        required: true,
        dedupeMode,
        deadlineMs: Infinity,
      });
    }),
    { numRuns: 5_000 },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(500);
});

it('TR-1 each field of a short form is read once: what is checked is what is used', () => {
  const reads: string[] = [];
  const request = new Proxy(
    { toolName: 'echo', session: 'mine' },
    { get: (target, key, receiver) => (reads.push(String(key)), Reflect.get(target, key, receiver)) },
  );
  expect(readRequest(request, liveRuntime)).toMatchObject({ call: { toolName: 'echo', session: 'mine' } });
  expect(reads.toSorted()).toStrictEqual([...new Set(reads)].toSorted());
});
