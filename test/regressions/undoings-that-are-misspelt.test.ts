// Was: compensate.retry and compensate.timeoutMs beside compensate.tool did nothing, and a retry or enforcesKey that
// cannot be was found out while undoing, so that the effect stayed. Now: each is refused when the layer is made.
import { createSpillway, tool } from 'spillway';
import type { CompensatePolicy } from 'spillway/contract';
import { describe, expect, it } from 'vitest';

const made = (compensate: CompensatePolicy, isOwn: boolean): (() => unknown) => {
  const book = tool({
    name: 'book',
    policy: { effects: 'mutating', compensate },
    execute: () => 'booked',
    ...(isOwn ? { compensate: () => 'undone' } : {}),
  });
  const cancel = tool({ name: 'cancel', policy: { effects: 'mutating' }, execute: () => 'canceled' });
  return () => createSpillway({ tools: [book, cancel] });
};

describe('an undoing whose policy cannot act', () => {
  it.each([
    [{ tool: 'cancel', retry: { maxAttempts: 9 } }, false, 'compensate.retry is for a tool'],
    [{ tool: 'cancel', timeoutMs: 100 }, false, 'cancel undoes by its own policy: put timeoutMs there'],
    [{ retry: { maxAttempts: 0 } }, true, 'tool book: compensate.retry: maxAttempts must be'],
    [{ retry: { tries: 3 } }, true, 'tool book: compensate.retry: a retry policy has no option "tries"'],
    [{ retry: 3 }, true, 'compensate.retry must be an object, not number'],
    [{ enforcesKey: 'yes' }, true, 'compensate.enforcesKey must be true or false, not string'],
  ])('R-18.5 is refused: %j', (compensate, isOwn, message) => {
    expect(made(compensate as CompensatePolicy, isOwn)).toThrow(message);
  });

  it('R-18.5 what can act is taken', () => {
    expect(made({ retry: { maxAttempts: 9 }, timeoutMs: 100, enforcesKey: true }, true)).not.toThrow();
    expect(made({ tool: 'cancel', enforcesKey: true, owner: 'Grace' }, false)).not.toThrow();
  });
});
