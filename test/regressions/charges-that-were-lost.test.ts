// Was: what an attempt had told was lost with a failure that said it never ran, or with the store; a failure taught
// that its tool uses nothing; a hanging call of one tenant held up all. Now: each is charged once, and to its own.
import { ToolExecutionError } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { spending } from '../gate/spending.ts';

describe('what an attempt has used', () => {
  it('R-22.6 is charged where it was told, also by one that says that it never ran', async () => {
    const at = spending(
      { usd: 100, per: 'tenant' },
      {
        execute: (_, { usage }) => {
          usage?.({ usd: 5 });
          throw new ToolExecutionError('execution_error', 'busy', { executed: false, classification: 'permanent' });
        },
      },
    );
    await at.call();
    expect(await at.budget.left()).toMatchObject([{ left: 95 }]);
  });

  it('R-22.6 a failure that told nothing does not teach what the next one uses', async () => {
    let made = 0;
    const at = spending(
      { tokens: 100, per: 'tenant' },
      {
        policy: { retry: { maxAttempts: 1 } },
        execute: async (_, { usage }) => {
          if (made++ === 0) throw new Error('no answer');
          await new Promise<void>((resolve) => {
            at.runtime.after(10).subscribe(() => resolve());
          });
          usage?.({ tokens: 1_000 });
        },
      },
    );
    await at.call();
    for (let n = 0; n < 10; n++) void at.spillway.execute({ toolName: 'search', input: {} });
    await at.runtime.advance(5_000);
    expect(at.runs()).toBe(2);
  });

  it('R-22.6 a call of one tenant that hangs holds up nobody else’s', async () => {
    const at = spending(
      { tokens: 100, per: 'tenant' },
      { execute: (input: { readonly hangs?: true }) => (input.hangs === true ? new Promise(() => {}) : 'ok') },
    );
    void at.spillway.execute({ toolName: 'search', input: { hangs: true }, tenant: 'a' });
    await at.runtime.advance(0);
    expect(await at.call({ tenant: 'b' })).toMatchObject({ status: 'success' });
    await at.spillway.close();
  });

  it('R-22.6 amounts beyond all numbers leave nothing, and a budget that can be read', async () => {
    const at = spending({ usd: 100, per: 'tenant' });
    await at.budget.charge({ usd: 1e308 });
    await at.budget.charge({ usd: 1e308 });
    expect(await at.budget.left()).toMatchObject([{ left: 0 }]);
    expect((await at.call()).error?.code).toBe('limit_exceeded');
  });

  it.each([
    ['lost', false],
    ['lost after it was written', true],
  ])('R-22.7 is told once the store is back, and once: the first word was %s', async (_, isWritten) => {
    const runtime = virtualRuntime();
    const kept = memoryStore({ runtime });
    let isLost = false;
    const compareAndSet: typeof kept.compareAndSet = async (...change) => {
      const record = isLost && !isWritten ? undefined : await kept.compareAndSet(...change);
      if (isLost) throw new Error('the connection is gone');
      return record;
    };
    const store = { ...kept, compareAndSet };
    const at = spending(
      { usd: 100, per: 'tenant' },
      {
        runtime,
        store,
        execute: (__, { usage }) => {
          usage?.({ usd: 40 });
          isLost = true;
          return 'ok';
        },
      },
    );
    await at.call();
    await runtime.advance(1_000);
    isLost = false;
    await runtime.advance(60_000);
    expect(await at.budget.left()).toMatchObject([{ left: 60 }]);
  });
});
