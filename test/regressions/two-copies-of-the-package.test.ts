// Was: where a program had two copies of this package, a turn's calls were those of its plan's copy, which knew nothing
// of who waited for their key at the layer's: work that another call waited for was aborted when the turn's subscriber
// left; its undoings were of its plan's copy as well. Now: calls are the layer's own, whichever copy a plan is of.
import { lastValueFrom } from 'rxjs';
import { ToolExecutionError, createSpillway, tool } from 'spillway';
import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => vi.resetModules());

it('R-9.6 a turn whose plan is of another copy goes on for who waits for its key', async () => {
  vi.resetModules();
  const { plan } = await import('../../src/index.ts');
  const acting = Promise.withResolvers<string>();
  let aborted = 0;
  const book = tool({
    name: 'book',
    policy: { effects: 'mutating' },
    execute: (_: { readonly n: number }, { signal }) => {
      signal.addEventListener('abort', () => aborted++);
      return acting.promise;
    },
  });
  const spillway = createSpillway({ tools: [book] });
  const trip = plan().call('it', 'book', { n: 1 }, { idempotencyKey: 'k' });
  const turn = spillway.turn(trip, { session: 's' }).subscribe();
  const waiting = spillway.execute({ toolName: 'book', input: { n: 1 }, idempotencyKey: 'k', session: 's' });
  turn.unsubscribe();
  acting.resolve('booked');
  expect(await waiting).toMatchObject({ status: 'success', output: { content: 'booked' } });
  expect(aborted).toBe(0);
});

it('R-18.5 what a turn did is undone by calls of the layer’s own copy, also where its plan is of another', async () => {
  vi.resetModules();
  const { plan } = await import('../../src/index.ts');
  const seen: Array<readonly [toolName: string, isOfThisCopy: boolean]> = [];
  const book = tool({ name: 'book', policy: { effects: 'mutating' }, execute: () => 'booked' });
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating', retry: { maxAttempts: 1 } },
    execute: () => {
      throw new ToolExecutionError('execution_error', 'no money', { executed: false, classification: 'permanent' });
    },
  });
  const spillway = createSpillway({
    tools: [book, pay],
    hooks: {
      afterToolCall: ({ toolName, error }) => {
        if (error !== undefined) seen.push([toolName, error instanceof ToolExecutionError]);
      },
    },
  });
  const trip = plan({ onFailure: 'compensate' })
    .call('a', book, 1, {
      compensate: () => {
        throw new Error('it cannot be undone');
      },
    })
    .call('b', pay, () => 2, { needs: ['a'] });
  await lastValueFrom(spillway.turn(trip));
  expect(seen.map(([toolName]) => toolName)).toContain('book/undo');
  expect(seen.filter(([, isOfThisCopy]) => !isOfThisCopy)).toEqual([]);
});
