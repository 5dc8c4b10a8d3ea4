// Was: an alternative's work and input were taken for those of the tool that was asked for, which then undid them.
// Now: work and input belong to the tool that they are of.
import { createSpillway, plan, tool, type TurnResult } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import * as z from 'zod';

const refused = (): never => {
  throw Object.assign(new Error('no'), { status: 409 });
};

it('R-18.5 what an alternative did after the turn was canceled is undone by the alternative', async () => {
  const runtime = virtualRuntime();
  const log: string[] = [];
  const undoing = (name: string) => (output: unknown) => void log.push(`-${name} ${JSON.stringify(output)}`);
  const a = tool({
    name: 'pay_a',
    policy: { alternatives: ['pay_b'], verify: { settleMs: 0 } },
    execute: refused,
    verify: () => ({ done: false }) as const,
    compensate: undoing('a'),
  });
  const b = tool({
    name: 'pay_b',
    policy: { timeoutMs: 10_000, verify: { settleMs: 0 } },
    execute: () =>
      new Promise((resolve) => {
        runtime.after(3_000).subscribe(() => {
          log.push('+b');
          resolve({ id: 'b1' });
        });
      }),
    verify: () => (log.includes('+b') ? ({ done: true, output: { id: 'b1' } } as const) : ({ done: false } as const)),
    compensate: undoing('b'),
  });
  const layer = createSpillway({ runtime, store: memoryStore({ runtime }), tools: [a, b] });
  const abort = new AbortController();
  const { signal } = abort;
  layer.turn(plan({ onFailure: 'compensate' }).call('n', a, {}), { signal }).subscribe();
  await runtime.advance(1_000);
  abort.abort();
  await runtime.advance(100_000);
  expect(log).toEqual(['+b', '-b {"id":"b1"}']);
});

it('R-18.5 an alternative undoes with the input as its own schema reads it', async () => {
  const runtime = virtualRuntime();
  const seen: unknown[] = [];
  const cents = z.object({ eur: z.number() }).transform(({ eur }) => ({ cents: eur * 100 }));
  const a = tool({
    name: 'pay_a',
    input: cents,
    policy: { effects: 'mutating', alternatives: ['pay_b'] },
    execute: refused,
  });
  const b = tool({
    name: 'pay_b',
    input: z.object({ eur: z.number() }),
    execute: (input) => void seen.push(input),
    compensate: (_, { input }) => void seen.push(input),
  });
  const fails = tool({ name: 'fails', policy: { effects: 'mutating' }, execute: refused });
  const layer = createSpillway({ runtime, store: memoryStore({ runtime }), tools: [a, b, fails] });
  let result: TurnResult | undefined;
  layer
    .turn(
      plan({ onFailure: 'compensate' })
        .call('n', a, { eur: 5 })
        .call('x', fails, {}, { needs: ['n'] }),
    )
    .subscribe((event) => {
      if (event.source === 'turn' && event.type === 'settled') ({ result } = event);
    });
  await runtime.advance(60_000);
  expect(seen).toEqual([{ eur: 5 }, { eur: 5 }]);
  expect(result?.nodes[0]?.state).toBe('compensated');
});
