import fc from 'fast-check';
import type { ToolCallEnvelope } from 'spillway';
import { toolCallEnvelopeSchema } from 'spillway/contract';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { toolCallRequestSchema, traceContextSchema } from '../../src/contract/formats/call-request.ts';
import { approvalWhenSchema } from '../../src/contract/gate/approval-schema.ts';
import { issuesInWords, type Shape, type ShapeIssue } from '../../src/policy/shape/parts.ts';
import { approvalWhenShape, envelopeShape, requestShape, traceContextShape } from '../../src/policy/shape/request.ts';
import { envelope } from '../call/kit.ts';

const whole: ToolCallEnvelope = {
  ...envelope('flight_search'),
  toolCallId: 'toolu_1',
  target: {
    agentId: 'a',
    sessionKey: 's',
    actorId: 'b',
    workspaceId: 'w',
    correlationId: 'c',
    tenantId: 't',
  },
  payload: {
    version: '1.0',
    params: { from: 'HEL', 'a b': [1, { deep: true }] },
    idempotencyKey: 'k',
    callHints: { safetyCritical: true, expectedRetrySafe: false, timeoutMs: 5 },
  },
  transport: {
    dedupeMode: 'enforced',
    retryBudget: { maxAttempts: 3, maxElapsedMs: 1_000 },
    circuitBreakerHint: 'tool',
  },
  control: { deadlineAtMs: 7, requestTags: ['x', 'y'], fromHook: 'h' },
  trace: { traceparent: 'p', tracestate: 'q', baggage: { a: 'b', 'c d': '' } },
};
const short = {
  toolName: 'echo',
  input: { x: 1 },
  toolCallId: 'i',
  idempotencyKey: 'k',
  session: 's',
  actor: 'a',
  tenant: 't',
  traceparent: 'p',
  timeoutMs: 5,
};
/** A schema of zod/mini has no language of its own. */
const english = z.locales.en().localeError;

class Made {
  readonly from = 'HEL';
}

const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  true,
  0,
  -1,
  1,
  0.5,
  1_001,
  -0,
  Infinity,
  NaN,
  9.1e15,
  '',
  'x',
  '1.1',
  'enforced',
  ...[128, 129, 256, 257, 512, 513, 2_048, 2_049].map((length) => 'x'.repeat(length)),
  [],
  ['x'],
  Array(65).fill('x'),
  [''],
  {},
  { a: 1 },
  { a: 'b' },
  { [Symbol('s')]: 'x' },
  new Made(),
  Object.create({ inherited: 'x' }),
  Object.create(null),
  JSON.parse('{"__proto__":"x"}'),
  new Date(0),
  Symbol('x'),
  7n,
  new Map(),
  () => 1,
  Object('x'),
);

/** All places in a value. */
const placesIn = (value: unknown): ReadonlyArray<readonly string[]> =>
  typeof value !== 'object' || value === null
    ? [[]]
    : [[], ...Object.entries(value).flatMap(([key, part]) => placesIn(part).map((rest) => [key, ...rest]))];

type Change = { readonly at: readonly string[]; readonly how: 'set' | 'drop' | 'add'; readonly value: unknown };

/** The value with a change at one place; copies all that lies on the way. */
const changed = (value: unknown, { at: [key, ...rest], how, value: to }: Change): unknown => {
  const isObject = typeof value === 'object' && value !== null;
  if (key === undefined) {
    if (how === 'add' && isObject && !Array.isArray(value)) return { ...value, 'not known': to, [Symbol('s')]: to };
    return to;
  }
  if (!isObject) return value;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>;
  if (rest.length === 0 && how === 'drop') Reflect.deleteProperty(copy, key);
  else copy[key] = changed(copy[key], { at: rest, how, value: to });
  return copy;
};

const byPlace = (issues: readonly ShapeIssue[]): ReadonlyMap<string, string> =>
  new Map(
    issues
      .toReversed()
      .map((issue) => [JSON.stringify(issue.path.map(String)), issue.message.split(', received')[0] ?? '']),
  );

/** A whole number that is not safe is `too big` to zod, and no int to us. */
const wordsAt = (issues: readonly ShapeIssue[]): ReadonlyMap<string, string> =>
  new Map(
    [...byPlace(issues)].map(([place, words]) => [
      place,
      words.replace(/^Too big: expected int .*/, 'Invalid input: expected int'),
    ]),
  );

describe('R-8.1 what a layer takes without zod is what the schemas of the contract take', () => {
  it.each<readonly [string, Shape<unknown>, z.core.$ZodType, unknown]>([
    ['an envelope', envelopeShape, toolCallEnvelopeSchema, whole],
    ['a request', requestShape, toolCallRequestSchema, short],
    ['a trace context', traceContextShape, traceContextSchema, whole.trace],
    ['a rule about approvals', approvalWhenShape, approvalWhenSchema, { path: 'usd', above: 100 }],
  ])('R-8.1 %s: taken, copied or refused alike, at the same places', (_, shape, schema, whole) => {
    const change = fc.record<Change>({
      at: fc.constantFrom(...placesIn(whole)),
      how: fc.constantFrom('set', 'set', 'drop', 'add'),
      value: odd,
    });
    let [taken, refused] = [0, 0];
    fc.assert(
      fc.property(fc.array(change, { maxLength: 3 }), (changes) => {
        const value = changes.reduce(changed, whole);
        const judged = z.safeParse(schema, value, { error: english });
        const issues: ShapeIssue[] = [];
        const copy = shape(value, [], issues);
        // That a rule has a place, and compares once, is not a matter of its shape.
        const told = judged.error?.issues.filter(({ code }) => code !== 'custom' && code !== 'invalid_format') ?? [];
        expect(wordsAt(issues)).toEqual(wordsAt(told));
        if (!judged.success) return void refused++;
        taken++;
        expect(copy).toStrictEqual(judged.data);
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(100);
  });

  it('R-8.1 the words name places as zod does, and at most five', () => {
    const paths = [[], ['a'], ['a', 0, 'b'], ['a b', 'c'], [Symbol('s'), 'x'], ['e'], ['f']];
    const issues = paths.map((path) => ({ path, message: 'is odd' }));
    expect(issuesInWords(issues)).toBe(
      paths
        .slice(0, 5)
        .map((path) => `${path.length === 0 ? 'the value' : z.core.toDotPath(path)}: is odd`)
        .join('; '),
    );
  });

  it('R-8.1 a schema without a language still says what it expects', () => {
    expect(issuesInWords([{ path: ['to'], message: 'Invalid input', expected: 'string' }])).toBe(
      'to: Invalid input: expected string',
    );
  });
});
