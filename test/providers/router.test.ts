import fc from 'fast-check';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Observable, of } from 'rxjs';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { ToolProvider } from '../../src/contract/provider.ts';
import { isToolExecutionError } from '../../src/contract/tool-error.ts';
import type { Tool, ToolContext } from '../../src/contract/tool.ts';
import { routerProvider, type Handoff } from '../../src/providers/router.ts';
import { createSpillway } from '../../src/spillway.ts';
import { context, failure } from './support.ts';

const seen: Handoff[] = [];
const contexts: ToolContext[] = [];
const billing = {
  name: 'billing',
  description: 'Invoices and refunds.',
  parameters: z.strictObject({ question: z.string().min(1), amount: z.coerce.number().default(0) }),
  run: (handoff: Handoff<{ question: string; amount: number }>, ctx: ToolContext) => {
    seen.push(handoff);
    contexts.push(ctx);
    return `billing says ${handoff.parameters.amount}`;
  },
};
const travel = {
  name: 'travel',
  description: 'Flights and hotels.',
  parameters: {
    type: 'object',
    properties: { city: { $ref: '#/$defs/city' } },
    required: ['city'],
    $defs: { city: { type: 'string', minLength: 2 } },
  },
  run: () => of('early', 'travel says yes'),
};
const make = (): ToolProvider => {
  seen.length = 0;
  contexts.length = 0;
  return routerProvider({ agents: [billing, travel] });
};
const only = ({ tools }: ToolProvider): Tool => {
  const [tool] = tools;
  if (tool === undefined) throw new Error('no tool');
  return tool;
};
const handOff = async (provider: ToolProvider, input: unknown, ctx: ToolContext = context()): Promise<unknown> =>
  only(provider).execute(input, ctx);

describe('a hand-off', () => {
  it('AGENT harness case: invalid parameters, then a corrected call, then success: one call ran', async () => {
    const spillway = createSpillway({ providers: [make()] });
    const calls = [];
    const text: (string | undefined)[] = [];
    spillway.failures$.subscribe(({ error }) => text.push(error.safeMessage));
    for (const parameters of [
      { query: 'where is my refund?' },
      { question: '' },
      { question: 'where is my refund?', amount: '12' },
    ])
      calls.push(await spillway.execute({ toolName: 'router.handoff-to', input: { agent: 'billing', parameters } }));
    expect(calls.map(({ status, error }) => [status, error?.code, error?.terminal])).toEqual([
      ['error', 'invalid_parameters', true],
      ['error', 'invalid_parameters', true],
      ['success', undefined, undefined],
    ]);
    expect(calls[2]?.output).toEqual({ content: 'billing says 12' });
    expect(seen).toHaveLength(1);
    // What the model reads says what to correct.
    expect(text[0]).toMatch(/^The parameters for billing are malformed: parameters\.question: .*; parameters: .*query/);
    expect(text[1]).toMatch(/^The parameters for billing are malformed: parameters\.question: /);
    await spillway.close();
  });

  it('R-12.2 gives what the schema gives, the chain, and the context of the call as it is', async () => {
    const ctx = context(undefined, {
      callKey: 'k',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      baggage: { a: 'b' },
    });
    expect(await handOff(make(), { agent: 'billing', parameters: { question: 'x' } }, ctx)).toBe('billing says 0');
    expect(seen[0]).toMatchObject({ agent: 'billing', parameters: { question: 'x', amount: 0 }, chain: ['billing'] });
    expect(contexts[0]).toBe(ctx);
  });

  it('the last value of a stream is the output', async () => {
    const spillway = createSpillway({ providers: [make()] });
    expect(
      await spillway.execute({
        toolName: 'router.handoff-to',
        input: { agent: 'travel', parameters: { city: 'HEL' } },
      }),
    ).toMatchObject({ status: 'success', output: { content: 'travel says yes' } });
    await spillway.close();
  });

  it('an aborted hand-off ends its agent', async () => {
    let ended = false;
    const provider = routerProvider({
      agents: [
        { name: 'slow', description: 'Slow.', parameters: {}, run: () => new Observable(() => () => (ended = true)) },
      ],
    });
    const spillway = createSpillway({ providers: [provider] });
    const controller = new AbortController();
    const work = spillway.execute(
      { toolName: 'router.handoff-to', input: { agent: 'slow', parameters: {} } },
      { signal: controller.signal },
    );
    controller.abort();
    expect(await work).toMatchObject({ error: { code: 'canceled' } });
    expect(ended).toBe(true);
    await spillway.close();
  });

  it.each<[string, unknown, RegExp]>([
    [
      'an agent that does not exist',
      { agent: 'sales', parameters: {} },
      /^agent must be one of billing, travel, not "sales"$/,
    ],
    ['no agent', { parameters: {} }, /^agent must be one of billing, travel, not nothing$/],
    ['an agent that every object has', { agent: 'constructor', parameters: {} }, /not "constructor"$/],
    ['no object', 'billing', /^The input must be an object with agent \(one of billing, travel\) and parameters$/],
    ['nothing', undefined, /^The input must be an object/],
    [
      'parameters beside the agent',
      { agent: 'billing', question: 'x' },
      /^The input has agent and parameters only, not "question"; what billing has to know goes in parameters$/,
    ],
    ['no parameters', { agent: 'billing' }, /^The parameters for billing are malformed: parameters: /],
    [
      'what a JSON Schema refuses',
      { agent: 'travel', parameters: { city: 'X' } },
      /^The parameters for travel are malformed: parameters\.city: must NOT have fewer than 2 characters/,
    ],
  ])('R-12.2 %s: invalid_parameters, not executed, for the model to read', async (_name, input, says) => {
    const provider = make();
    const error = await failure((async () => handOff(provider, input))());
    expect(error).toMatchObject({
      kind: 'invalid_parameters',
      executed: false,
      uncertain: false,
      safeMessage: `${error.message}. Do not try again with the same input: correct it first.`,
    });
    expect(error.message).toMatch(says);
    expect(seen).toEqual([]);
  });

  it('R-12.2 any input at all: an answer, or a typed refusal that ran nothing', async () => {
    const provider = make();
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.anything(),
          fc.record({
            agent: fc.oneof(fc.constantFrom('billing', 'travel'), fc.anything()),
            parameters: fc.anything(),
          }),
        ),
        async (input) => {
          const before = seen.length;
          const answer: unknown = await handOff(provider, input).catch((error: unknown) => error);
          if (isToolExecutionError(answer))
            expect([answer.kind, answer.executed, seen.length]).toEqual(['invalid_parameters', false, before]);
          else expect(typeof answer === 'string' || answer instanceof Observable).toBe(true);
        },
      ),
    );
  });
});

