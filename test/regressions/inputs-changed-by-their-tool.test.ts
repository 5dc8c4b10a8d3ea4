// Was: a tool that changed its input in place was given the changed one at its retry, and so were its alternative, its
// `verify` and its undoing. Now: each attempt has the input for itself.
import { createSpillway, tool, type SpillwayOptions } from 'spillway';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { virtualRuntime } from 'spillway/testing';

interface Payment {
  amount: number;
  readonly lines?: Array<{ cents: number }>;
}

const busy = (): Error => Object.assign(new Error('unavailable'), { status: 503 });
const lost = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

/** In cents, as a tool that is careless with what it was given makes it. */
const inCents = (given: unknown): number => ((given as Payment).amount *= 100);

const paid = async (own: object, error: () => Error, input: unknown, options: SpillwayOptions = {}) => {
  const runtime = virtualRuntime();
  const amounts: number[] = [];
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', retry: { maxAttempts: 3 }, alternatives: ['other'] },
    ...own,
    execute: (given: unknown): never => {
      amounts.push(inCents(given));
      throw error();
    },
  });
  const other = tool({
    name: 'other',
    policy: { effects: 'mutating' },
    execute: (given: unknown) => {
      amounts.push(inCents(given));
      return 'paid';
    },
  });
  const result = createSpillway({ runtime, tools: [pay, other], ...options }).execute({ toolName: 'pay', input });
  await runtime.run();
  return { amounts, status: (await result).status };
};

describe('inputs that their tool changes', () => {
  it.each([
    ['without a schema', {}],
    ['with one', { input: z.object({ amount: z.number() }) }],
    ['with one that lets all through', { input: z.any() }],
  ])('R-2.5 each attempt and each alternative has the input that was asked for, %s', async (_, own) => {
    const input = { amount: 5 };
    expect(await paid(own, busy, input)).toEqual({ amounts: [500, 500, 500, 500], status: 'success' });
    expect(input).toEqual({ amount: 5 });
  });

  it('R-18.1 it is found out about what was asked for', async () => {
    const asked: number[] = [];
    const verify = (input: unknown): { done: boolean } => ({ done: asked.push(inCents(input)) > 2 });
    const { amounts, status } = await paid({ verify }, lost, { amount: 5 });
    expect({ amounts, status }).toEqual({ amounts: [500, 500], status: 'success' });
    expect(asked).toEqual([500, 500, 500]);
  });

  it('R-2.5 at any depth, through arrays, circles and a member named __proto__', async () => {
    const seen: unknown[] = [];
    const when = new Date(0);
    const input = JSON.parse('{ "lines": [{ "cents": 1 }], "__proto__": { "deep": 1 } }') as Record<string, unknown>;
    Object.assign(input, { when, self: input });
    const pay = tool({
      name: 'pay',
      policy: { effects: 'mutating', retry: { maxAttempts: 2, initialDelayMs: 1 } },
      execute: (given: Record<string, unknown>): never => {
        const [line] = given['lines'] as Array<{ cents: number }>;
        const own = Object.getOwnPropertyDescriptor(given, '__proto__')?.value as { deep: number };
        seen.push([line?.cents, own.deep, given['self'] === given, given['when'] === when]);
        if (line !== undefined) line.cents = 99;
        own.deep = 99;
        throw busy();
      },
    });
    await createSpillway({ tools: [pay] }).execute({ toolName: 'pay', input });
    expect(seen).toEqual([
      [1, 1, true, true],
      [1, 1, true, true],
    ]);
  });

  it('R-2.5 what a stream gave before it failed says that it had begun, whatever it failed with', async () => {
    let runs = 0;
    const pay = tool({
      name: 'pay',
      policy: { effects: 'mutating', retry: { maxAttempts: 3, initialDelayMs: 1 } },
      async *execute() {
        runs++;
        yield 'charged, asking for the receipt';
        throw busy();
      },
    });
    const { error } = await createSpillway({ tools: [pay] }).execute({ toolName: 'pay', input: {} });
    expect({ runs, uncertain: error?.uncertain }).toEqual({ runs: 1, uncertain: true });
  });
});