describe('a chain of hand-offs', () => {
  const chained = (
    maxDepth: number | undefined,
    from: string | undefined,
    path: readonly string[],
  ): Promise<unknown> => {
    const agent = (
      name: string,
    ): { name: string; description: string; parameters: object; run: (handoff: Handoff) => unknown } => ({
      name,
      description: name,
      parameters: {},
      run: ({ chain, router }) => {
        const next = path[chain.length - (from === undefined ? 0 : 1)];
        return next === undefined ? chain.join(' ') : handOff(router, { agent: next, parameters: {} });
      },
    });
    const agents = ['a', 'b', 'c', 'd', 'e', 'f'].map(agent) as never;
    const provider = routerProvider({
      agents,
      ...(maxDepth === undefined ? {} : { maxDepth }),
      ...(from === undefined ? {} : { from }),
    });
    return handOff(provider, { agent: path[0], parameters: {} });
  };

  it('goes as far as its limit', async () => {
    expect(await chained(undefined, undefined, ['a', 'b', 'c', 'd', 'e'])).toBe('a b c d e');
    expect(await chained(2, undefined, ['c', 'a'])).toBe('c a');
  });

  it.each<[string, number | undefined, string | undefined, string[], object]>([
    [
      'back to one that waits',
      undefined,
      undefined,
      ['a', 'b', 'a'],
      {
        kind: 'not_permitted',
        message: 'a waits for this turn already (a -> b -> a); answer it instead of handing back',
      },
    ],
    ['to itself', undefined, undefined, ['a', 'a'], { kind: 'not_permitted' }],
    ['back to where it began', undefined, 'a', ['b', 'a'], { kind: 'not_permitted' }],
    [
      'too far',
      2,
      undefined,
      ['a', 'b', 'c'],
      {
        kind: 'limit_exceeded',
        message: 'A turn is handed on 2 times at most (a -> b -> c); answer with what is known',
      },
    ],
    ['too far, by default', undefined, undefined, ['a', 'b', 'c', 'd', 'e', 'f'], { kind: 'limit_exceeded' }],
  ])('%s: refused, not executed, for the model to read', async (_name, maxDepth, from, path, expected) => {
    const error = await failure(chained(maxDepth, from, path));
    expect(error).toMatchObject({ ...expected, executed: false, safeMessage: `${error.message}. Do not try again.` });
  });

  it('the same agent twice, one after the other, is no loop', async () => {
    const provider = make();
    for (const question of ['first', 'second'])
      expect(await handOff(provider, { agent: 'billing', parameters: { question } })).toBe('billing says 0');
  });
});

describe('what a model is shown', () => {
  it('R-12.2 each agent’s own schema, with references that still hold, and no choice at the top', () => {
    const { inputJsonSchema: schema = {} } = only(make());
    expect(Object.keys(schema)).toEqual(['type', 'properties', 'required', 'additionalProperties']);
    const fits = new Ajv2020({ strict: false }).compile(schema);
    expect(fits({ agent: 'travel', parameters: { city: 'HEL' } })).toBe(true);
    expect(fits({ agent: 'billing', parameters: { question: 'x' } })).toBe(true);
    expect(fits({ agent: 'travel', parameters: { city: 'X' } })).toBe(false);
    expect(fits({ agent: 'sales', parameters: { city: 'HEL' } })).toBe(false);
    expect(JSON.stringify(schema)).toContain('Flights and hotels.');
  });

  it('a hand-off has a turn’s time and is not repeated, unless its policy says so', () => {
    expect(createSpillway({ providers: [make()] }).warnings).toEqual([]);
    expect(only(make()).policy).toMatchObject({ timeoutMs: 300_000, effects: 'mutating' });
    expect(only(routerProvider({ agents: [billing], policy: { timeoutMs: 5 } })).policy).toMatchObject({
      timeoutMs: 5,
      effects: 'mutating',
    });
  });
});

describe('options', () => {
  it.each<[string, object, RegExp]>([
    ['no agents', { agents: [] }, /^agents must be a list of 1 to 100 agents$/],
    [
      'a name with a space',
      { agents: [{ ...billing, name: 'the billing' }] },
      /^agents\[0\]\.name must be 1 to 64 letters, digits, _ and -, not "the billing"$/,
    ],
    ['two of one name', { agents: [billing, billing] }, /^agents\[1\]\.name: another agent is called billing/],
    ['no description', { agents: [{ ...billing, description: '' }] }, /^agents\[0\]\.description must be/],
    [
      'no parameters',
      { agents: [{ ...billing, parameters: undefined }] },
      /^agents\[0\]\.parameters must be a zod schema or a JSON Schema, not nothing$/,
    ],
    [
      'a schema that is none',
      { agents: [{ ...billing, parameters: { type: 'strnig' } }] },
      /^agents\[0\]\.parameters: the JSON Schema cannot be used/,
    ],
    ['no run', { agents: [{ ...billing, run: 1 }] }, /^agents\[0\]\.run must be a function, not number$/],
    ['a misspelt key', { agents: [{ ...billing, schema: {} }] }, /^agents\[0\] has no option "schema"/],
    ['a misspelt option', { agents: [billing], depth: 1 }, /^routerProvider has no option "depth"/],
    ['no depth', { agents: [billing], maxDepth: 0 }, /^maxDepth must be an integer from 1 to 100, not 0$/],
    ['from nowhere', { agents: [billing], from: 'sales' }, /^from must be one of the agents \(billing\), not "sales"$/],
  ])('%s: a RangeError', (_name, options, says) => {
    expect(() => routerProvider(options as never)).toThrow(RangeError);
    expect(() => routerProvider(options as never)).toThrow(says);
  });

  it('types come from each agent’s schema', () => {
    routerProvider({
      agents: [
        {
          name: 'a',
          description: 'A.',
          parameters: z.object({ n: z.number() }),
          run: ({ parameters }) => expectTypeOf(parameters).toEqualTypeOf<{ n: number }>(),
        },
        {
          name: 'b',
          description: 'B.',
          parameters: z.object({ s: z.string() }),
          run: ({ parameters }) => expectTypeOf(parameters).toEqualTypeOf<{ s: string }>(),
        },
      ],
    });
  });
});
